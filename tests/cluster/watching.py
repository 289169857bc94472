"""What really happened to the pods of a namespace, in the order in which the API server says that it happened."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.objects import JOBSET, WORKER_INDEX, kind_of

JOBSET_UID = "jobset.sigs.k8s.io/jobset-uid"


@dataclass
class Gangs:
    """The pods of every TrainJob that ran.

    A gang is known by its TrainJob's uid, not by its JobSet's: a Trainer that learns late of a TrainJob's deletion
    makes its JobSet once more, for the moment until that is deleted too. Such pods belong to the run that is over.
    """

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Every pod event: its type and the pod's metadata."""
    train_jobs: dict[str, str] = field(default_factory=dict)
    """The uid of a JobSet → that of its TrainJob."""

    @property
    def pods(self) -> dict[str, set[str]]:
        """The workers' indexes of each gang, in order of appearance."""
        found: dict[str, set[str]] = {}
        for _, metadata in list(self.events):
            found.setdefault(self._gang(metadata), set()).add(metadata["labels"].get(WORKER_INDEX, ""))
        return found

    @property
    def sizes(self) -> list[int]:
        """How many workers each gang had, in order of appearance."""
        return [len(indexes) for indexes in self.pods.values()]

    @property
    def overlaps(self) -> list[str]:
        """Every pod that was created while one of another gang existed."""
        found, alive = [], dict[str, str]()
        for kind, metadata in list(self.events):
            gang, uid = self._gang(metadata), metadata["uid"]
            others = sorted({other for other in alive.values() if other != gang})
            if kind == "ADDED" and others:
                found.append(f"{metadata['name']} of TrainJob {gang} was created while pods of {others} existed")
            alive[uid] = gang
            if kind == "DELETED":
                del alive[uid]
        return found

    def _gang(self, metadata: dict[str, Any]) -> str:
        job_set: str = metadata["labels"][JOBSET_UID]
        return self.train_jobs.get(job_set, job_set)


@contextmanager
def watching_pods(namespace: str) -> Iterator[Gangs]:
    """Record the namespace's gangs while the block runs."""
    gangs = Gangs()

    def follow_pods() -> None:
        for event in kind_of("v1", "Pod").watch(namespace=namespace, timeout=900):
            metadata = event["raw_object"]["metadata"]
            if JOBSET_UID in metadata.get("labels", {}):
                gangs.events.append((event["type"], metadata))

    def follow_job_sets() -> None:
        for event in kind_of(JOBSET, "JobSet").watch(namespace=namespace, timeout=900):
            metadata = event["raw_object"]["metadata"]
            gangs.train_jobs[metadata["uid"]] = metadata["ownerReferences"][0]["uid"]

    for follow in (follow_job_sets, follow_pods):
        threading.Thread(target=follow, daemon=True).start()  # ends with its time-out, or with the process
    yield gangs
