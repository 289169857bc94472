"""Everything that the pods of a namespace did and said, the deleted ones included.

Logs are read on the node, as they are written: a pod that a restart of the gang replaced is gone from the API, and an
API server that is being restarted must not take the evidence with it.
"""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any

from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from components import api
from devcluster.paths import Cache
from tests.cluster.objects import kind_of

OVER = ("Succeeded", "Failed")
_LINE = re.compile(r"(\S+) (?:stdout|stderr) [FP] (.*)")


@dataclass
class Worker:
    """One pod of a gang, from its creation on."""

    name: str
    uid: str
    index: int
    run: str
    """JobSet's uid: one for each TrainJob that was ever created."""
    attempt: int
    life: int
    """How many workers of this index the attempt had before: suspending ends them without a new attempt."""
    began: float | None = None
    """When its process started (Unix time); None if it never did."""
    ended: float | None = None
    """When its process ended (Unix time); None while it runs, or when the pod went without that being seen."""
    exit_code: int | None = None
    lines: list[tuple[float, str]] = field(default_factory=list)
    """Its log with the time of each line."""

    @property
    def gang(self) -> tuple[str, int, int]:
        return self.run, self.attempt, self.life

    @property
    def log(self) -> str:
        return "\n".join(text for _, text in self.lines)

    @property
    def epochs(self) -> list[int]:
        """The epochs that it has finished."""
        return [int(number) for number in re.findall(r"epoch (\d+)/", self.log)]

    @property
    def first_step(self) -> int:
        """The step after which it began."""
        found = re.search(r"resuming after step (\d+)", self.log)
        return int(found[1]) if found else 0

    @property
    def last_step(self) -> int | None:
        """The last step that it did with the others, as it says when it stops or loses one; None if it did not."""
        found = re.search(r"(?:stopped by SIGTERM|lost another worker) after step (\d+)", self.log)
        return int(found[1]) if found else None

    @property
    def last_line(self) -> float:
        return self.lines[-1][0] if self.lines else 0.0

    def __str__(self) -> str:
        return f"{self.name} of attempt {self.attempt}"


class Recording:
    """All workers that were ever seen in a namespace, oldest first."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._workers: dict[str, Worker] = {}
        self._open: dict[str, IO[str]] = {}
        self._stopped = threading.Event()

    def of(self, job: str) -> list[Worker]:
        """The workers of one TrainJob name."""
        return [worker for worker in self._workers.values() if worker.name.startswith(f"{job}-{api.NODE}-0-")]

    def overlaps(self, job: str) -> list[str]:
        """Workers that started while one of an earlier gang still ran."""
        workers = [worker for worker in self.of(job) if worker.began is not None]
        return [
            f"{new} started while {old} was still there"
            for position, new in enumerate(workers)
            for old in workers[:position]
            if old.gang != new.gang and (old.ended or old.last_line) > (new.began or 0.0)
        ]

    def follow_pods(self) -> None:
        while not self._stopped.is_set():
            try:
                for event in kind_of("v1", "Pod").watch(namespace=self._namespace, timeout=5):
                    self._note(event["raw_object"])
            except (ApiException, HTTPError, ValueError):  # some tests kill the API server, in the middle of a line too
                time.sleep(0.2)

    def follow_logs(self) -> None:
        folder = Cache.from_environment().cluster / "pod-logs"
        while not self._stopped.wait(0.1):
            for file in folder.glob(f"{self._namespace}_*/{api.NODE}/0.log"):
                uid = file.parent.parent.name.rpartition("_")[2]
                if uid in self._workers and uid not in self._open:
                    self._open[uid] = file.open(errors="replace")
            for uid, log in list(self._open.items()):
                self._read(uid, log)

    def stop(self) -> None:
        self._stopped.set()
        for log in self._open.values():
            log.close()

    def _note(self, pod: dict[str, Any]) -> None:
        metadata, labels = pod["metadata"], pod["metadata"].get("labels", {})
        if api.JOBSET_UID_LABEL not in labels:
            return
        worker = self._workers.setdefault(metadata["uid"], self._worker(metadata))
        for status in pod["status"].get("containerStatuses", []):
            state = status["state"].get("terminated") or status["state"].get("running") or {}
            worker.began = _seconds(state.get("startedAt")) or worker.began
            worker.ended = _seconds(state.get("finishedAt")) or worker.ended
            worker.exit_code = state.get("exitCode", worker.exit_code)

    def _worker(self, metadata: dict[str, Any]) -> Worker:
        labels = metadata["labels"]
        index, run = int(labels[api.COMPLETION_INDEX_LABEL]), labels[api.JOBSET_UID_LABEL]
        attempt = int(labels[api.RESTART_ATTEMPT_LABEL])
        before = [worker for worker in self._workers.values() if (worker.run, worker.index) == (run, index)]
        life = sum(worker.attempt == attempt for worker in before)
        return Worker(metadata["name"], metadata["uid"], index, run, attempt, life)

    def _read(self, uid: str, log: IO[str]) -> None:
        while True:
            position = log.tell()
            line = log.readline()
            if not line.endswith("\n"):
                log.seek(position)
                return
            if match := _LINE.match(line.rstrip("\n")):
                self._workers[uid].lines.append((_seconds(match[1]) or 0.0, match[2]))


@contextmanager
def recording(namespace: str) -> Iterator[Recording]:
    """Record a namespace while the block runs, and what was already there."""
    found = Recording(namespace)
    threads = [threading.Thread(target=target, daemon=True) for target in (found.follow_pods, found.follow_logs)]
    for thread in threads:
        thread.start()
    yield found
    found.stop()
    for thread in threads:
        thread.join(10)


def _seconds(time_stamp: str | None) -> float | None:
    return datetime.fromisoformat(time_stamp[:26].rstrip("Z") + "+00:00").timestamp() if time_stamp else None
