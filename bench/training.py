"""What the trainer's loop and its input pipeline cost, on one worker.

    python -m bench.training

Images a second of the trainer, of a plain loop as one would write it by hand for a single process, and of the trainer
with one batch that is in memory already. The three take turns; each ratio is the median over all rounds, with its
spread. One JSON object a line.
"""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-untyped]

from bench.reporting import report_pairs

sys.path.insert(0, str(Path(__file__).parents[1] / "trainer"))
from cifar10 import IMAGE_SHAPE, Images, Labels
from train_engine import Engine, make_model, make_strategy
from train_settings import Settings

EXAMPLES = 5000
BATCH = 64
STEPS = 100
"""Steps in one measurement, about a second on two cores."""
ROUNDS = 20


def random_examples() -> tuple[Images, Labels]:
    """Noise in CIFAR-10's form: what is in the images does not change the time."""
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (EXAMPLES, *IMAGE_SHAPE), dtype=np.uint8)
    return images, random.integers(0, 10, EXAMPLES, dtype=np.int32)


def plain_loop(images: Images, labels: Labels) -> Callable[[], None]:
    """A hand-written loop without tf.distribute, without augmentation: shuffle, batch, step."""
    model = make_model()
    optimizer = tf.keras.optimizers.Adam(0.002)
    optimizer.build(model.trainable_variables)
    loss_function = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    mean_loss = tf.keras.metrics.Mean()
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(EXAMPLES).repeat().batch(BATCH)
    batches = iter(dataset.prefetch(tf.data.AUTOTUNE))

    @tf.function  # type: ignore[untyped-decorator]
    def step(batch_images: Any, batch_labels: Any) -> None:
        with tf.GradientTape() as tape:
            scores = model(batch_images, training=True)
            loss = loss_function(batch_labels, scores)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        mean_loss.update_state(loss)
        accuracy.update_state(batch_labels, scores)

    def measure() -> None:
        for _ in range(STEPS):
            step(*next(batches))
        float(mean_loss.result())

    return measure


def trainer_loop(engine: Engine, batches: Iterator[Any]) -> Callable[[], None]:
    """The trainer's loop over these batches."""

    def measure() -> None:
        for _ in range(STEPS):
            engine.train(batches)
        engine.totals()

    return measure


class InMemory(Iterator[Any]):
    """One batch for ever: the trainer's step, compiled with it, has it in memory and asks no more."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __next__(self) -> Any:
        return self._batch


def images_per_second(measure: Callable[[], None]) -> float:
    """The speed of one measurement."""
    started = time.perf_counter()
    measure()
    return STEPS * BATCH / (time.perf_counter() - started)


def main() -> None:
    """Measure in turns and report."""
    images, labels = random_examples()
    engine = Engine(make_strategy(), Settings(1, BATCH, 0.002, 0, "", "", 1, ""))
    schedule = engine.schedule(EXAMPLES, shuffled=True)
    steps = range(STEPS * (ROUNDS + 2))
    loops = {
        "trainer": trainer_loop(engine, engine.batches(images, labels, schedule, steps)),
        "plain": plain_loop(images, labels),
        "in memory": trainer_loop(engine, InMemory(next(engine.batches(images, labels, schedule, steps)))),
    }
    for loop in loops.values():  # compile, fill the buffers
        loop()
    speeds: dict[str, list[float]] = {name: [] for name in loops}
    for turn in range(ROUNDS):
        names = list(loops)
        for name in names[turn % 3 :] + names[: turn % 3]:
            speeds[name].append(images_per_second(loops[name]))
    for name, peer, other, least in (
        ("training by one worker", "hand-written single-process loop", "plain", 0.97),
        ("training from the input pipeline", "one batch in memory", "in memory", 0.95),
    ):
        report_pairs(name, "images/s", speeds["trainer"], peer, speeds[other], goal=f"at least {least} times")


if __name__ == "__main__":
    main()
