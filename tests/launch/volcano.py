"""Volcano Jobs of the embedded cluster, and what their pods say."""

import re
from dataclasses import dataclass
from typing import Any

from components.volcano_job import VOLCANO_JOB_API
from tests.cluster.objects import kind_of, listed, log, pods, wait_until

FINAL = {"Completed", "Failed", "Aborted", "Terminated"}
RANK = re.compile(r"rank (\d+) of (\d+) on \w+, master (\S+)")
LOSS = re.compile(r"epoch \d+/\d+: loss ([\d.]+)")


@dataclass
class Job:
    """One Volcano Job, by its name."""

    namespace: str
    name: str

    @property
    def status(self) -> dict[str, Any]:
        """What Volcano says of the job; phase "gone" when there is none."""
        jobs = listed(VOLCANO_JOB_API, "Job", self.namespace)
        found = [job.get("status", {}) for job in jobs if job["metadata"]["name"] == self.name]
        return found[0] if found else {"state": {"phase": "gone"}}

    @property
    def phase(self) -> str:
        return str(self.status.get("state", {}).get("phase", ""))

    def wait_for(self, *phases: str, seconds: float = 180) -> str:
        """The first of the phases that the job reaches."""
        wait_until(f"{self.name} is {' or '.join(phases)}", lambda: self.phase in phases, seconds)
        return self.phase

    @property
    def pods(self) -> dict[str, dict[str, Any]]:
        """The pods by task and index: master-0, worker-0, ..."""
        prefix = f"{self.name}-"
        found = {pod["metadata"]["name"]: pod for pod in pods(self.namespace)}
        return {name.removeprefix(prefix): pod for name, pod in found.items() if name.startswith(prefix)}

    def log(self, pod: str) -> str:
        return log(self.pods[pod])

    def ranks(self) -> dict[str, tuple[int, int, str]]:
        """What each pod says of itself: rank, world size and the master's address. Ask while the job runs: when its
        master is done, Volcano removes workers that have not ended yet, and their logs with them."""
        found = {}
        for name, pod in self.pods.items():
            if pod["status"]["phase"] != "Pending" and (match := RANK.search(log(pod))):
                found[name] = (int(match[1]), int(match[2]), match[3])
        return found

    def wait_for_ranks(self, number: int) -> dict[str, tuple[int, int, str]]:
        """The same, once so many pods have said it."""
        wait_until(f"{number} pods of {self.name} train", lambda: len(self.ranks()) == number)
        return self.ranks()

    @property
    def losses(self) -> list[float]:
        return [float(loss) for loss in LOSS.findall(self.log("master-0"))]


def submit(namespace: str, manifest: dict[str, Any]) -> Job:
    """Create the job."""
    created = kind_of(VOLCANO_JOB_API, "Job").create(body=manifest, namespace=namespace)
    return Job(namespace, created.metadata.name)
