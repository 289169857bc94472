"""How long a gang of so many workers takes to have its nodes, on simulated nodes of the embedded cluster, and why.

    python -m bench.scale [workers ...]

From the start of `pulumi up` until Volcano has bound every pod, against `kubectl apply` of the very same objects, in
turns. kwok stands in for the kubelets; all else is real: the API server, Kubeflow Trainer, JobSet, the Job controller,
Volcano and its webhooks. A poller notes when the TrainJob, its JobSet, its Job, the last pod and the last binding can
be seen, which tells whose time it was. What the program adds is what `pulumi up` takes beyond an empty Pulumi program
and `kubectl apply` together.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config, dynamic
from kubernetes.dynamic.exceptions import NotFoundError

from bench.reporting import report, report_pairs
from devcluster import simulation
from devcluster.paths import Cache
from tests.cluster.program import STACK, Program
from tests.cluster.simulated import GPUS, NODE_SELECTOR, TOLERATIONS

SIZES = {10: 3, 100: 3, 1000: 2}
"""Workers, and how many pairs of runs."""
JOB = "gang"
POLL_SECONDS = 0.05
STAGES = ("Pulumi and the program", "Trainer", "JobSet", "Job controller", "Volcano")
"""Whose time it is until each milestone."""
EMPTY_PROGRAM = "import pulumi\n"


class Cluster:
    """Small questions to the API server, which is busy enough."""

    def __init__(self) -> None:
        config.load_kube_config()
        self._client = dynamic.DynamicClient(client.ApiClient())

    def exists(self, api_version: str, kind: str, name: str, namespace: str) -> bool:
        try:
            self._kind(api_version, kind).get(name=name, namespace=namespace, serialize=False)
        except NotFoundError:
            return False
        return True

    def pods(self, namespace: str) -> int:
        """How many there are: one of them, and the number of those left."""
        return self._count(namespace)

    def waits(self, namespace: str) -> bool:
        """Whether a pod has no node."""
        return self._count(namespace, field_selector="spec.nodeName=") > 0

    def _count(self, namespace: str, **query: str) -> int:
        answer = json.loads(self._kind("v1", "Pod").get(namespace=namespace, limit=1, serialize=False, **query).data)
        return len(answer["items"]) + int(answer["metadata"].get("remainingItemCount", 0))

    def _kind(self, api_version: str, kind: str) -> Any:
        return self._client.resources.get(api_version=api_version, kind=kind)

    @contextmanager
    def namespace(self) -> Iterator[str]:
        """A namespace of its own, gone with its pods at the end."""
        name = f"bench-{uuid.uuid4().hex[:6]}"
        self._kind("v1", "Namespace").create(body={"metadata": {"name": name}})
        yield name
        self._kind("v1", "Namespace").delete(name=name)
        while self.exists("v1", "Namespace", name, ""):
            time.sleep(0.5)


@dataclass
class Run:
    """One gang: seconds from the start of the command until each milestone could be seen."""

    size: int
    milestones: list[float] = field(default_factory=list)

    @property
    def total(self) -> float:
        return self.milestones[-1]

    @property
    def until_job(self) -> float:
        """Until the TrainJob exists: what the tool that creates it takes."""
        return self.milestones[0]

    @property
    def since_job(self) -> float:
        return self.total - self.until_job

    @property
    def stages(self) -> list[float]:
        return [after - before for before, after in zip([0.0, *self.milestones], self.milestones, strict=False)]


def measure(cluster: Cluster, namespace: str, size: int, create: Callable[[], None]) -> Run:
    """Run a command that creates the gang, and watch the gang get its nodes meanwhile."""
    run, started = Run(size), time.monotonic()
    command = threading.Thread(target=create)
    command.start()
    milestones: tuple[Callable[[], bool], ...] = (
        lambda: cluster.exists("trainer.kubeflow.org/v1alpha1", "TrainJob", JOB, namespace),
        lambda: cluster.exists("jobset.x-k8s.io/v1alpha2", "JobSet", JOB, namespace),
        lambda: cluster.exists("batch/v1", "Job", f"{JOB}-node-0", namespace),
        lambda: cluster.pods(namespace) == size,
        lambda: not cluster.waits(namespace),
    )
    for reached in milestones:
        while not reached():
            time.sleep(POLL_SECONDS)
        run.milestones.append(time.monotonic() - started)
    command.join()
    return run


def settings(namespace: str, size: int) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "numNodes": size,
        "job": {"name": JOB},
        "runtime": {"name": f"{namespace}-runtime"},
        "resources": {"gpu": GPUS},
        "nodeSelector": NODE_SELECTOR,
        "tolerations": TOLERATIONS,
        "volcano": {"queue": {"name": f"{namespace}-queue"}},
    }


def with_pulumi(cluster: Cluster, size: int) -> tuple[Run, list[dict[str, Any]]]:
    """One gang by `pulumi up`; also the objects that it made."""
    with tempfile.TemporaryDirectory() as folder, cluster.namespace() as namespace:
        program = Program(Path(folder), settings(namespace, size))
        run = measure(cluster, namespace, size, lambda: pulumi_up(program))
        objects = list(made_objects(program))
        program.destroy()
    return run, objects


def pulumi_up(program: Program) -> None:
    """As typed by a user, but for the preview."""
    tool("pulumi", "up", "--yes", "--skip-preview", "--stack", STACK, "--cwd", program.folder, env=environment(program))


def environment(program: Program) -> dict[str, str]:
    return os.environ | program.stack.workspace.env_vars


def tool(*words: str | Path, env: dict[str, str] | None = None) -> None:
    """Run a command; its output is of interest only if it fails."""
    subprocess.run(words, env=env, check=True, capture_output=True, text=True)  # noqa: S603


def empty_pulumi_up(folder: Path) -> float:
    """Seconds that `pulumi up` takes for a program that does nothing."""
    program = Program(folder, {})
    (program.folder / "__main__.py").write_text(EMPTY_PROGRAM)
    started = time.monotonic()
    pulumi_up(program)
    return time.monotonic() - started


def made_objects(program: Program) -> Iterator[dict[str, Any]]:
    """The Kubernetes objects in a stack, as the program described them."""
    for resource in (program.stack.export_stack().deployment or {})["resources"]:
        if resource["type"].startswith("kubernetes:"):
            yield {key: value for key, value in resource["inputs"].items() if not key.startswith("__")}


def with_kubectl(cluster: Cluster, size: int, objects: list[dict[str, Any]]) -> Run:
    """One gang by `kubectl apply` of the same objects under other names."""
    with tempfile.TemporaryDirectory() as folder, cluster.namespace() as namespace:
        old = next(item for item in objects if item["kind"] == "TrainJob")["metadata"]["namespace"]
        file = Path(folder) / "objects.yaml"
        file.write_text(yaml.safe_dump_all(objects).replace(old, namespace))
        run = measure(cluster, namespace, size, lambda: tool("kubectl", "apply", "--filename", file))
        tool("kubectl", "delete", "--filename", file)
    return run


def compare(cluster: Cluster, size: int, pairs: int) -> None:
    """Run both in turns for one size, and report."""
    ours: list[Run] = []
    theirs: list[Run] = []
    empty: list[float] = []
    for _ in range(pairs):
        run, objects = with_pulumi(cluster, size)
        ours.append(run)
        theirs.append(with_kubectl(cluster, size, objects))
        with tempfile.TemporaryDirectory() as folder:
            empty.append(empty_pulumi_up(Path(folder)))
    name, peer = f"{size} workers", "kubectl apply of the same objects"
    totals = [run.total for run in ours], [run.total for run in theirs]
    report_pairs(f"from pulumi up to all pods bound, {name}", "s", totals[0], peer, totals[1])
    for index, stage in enumerate(STAGES):
        mine, other = [run.stages[index] for run in ours], [run.stages[index] for run in theirs]
        report(
            f"of which {stage}, {name}",
            statistics.median(mine),
            "s",
            peer={"name": peer, "value": round(statistics.median(other), 4), "unit": "s"},
        )
    added = [one - other - base for one, other, base in zip(*totals, empty, strict=True)]
    shares = [100 * seconds / total for seconds, total in zip(added, totals[0], strict=True)]
    report(
        f"what the program adds, {name}",
        statistics.median(shares),
        "%",
        peer={
            "name": "an empty Pulumi program, and kubectl apply",
            "value": round(statistics.median(empty) + statistics.median(totals[1]), 4),
            "unit": "s",
        },
        range=[round(min(shares), 2), round(max(shares), 2)],
        pairs=pairs,
        goal="under 2 % at 1000 workers",
    )


def main(arguments: list[str]) -> None:
    """Compare for the sizes named, or for all of them."""
    cluster, cache = Cluster(), Cache.from_environment()
    before = simulation.recorded(cache)
    try:
        for size in [int(argument) for argument in arguments] or SIZES:
            simulation.scale(cache, size)
            compare(cluster, size, SIZES.get(size, 3))
    finally:
        simulation.scale(cache, before)


if __name__ == "__main__":
    main(sys.argv[1:])
