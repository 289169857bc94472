"""TrainJobs by hand, as a user of kubectl has them, beside a stack that has the runtime alone."""

import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client
from kubernetes.dynamic.exceptions import NotFoundError

from components import api
from components.network import policy_manifest
from components.train_job import train_job_manifest
from tests.cluster.objects import conditions, kind_of, pods, wait_until
from tests.cluster.recording import Recording, Worker

SIZE = 2
PATIENCE = 300.0
"""Seconds for what takes twenty on a machine that has nothing else to do."""


@dataclass(frozen=True)
class Lab:
    """A namespace with scripts, queue and runtime for any number of jobs, and a record of all their pods."""

    namespace: str
    runtime: str
    checkpoints: Path
    """The node's folder in which the runtime keeps the checkpoints of all jobs."""
    recording: Recording

    def job(self, name: str, command: Sequence[str] = (), **env: object) -> "Job":
        """A TrainJob of two workers that is yet to be applied: the training with this `env`, or another command."""
        return Job(self, name, {key: str(value) for key, value in env.items()}, command)


@dataclass(frozen=True)
class Job:
    """A TrainJob of this name, run after run."""

    lab: Lab
    name: str
    env: dict[str, str]
    command: Sequence[str]

    def apply(self) -> None:
        """`kubectl apply` of the TrainJob, with the NetworkPolicy that the program would make for it."""
        manifest = train_job_manifest(
            {
                "job_name": self.name,
                "namespace": self.lab.namespace,
                "runtime_name": self.lab.runtime,
                "num_nodes": SIZE,
                "command": self.command,
                "env": self.env,
            }
        )
        for body in (policy_manifest(self.name, self.lab.namespace), manifest):
            kind_of(body["apiVersion"], body["kind"]).server_side_apply(
                body=body, name=self.name, namespace=self.lab.namespace, field_manager="test", force_conflicts=True
            )

    def delete(self) -> None:
        """`kubectl delete` of the TrainJob: it does not wait for the pods."""
        self._kind.delete(name=self.name, namespace=self.lab.namespace, body={"propagationPolicy": "Background"})

    def suspend(self, value: bool) -> None:
        self._kind.patch(
            name=self.name,
            namespace=self.lab.namespace,
            body={"spec": {"suspend": value}},
            content_type="application/merge-patch+json",
        )

    @property
    def object(self) -> dict[str, Any]:
        """The live TrainJob."""
        found: dict[str, Any] = self._kind.get(name=self.name, namespace=self.lab.namespace).to_dict()
        return found

    @property
    def conditions(self) -> dict[str, str]:
        return conditions(self.object)

    @property
    def pods(self) -> list[dict[str, Any]]:
        """Its pods that are there, by index."""
        found = [
            pod for pod in pods(self.lab.namespace) if pod["metadata"]["labels"].get(api.JOBSET_NAME_LABEL) == self.name
        ]
        return sorted(found, key=lambda pod: str(pod["metadata"]["labels"][api.COMPLETION_INDEX_LABEL]))

    @property
    def running(self) -> list[dict[str, Any]]:
        """Its pods whose process runs and that nobody has deleted."""
        return [
            pod
            for pod in self.pods
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]

    @property
    def workers(self) -> list[Worker]:
        """All its workers ever, oldest first."""
        return self.lab.recording.of(self.name)

    def attempt(self, number: int) -> list[Worker]:
        """The workers of this attempt, by index."""
        return _by_index(worker for worker in self.workers if worker.attempt == number)

    @property
    def gang(self) -> list[Worker]:
        """The workers of the pods that run, by index."""
        uids = {pod["metadata"]["uid"] for pod in self.running}
        return _by_index(worker for worker in self.workers if worker.uid in uids)

    @property
    def last_gang(self) -> list[Worker]:
        """The workers that were created last, by index."""
        return _by_index(self.workers[-SIZE:])

    @property
    def restarts(self) -> tuple[int, int]:
        """How often the gang was started again, and how many of these times count towards maxRestarts."""
        job_set = kind_of(api.JOBSET_API, api.JOBSET_KIND).get(name=self.name, namespace=self.lab.namespace).to_dict()
        status = job_set["status"]
        return status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)

    @property
    def is_over(self) -> bool:
        return bool({"Complete", "Failed"} & set(self.conditions))

    @property
    def saved(self) -> int:
        """The step of the newest checkpoint; 0 without one."""
        folder = self.lab.checkpoints / self.lab.namespace / self.name
        return max((int(path.stem.rpartition("-")[2]) for path in folder.glob("step-*.index")), default=0)

    def wait_for_training(self, epoch: int = 1) -> None:
        """Until the whole gang trains and has come to this epoch."""

        def trains() -> bool:
            gang = self.gang
            return len(gang) == SIZE and all(worker.epochs and worker.epochs[-1] >= epoch for worker in gang)

        wait_until(f"{self.name} is in epoch {epoch}", trains, PATIENCE)

    def evict(self, index: int) -> None:
        """Take one worker's pod away, as the cluster does for a reason of its own."""
        pod = self.running[index]["metadata"]
        eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name=pod["name"], namespace=pod["namespace"]))
        client.CoreV1Api().create_namespaced_pod_eviction(pod["name"], pod["namespace"], eviction)

    def wait_for_end(self) -> str:
        """Until the job is over and the end of every worker whose pod is there is recorded; Complete or Failed."""

        def ends_are_recorded() -> bool:
            ended = {worker.uid for worker in self.workers if worker.exit_code is not None}
            return {pod["metadata"]["uid"] for pod in self.pods} <= ended

        wait_until(f"{self.name} is over", lambda: self.is_over, PATIENCE)
        wait_until(f"the ends of {self.name}'s workers are recorded", ends_are_recorded)
        return "Complete" if "Complete" in self.conditions else "Failed"

    def remove(self) -> None:
        """Delete it and wait until nothing of it is left."""
        with contextlib.suppress(NotFoundError):
            self.delete()
        wait_until(f"{self.name} is gone", lambda: not self.pods, 60)

    @property
    def _kind(self) -> Any:
        return kind_of(api.TRAINER_API, api.TRAIN_JOB_KIND)


def _by_index(workers: Iterable[Worker]) -> list[Worker]:
    return sorted(workers, key=lambda worker: worker.index)


def final_loss(worker: Worker) -> float:
    """The loss in the result that worker 0 ends with."""
    return float(json.loads(worker.lines[-1][1])["loss"])
