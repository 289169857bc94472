"""How long a gang takes to agree: from the last worker's name appearing in DNS to TF_CONFIG known to all.

    python -m bench.rendezvous [workers ...]

Both algorithms run against the same DNS server, which models CoreDNS (see coredns_model), with real sockets: ours and
that of the project's source documents (probe name by name until one fails, 5 s between looks, two equal looks). Names
appear in random order within 2 s, while all workers are looking already. One JSON object a line.
"""

import asyncio
import contextlib
import json
import multiprocessing
import os
import random
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "trainer"))
from dns_query import Resolver
from pod_identity import PodIdentity, Worker
from rendezvous import agree
from rendezvous_wire import Timing

from bench.coredns_model import CAPACITY, LATENCY, CoreDnsModel

SIZES = (2, 8, 64, 256, 1024)
RUNS = 5
NAMES_APPEAR_WITHIN = 2.0
"""Seconds."""
DOCUMENTS_SAMPLE = 16
"""Workers that run the documents' algorithm: more of them would ask more than a server in Python can answer. A larger
gang is represented by so many of its workers, with their share of the modelled capacity."""
DOCUMENTS_LOOK = 5.0
"""Seconds between two looks of the documents' algorithm."""
SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Task:
    """What one process does, as of a common start."""

    size: int
    indexes: range
    documents: bool
    port: int
    network: int


def a_worker(network: int, index: int) -> Worker:
    """Worker `index`, on an address of its own in 127.<network>.0.0/16."""
    address = f"127.{network}.{index // 250}.{index % 250 + 1}"
    return Worker(PodIdentity("bench", index), "ml", "cluster.local", address, 12345, "run/0", f"pod-{index}")


def take_part(task: Task, pipe: Connection) -> None:
    """The process of some workers: sends when the last of them has the list, and the peak memory in bytes."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  for the life of the process

    async def run() -> float:
        workers = [a_worker(task.network, index) for index in task.indexes]
        one = documents_algorithm if task.documents else our_algorithm
        results = await asyncio.gather(*(one(worker, task) for worker in workers))
        if not all(len(hosts) == task.size for hosts, _ in results):
            raise SystemExit(f"settled on fewer than {task.size} workers")
        return max(moment for _, moment in results)

    pipe.send("ready")
    pipe.recv()
    last = asyncio.run(run())
    pipe.send((last, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))


async def our_algorithm(worker: Worker, task: Task) -> tuple[list[str], float]:
    """The list, and when this worker had it."""
    hosts = await agree(worker, task.size, Resolver(["127.0.0.1"], False, task.port), Timing())
    return hosts, time.monotonic()


async def documents_algorithm(worker: Worker, task: Task) -> tuple[list[str], float]:
    """The same by the documents' rule."""
    resolve = Resolver(["127.0.0.1"], False, task.port)
    before = 0
    while True:
        hosts: list[str] = []
        while await resolve(worker.host(len(hosts))):
            hosts.append(worker.host(len(hosts)))
        if len(hosts) >= 2 and len(hosts) == before:
            return hosts, time.monotonic()
        before = len(hosts)
        await asyncio.sleep(DOCUMENTS_LOOK)


def serve(network: int, size: int, seed: int, capacity: float, cache_seconds: float, pipe: Connection) -> None:
    """The process of the DNS server: publishes the names once told to start, and counts queries."""

    async def run() -> None:
        server = CoreDnsModel(capacity, cache_seconds)
        loop = asyncio.get_running_loop()
        async with server.running():
            pipe.send(server.port)
            await loop.run_in_executor(None, pipe.recv)
            moments = [random.Random(seed).uniform(0, NAMES_APPEAR_WITHIN) for _ in range(size)]  # noqa: S311
            started = loop.time()
            for index, moment in enumerate(moments):
                loop.call_at(started + moment, publish, server, a_worker(network, index))
            pipe.send(started + max(moments))
            await loop.run_in_executor(None, pipe.recv)
            pipe.send(server.queries)

    asyncio.run(run())


def publish(server: CoreDnsModel, worker: Worker) -> None:
    """As the headless service does once the pod has an address."""
    for name in (worker.host(worker.pod.index), worker.service):
        server.records[name].add(worker.address)


@contextlib.contextmanager
def process(target: object, *args: object) -> Iterator[Connection]:
    """A process with a pipe to it."""
    here, there = SPAWN.Pipe()
    child = SPAWN.Process(target=target, args=(*args, there))  # type: ignore[arg-type]
    child.start()
    there.close()  # so that a child that fails ends the wait for its answer
    try:
        yield here
    finally:
        child.terminate()
        child.join()


@dataclass(frozen=True)
class Outcome:
    """One rendezvous of one gang."""

    seconds: float
    queries: int
    leader_bytes: int


def rendezvous(size: int, seed: int, *, documents: bool = False, cache_seconds: float = 0) -> Outcome:
    """Let one gang agree."""
    network = 10 + os.getpid() % 240  # two benchmarks at the same time are not in each other's way
    present = min(size, DOCUMENTS_SAMPLE) if documents else size
    with contextlib.ExitStack() as stack:
        dns = stack.enter_context(process(serve, network, size, seed, CAPACITY * present / size, cache_seconds))
        port = dns.recv()
        shares = [range(1), range(1, (present + 1) // 2 + 1), range((present + 1) // 2 + 1, present)]
        pipes = [
            stack.enter_context(process(take_part, Task(size, share, documents, port, network)))
            for share in shares
            if share
        ]
        for pipe in pipes:
            pipe.recv()
        for pipe in [*pipes, dns]:
            pipe.send("go")
        last_name = dns.recv()
        results = [pipe.recv() for pipe in pipes]
        dns.send("stop")
        return Outcome(max(moment for moment, _ in results) - last_name, dns.recv(), results[0][1])


def report(name: str, value: float, unit: str, **more: object) -> None:
    """One line of JSON."""
    print(json.dumps({"name": name, "value": round(value, 4), "unit": unit, **more}), flush=True)


def compare(size: int, *, cache_seconds: float = 0) -> None:
    """Run both algorithms for one size, and report."""
    runs = RUNS if size <= 256 else 3
    ours = [rendezvous(size, seed, cache_seconds=cache_seconds) for seed in range(runs)]
    documents = rendezvous(size, 0, documents=True, cache_seconds=cache_seconds)
    seconds = [outcome.seconds for outcome in ours]
    median = statistics.median(seconds)
    cache = f", answers cached {cache_seconds:g} s" if cache_seconds else ""
    report(
        f"rendezvous of {size} workers{cache}",
        median,
        "s",
        min=round(min(seconds), 4),
        max=round(max(seconds), 4),
        runs=runs,
        peer={"name": "documents' algorithm", "value": round(documents.seconds, 2), "unit": "s"},
        ratio=round(documents.seconds / max(seconds), 1),
        dns=f"{LATENCY * 1000:g} ms an answer, {CAPACITY:,.0f} answers/s{cache}",
    )
    queries = statistics.median(outcome.queries for outcome in ours) / size
    theirs = documents.queries / min(size, DOCUMENTS_SAMPLE)
    report(
        f"DNS queries per worker, {size} workers{cache}",
        queries,
        "queries",
        peer={"name": "documents' algorithm", "value": round(theirs, 1), "unit": "queries"},
        ratio=round(theirs / queries, 1),
    )
    report(f"worker 0's peak memory, {size} workers{cache}", ours[0].leader_bytes / 1e6, "MB", goal="under 100")


def main(arguments: list[str]) -> None:
    """Compare for the sizes named, or for all of them and once with a caching DNS server."""
    for size in [int(argument) for argument in arguments] or SIZES:
        compare(size)
    if not arguments:
        compare(8, cache_seconds=5)


if __name__ == "__main__":
    main(sys.argv[1:])
