"""A gang on loopback: every worker has an address of its own in 127.0.0.0/8, real sockets, and a made-up DNS."""

import asyncio
import itertools
import os
from collections import Counter, defaultdict
from dataclasses import replace

from pod_identity import PodIdentity, Worker
from rendezvous import agree
from rendezvous_wire import Timing

_subnets = itertools.count(1)
_RUN = os.getpid() % 200
"""Two test runs on one machine at the same time have addresses of their own."""


class FakeDns:
    """The answers of the cluster's DNS: which addresses a name has right now."""

    def __init__(self) -> None:
        self.records: dict[str, set[str]] = defaultdict(set)
        self.queries: Counter[str] = Counter()

    async def __call__(self, name: str) -> frozenset[str]:
        self.queries[name] += 1
        await asyncio.sleep(0)
        return frozenset(self.records[name])

    def publish(self, worker: Worker) -> None:
        """As the headless service does once the pod has an address."""
        self.records[worker.host(worker.pod.index)].add(worker.address)
        self.records[worker.service].add(worker.address)

    def withdraw(self, worker: Worker) -> None:
        """As the headless service does once the pod is gone."""
        self.records[worker.host(worker.pod.index)].discard(worker.address)
        self.records[worker.service].discard(worker.address)


def a_gang(size: int, *, job: str = "mnist", by_replica: bool = False, generation: str = "run-1/0") -> list[Worker]:
    """Workers of one run, on addresses that no other gang of this process has."""
    subnet = next(_subnets)
    return [
        Worker(
            pod=PodIdentity(job, index, by_replica and index > 0),
            namespace="ml",
            domain="cluster.local",
            address=f"127.{10 + (_RUN + subnet // 250) % 240}.{subnet % 250 + 1}.{index + 1}",
            port=12345,
            generation=generation,
            uid=f"{generation}-pod-{index}",
        )
        for index in range(size)
    ]


def hosts_of(gang: list[Worker]) -> list[str]:
    """The membership that this gang should agree on."""
    return [f"{worker.host(worker.pod.index)}:{worker.port}" for worker in gang]


def another_pod(worker: Worker, number: int = 1) -> Worker:
    """A different pod with the same hostname, on an address of its own; `number` tells several apart."""
    network, _, last = worker.address.rpartition(".")
    return replace(worker, address=f"{network}.{int(last) + 50 * number}", uid=f"another-pod-{number}")


QUICK = Timing(timeout=10.0, look=0.2)
"""The real timing, scaled down."""


async def rendezvous(
    gang: list[Worker], dns: FakeDns, size: int | None, *, timing: Timing = QUICK
) -> list[list[str] | BaseException]:
    """What each worker gets when all start now: the list, or its error."""
    return await asyncio.gather(*(agree(worker, size, dns, timing) for worker in gang), return_exceptions=True)
