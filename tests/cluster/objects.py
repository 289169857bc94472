"""The live objects that the tests look at, as plain dicts."""

import time
from collections.abc import Callable
from typing import Any

from kubernetes import client, dynamic

TRAINER = "trainer.kubeflow.org/v1alpha1"
JOBSET = "jobset.x-k8s.io/v1alpha2"
SCHEDULING = "scheduling.volcano.sh/v1beta1"
WORKER_INDEX = "batch.kubernetes.io/job-completion-index"


def kind_of(api_version: str, kind: str) -> Any:
    """The dynamic client's resource for a kind."""
    return dynamic.DynamicClient(client.ApiClient()).resources.get(api_version=api_version, kind=kind)


def listed(api_version: str, kind: str, namespace: str | None = None) -> list[dict[str, Any]]:
    """All objects of a kind, in one namespace or in the cluster."""
    items: list[dict[str, Any]] = kind_of(api_version, kind).get(namespace=namespace).to_dict()["items"]
    return items


def named(api_version: str, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
    """One object, which must exist."""
    return next(item for item in listed(api_version, kind, namespace) if item["metadata"]["name"] == name)


def conditions(train_job: dict[str, Any]) -> dict[str, str]:
    """The job's conditions that are true, each with its message."""
    found = train_job.get("status", {}).get("conditions", [])
    return {item["type"]: item.get("message", "") for item in found if item["status"] == "True"}


def pods(namespace: str) -> list[dict[str, Any]]:
    """The namespace's pods, oldest first."""
    return sorted(listed("v1", "Pod", namespace), key=lambda pod: str(pod["metadata"]["creationTimestamp"]))


def log(pod: dict[str, Any]) -> str:
    """What the pod has printed so far."""
    metadata = pod["metadata"]
    return str(client.CoreV1Api().read_namespaced_pod_log(metadata["name"], metadata["namespace"]))


def worker_log(namespace: str, worker: int) -> str:
    """What the newest pod of this worker has printed."""
    return log([pod for pod in pods(namespace) if pod["metadata"]["labels"].get(WORKER_INDEX) == str(worker)][-1])


def wait_until(what: str, condition: Callable[[], bool], seconds: float = 120) -> None:
    """Return when the condition holds; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.2)
