"""What really happened to the pods of a namespace, in the order in which the API server says that it happened."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.objects import kind_of

JOB_UID = "batch.kubernetes.io/controller-uid"


@dataclass
class Gangs:
    """Every pod that was ever seen, by the uid of its Job: each Job is one generation of a gang."""

    alive: dict[str, set[str]] = field(default_factory=dict)
    pods: dict[str, set[str]] = field(default_factory=dict)
    overlaps: list[str] = field(default_factory=list)

    def record(self, kind: str, metadata: dict[str, Any]) -> None:
        gang, uid = metadata.get("labels", {}).get(JOB_UID, "none"), metadata["uid"]
        alive = self.alive.setdefault(gang, set())
        if kind == "DELETED":
            alive.discard(uid)
            return
        alive.add(uid)
        self.pods.setdefault(gang, set()).add(uid)
        others = [name for name, pods in self.alive.items() if name != gang and pods]
        if kind == "ADDED" and others:
            self.overlaps.append(f"{metadata['name']} was created while pods of Job {others} existed")

    @property
    def sizes(self) -> list[int]:
        """How many pods each generation had, in order of appearance."""
        return [len(pods) for pods in self.pods.values()]


@contextmanager
def watching_pods(namespace: str) -> Iterator[Gangs]:
    """Record the namespace's pods while the block runs."""
    gangs = Gangs()

    def follow() -> None:
        for event in kind_of("v1", "Pod").watch(namespace=namespace, timeout=900):
            gangs.record(event["type"], event["raw_object"]["metadata"])

    threading.Thread(target=follow, daemon=True).start()  # ends with its time-out, or with the process
    yield gangs
