"""What a training step costs on two workers, in time and in bytes on the wire.

    python -m bench.step_cost

Two processes train on loopback in a network namespace of their own. The trainer's step, dataset and bookkeeping
included, takes turns with the least that TensorFlow can do for the same model on a batch in memory: gradients, all of
them in one ring all-reduce (the bare operation, without tf.distribute), Adam. Bytes are those that loopback counted, of
both workers together, against the theory of a ring all-reduce: 2 (n - 1) times the gradients' size.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.reporting import report, report_pairs

sys.path.insert(0, str(Path(__file__).parents[1] / "trainer"))

WORKERS = 2
BATCH = 64
EXAMPLES = 5000
STEPS = 50
"""Steps in one measurement."""
ROUNDS = 12
GROUP_KEY, INSTANCE_KEY = 7_000_000, 7_000_001
"""Of the bare all-reduce; tf.distribute counts its own from 0."""


def bare_loop(engine: Any, batch: Any) -> Callable[[], None]:
    """Gradients, one all-reduce, Adam; nothing else."""
    import tensorflow as tf  # type: ignore[import-untyped]
    from train_engine import make_model

    images, labels, weights = batch
    model, optimizer = make_model(), tf.keras.optimizers.Adam(0.002)
    variables = model.trainable_variables
    optimizer.build(variables)
    losses_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    sizes = [int(tf.size(variable)) for variable in variables]

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * losses_of(labels, model(images, training=True)))
        gradients = tape.gradient(loss, variables)
        summed = tf.raw_ops.CollectiveReduceV2(
            input=tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], 0),
            group_size=WORKERS,
            group_key=GROUP_KEY,
            instance_key=INSTANCE_KEY,
            ordering_token=[],
            merge_op="Add",
            final_op="Id",
            communication_hint="RING",
        )
        parts = tf.split(summed, sizes)
        reduced = [tf.reshape(part, variable.shape) for part, variable in zip(parts, variables, strict=True)]
        optimizer.apply_gradients(zip(reduced, variables, strict=True))

    def measure() -> None:
        for _ in range(STEPS):
            step()
        float(tf.reduce_sum(variables[-1].value))

    return measure


def work() -> None:
    """One of the two processes; worker 0 prints what it measured."""
    import numpy as np
    from train_engine import Engine, make_strategy
    from train_settings import Settings

    engine = Engine(make_strategy(), Settings(1, BATCH, 0.002, 0, "", "", 1, ""))
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (EXAMPLES, 32, 32, 3), dtype=np.uint8)
    labels = random.integers(0, 10, EXAMPLES, dtype=np.int32)
    steps = range(STEPS * (ROUNDS + 3))
    batches = engine.batches(images, labels, engine.schedule(EXAMPLES, shuffled=True), steps)

    def trainer() -> None:
        for _ in range(STEPS):
            engine.train(batches)
        engine.barrier()

    loops = {"trainer": trainer, "bare": bare_loop(engine, next(batches))}
    for loop in loops.values():  # compile, fill the buffers
        loop()
    found: dict[str, Any] = {name: [] for name in loops} | {f"{name} bytes": [] for name in loops}
    for turn in range(ROUNDS):
        for name in list(loops) if turn % 2 else list(reversed(loops)):
            engine.barrier()
            sent, started = bytes_sent(), time.perf_counter()
            loops[name]()
            found[name].append(time.perf_counter() - started)
            engine.barrier()
            found[f"{name} bytes"].append(bytes_sent() - sent)
    found["gradient bytes"] = sum(
        int(np.prod(variable.shape)) * 4 for variable in engine.state["model"].trainable_variables
    )
    engine.barrier()
    if engine.worker == 0:
        print(json.dumps(found), flush=True)


def bytes_sent() -> int:
    """What loopback has carried so far."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.partition(":")[2].split()[8])


def start(index: int, ports: list[int]) -> "subprocess.Popen[str]":
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
    command = [sys.executable, "-m", "bench.step_cost", "work"]
    env = os.environ | {"TF_CONFIG": config, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)  # noqa: S603 (ourselves)


def measure() -> None:
    """In the network namespace: run both workers and report."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)  # noqa: S607
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(WORKERS)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    workers = [start(index, ports) for index in range(WORKERS)]
    output, _ = workers[0].communicate()
    if any(worker.wait() for worker in workers):
        raise SystemExit("a worker failed, see above")
    found = json.loads(output)
    milliseconds = {name: [1000 * seconds / STEPS for seconds in found[name]] for name in ("trainer", "bare")}
    report_pairs(
        "a step of the trainer on two workers",
        "ms",
        milliseconds["trainer"],
        "gradients, one all-reduce and Adam in a bare loop",
        milliseconds["bare"],
        goal="at most 1.05 times",
    )
    theory = 2 * (WORKERS - 1) * found["gradient bytes"]
    for name, label in (("trainer", "the trainer"), ("bare", "the bare loop")):
        value = statistics.median(found[f"{name} bytes"]) / STEPS
        report(
            f"bytes on the wire for a step of {label}",
            round(value),
            "bytes",
            peer={"name": "theory: 2 (n - 1) x gradients", "value": theory, "unit": "bytes"},
            ratio=round(value / theory, 4),
        )


def main(arguments: list[str]) -> None:
    """Go into a network namespace, or be what runs there."""
    if arguments == ["work"]:
        work()
    elif arguments == ["measure"]:
        measure()
    else:
        command = ["unshare", "--net", sys.executable, "-m", "bench.step_cost", "measure"]
        raise SystemExit(subprocess.run(command).returncode)  # noqa: S603 (ourselves)


if __name__ == "__main__":
    main(sys.argv[1:])
