"""How long a gang takes to agree: from the last worker's name appearing in DNS to TF_CONFIG known to all.

    python -m bench.rendezvous [workers ...]

Both algorithms run against the same DNS server, which models CoreDNS (2 ms an answer, 20,000 answers/s), with real
sockets: ours and that of the project's source documents (probe name by name until one fails, 5 s between looks, two
equal looks). Names appear in random order within 2 s, while all workers are looking already. A ratio is that of the
documents' fastest run to our slowest.

Worker 0 has a process of its own, the others share what cores there are. So the time of a large gang includes waiting
for a core, which real workers would not have to; their CPU time is given too. The documents' larger gangs are
represented by 16 of their workers, with their share of the server's capacity: they wait for the server alone.
"""

import asyncio
import contextlib
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

from bench.coredns_model import CAPACITY, CoreDnsModel
from bench.reporting import report

SIZES = (2, 8, 64, 256, 1024)
GOALS = {8: "under 0.25 s, ", 256: "under 1 s, ", 1024: "under 3 s, "}
RUNS, DOCUMENTS_RUNS = 5, 3
LARGE = 1024
"""Workers of which there are fewer runs: 3 and 1. The documents' algorithm takes two minutes."""
NAMES_APPEAR_WITHIN = 2.0
"""Seconds."""
DOCUMENTS_SAMPLE = 16
"""Workers that run the documents' algorithm: more of them would ask more than a server in Python can answer."""
DOCUMENTS_LOOK = 5.0
"""Seconds between two looks of the documents' algorithm."""
PROCESSES = max(2, (os.cpu_count() or 1) - 2)
"""Among which all workers but worker 0 are divided; the other two are worker 0 and the DNS server."""
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
    """The process of some workers: sends when the last of them has the list, the peak memory, and the CPU time used."""
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
    before = time.process_time()
    last = asyncio.run(run())
    pipe.send((last, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, time.process_time() - before))


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
    leader_cpu: float
    others_cpu: float
    """CPU seconds, of all others together."""


def rendezvous(size: int, seed: int, *, documents: bool = False, cache_seconds: float = 0) -> Outcome:
    """Let one gang agree."""
    network = 10 + os.getpid() % 240  # two benchmarks at the same time are not in each other's way
    present = min(size, DOCUMENTS_SAMPLE) if documents else size
    with contextlib.ExitStack() as stack:
        dns = stack.enter_context(process(serve, network, size, seed, CAPACITY * present / size, cache_seconds))
        port = dns.recv()
        shares = [range(1), *(range(1 + first, present, PROCESSES) for first in range(PROCESSES))]
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
        moments, memory, cpu = zip(*results, strict=True)
        return Outcome(max(moments) - last_name, dns.recv(), memory[0], cpu[0], sum(cpu[1:]))


def compare(size: int, *, cache_seconds: float = 0) -> None:
    """Run both algorithms for one size, and report."""
    runs, documents_runs = (3, 1) if size >= LARGE else (RUNS, DOCUMENTS_RUNS)
    ours = [rendezvous(size, seed, cache_seconds=cache_seconds) for seed in range(runs)]
    documents = [rendezvous(size, seed, documents=True, cache_seconds=cache_seconds) for seed in range(documents_runs)]
    seconds, theirs = ([outcome.seconds for outcome in outcomes] for outcomes in (ours, documents))
    cache = f", answers cached {cache_seconds:g} s" if cache_seconds else ""
    report(
        f"rendezvous of {size} workers{cache}",
        statistics.median(seconds),
        "s",
        min=round(min(seconds), 4),
        max=round(max(seconds), 4),
        runs=runs,
        peer={"name": "documents' algorithm", "value": round(statistics.median(theirs), 2), "unit": "s"},
        ratio=round(min(theirs) / max(seconds), 1),
        goal="" if cache else f"{GOALS.get(size, '')}20 times faster",
    )
    queries = statistics.median(outcome.queries for outcome in ours) / size
    their_queries = statistics.median(outcome.queries for outcome in documents) / min(size, DOCUMENTS_SAMPLE)
    report(
        f"DNS queries per worker, {size} workers{cache}",
        queries,
        "queries",
        peer={"name": "documents' algorithm", "value": round(their_queries, 1), "unit": "queries"},
        ratio=round(their_queries / queries, 1),
        goal="" if cache else "a handful, whatever the number of workers",
    )
    memory = max(outcome.leader_bytes for outcome in ours)
    report(f"worker 0's peak memory, {size} workers{cache}", memory / 1e6, "MB", goal="under 100 MB")
    leader_cpu, others_cpu = (
        statistics.median(getattr(outcome, name) for outcome in ours) for name in ("leader_cpu", "others_cpu")
    )
    report(
        f"worker 0's CPU time, {size} workers{cache}",
        leader_cpu,
        "s",
        peer={"name": "all others together", "value": round(others_cpu, 2), "unit": "s"},
    )


def main(arguments: list[str]) -> None:
    """Compare for the sizes named, or for all of them and once with a caching DNS server."""
    for size in [int(argument) for argument in arguments] or SIZES:
        compare(size)
    if not arguments:
        compare(8, cache_seconds=5)


if __name__ == "__main__":
    main(sys.argv[1:])
