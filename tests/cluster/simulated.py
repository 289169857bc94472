"""TrainJobs on simulated nodes: the program's own manifests, given to the API server without an engine."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kubernetes import client

from components import api
from components.train_job import train_job_manifest
from components.training_runtime import TensorFlowRuntimeArgs, runtime_manifest, worker_resources
from components.volcano_queue import VolcanoQueueArgs, queue_manifest
from devcluster import simulated_nodes
from tests.cluster.objects import TRAINER, kind_of, wait_until

GPUS = 8
"""On every simulated node. A worker that asks for all of them has its node for itself."""
NODE_SELECTOR = {simulated_nodes.LABEL: simulated_nodes.LABEL_VALUE}
TOLERATIONS = [{"key": simulated_nodes.TAINT["key"], "operator": "Exists"}]


@dataclass
class Platform:
    """What a platform engineer sets up for a namespace: queues, priorities, and runtimes that use simulated nodes.

    Names of objects that belong to the whole cluster begin with the namespace's.
    """

    namespace: str
    _created: list[dict[str, Any]] = field(default_factory=list)

    def queue(self, name: str, **args: Any) -> str:
        queue: VolcanoQueueArgs = {"queue_name": f"{self.namespace}-{name}", **args}  # type: ignore[typeddict-item]
        return self._create(queue_manifest(queue))

    def priority(self, name: str, value: int) -> str:
        metadata = {"name": f"{self.namespace}-{name}"}
        return self._create(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}
        )

    def runtime(self, queue: str, name: str = "runtime", **volcano: Any) -> str:
        runtime: TensorFlowRuntimeArgs = {
            "runtime_name": f"{self.namespace}-{name}",
            "scripts_config_map": "none",  # no kubelet asks for it
            "node_selector": NODE_SELECTOR,
            "tolerations": TOLERATIONS,
            "volcano": {"queue_name": queue, **volcano},  # type: ignore[typeddict-item]
        }
        return self._create(runtime_manifest(runtime))

    def train(self, name: str, runtime: str, num_nodes: int) -> None:
        """Start a gang whose workers take a whole node each."""
        manifest = train_job_manifest(
            {
                "job_name": name,
                "namespace": self.namespace,
                "runtime_name": runtime,
                "num_nodes": num_nodes,
                "resources": worker_resources("1", None, GPUS),
            }
        )
        kind_of(TRAINER, "TrainJob").create(body=manifest, namespace=self.namespace)

    def stop(self, name: str) -> None:
        """Delete a job as the program does: in the background."""
        options = {"propagationPolicy": "Background"}
        kind_of(TRAINER, "TrainJob").delete(name=name, namespace=self.namespace, body=options)

    def pods(self) -> list[dict[str, Any]]:
        """The namespace's pods, read without the client's classes, which take seconds for a thousand."""
        return _pods(self.namespace)

    def bound(self) -> Counter[str]:
        """How many pods of each job have a node."""
        return Counter(job_of(pod) for pod in self.pods() if node_of(pod))

    def remove(self) -> None:
        """Delete the jobs, and when nothing is left of them, what belongs to the whole cluster."""
        jobs = kind_of(TRAINER, "TrainJob")
        every = f"metadata.namespace={self.namespace}"
        jobs.delete(namespace=self.namespace, field_selector=every, body={"propagationPolicy": "Background"})
        wait_until("all jobs are gone", lambda: not self.pods() and not jobs.get(namespace=self.namespace).items)
        for manifest in reversed(self._created):
            kind_of(manifest["apiVersion"], manifest["kind"]).delete(name=manifest["metadata"]["name"])

    def _create(self, manifest: dict[str, Any]) -> str:
        kind_of(manifest["apiVersion"], manifest["kind"]).create(body=manifest)
        self._created.append(manifest)
        return str(manifest["metadata"]["name"])


def _pods(namespace: str | None) -> list[dict[str, Any]]:
    answer = kind_of("v1", "Pod").get(namespace=namespace, serialize=False)
    found: list[dict[str, Any]] = json.loads(answer.data)["items"]
    return found


def simulated_pods() -> list[dict[str, Any]]:
    """All pods on simulated nodes, whatever their namespace."""
    return [pod for pod in _pods(None) if node_of(pod).startswith(simulated_nodes.NODE_PREFIX)]


def job_of(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["labels"][api.JOBSET_NAME_LABEL])


def node_of(pod: dict[str, Any]) -> str:
    return str(pod["spec"].get("nodeName", ""))


def leaf_of(node: str) -> str:
    """The leaf switch of a simulated node."""
    return str(simulated_nodes.node(node)["metadata"]["labels"][simulated_nodes.LEAF_LABEL])


@contextmanager
def cordoned(*nodes: str) -> Iterator[None]:
    """Nodes that take no more pods while the block runs."""
    core = client.CoreV1Api()
    for node in nodes:
        core.patch_node(node, {"spec": {"unschedulable": True}})
    try:
        yield
    finally:
        for node in nodes:
            core.patch_node(node, {"spec": {"unschedulable": False}})
