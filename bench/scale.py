"""How long a gang of so many workers takes to have its nodes, on simulated nodes of the embedded cluster, and why.

    python -m bench.scale [workers ...]

From the start of `pulumi up` until Volcano has bound every pod, against `kubectl apply` of the very same objects, in
turns. kwok stands in for the kubelets; all else is real: the API server, Kubeflow Trainer, JobSet, the Job controller,
Volcano and its webhooks. A poller notes when the TrainJob, its JobSet, its Job, the last pod and the last binding can
be seen, which tells whose time it was. What the program adds is what it takes to the TrainJob beyond the `pulumi
up` of one ConfigMap and `kubectl apply` together; from there on the cluster is on its own.
"""

import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from bench.gangs import JOB, KUBECTL, Cluster, minimal_pulumi_up, with_kubectl, with_pulumi
from bench.reporting import report, report_pairs
from devcluster import simulation
from devcluster.paths import Cache
from tests.cluster.simulated import GPUS, NODE_SELECTOR, TOLERATIONS

SIZES = {10: 3, 100: 3, 1000: 1}
"""Workers, and how many pairs of runs."""
STAGES = ("Pulumi and the program", "Trainer", "JobSet", "Job controller", "Volcano")
"""Whose time it is until each milestone."""


def milestones(cluster: Cluster, size: int, namespace: str) -> Sequence[Callable[[], bool]]:
    return (
        lambda: cluster.exists("trainer.kubeflow.org/v1alpha1", "TrainJob", JOB, namespace),
        lambda: cluster.exists("jobset.x-k8s.io/v1alpha2", "JobSet", JOB, namespace),
        lambda: cluster.exists("batch/v1", "Job", f"{JOB}-node-0", namespace),
        lambda: cluster.pods(namespace) == size,
        lambda: not cluster.waits(namespace),
    )


def stages(seconds: list[float]) -> list[float]:
    """How long each stage took, of the seconds until each milestone."""
    return [after - before for before, after in zip([0.0, *seconds], seconds, strict=False)]


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


def compare(cluster: Cluster, size: int, pairs: int) -> None:
    """Run both in turns for one size, and report."""
    ours: list[list[float]] = []
    theirs: list[list[float]] = []
    start: list[float] = []
    for _ in range(pairs):
        seconds, objects = with_pulumi(
            cluster, lambda namespace: settings(namespace, size), lambda namespace: milestones(cluster, size, namespace)
        )
        ours.append(seconds)
        theirs.append(with_kubectl(cluster, objects, lambda namespace: milestones(cluster, size, namespace)))
        start.append(minimal_pulumi_up(cluster))
    name = f"{size} workers"
    totals = [seconds[-1] for seconds in ours], [seconds[-1] for seconds in theirs]
    report_pairs(f"from pulumi up to all pods bound, {name}", "s", totals[0], KUBECTL, totals[1])
    for index, stage in enumerate(STAGES):
        mine, other = [stages(one)[index] for one in ours], [stages(one)[index] for one in theirs]
        report(
            f"of which {stage}, {name}",
            statistics.median(mine),
            "s",
            peer={"name": KUBECTL, "value": round(statistics.median(other), 4), "unit": "s"},
        )
    added = [one[0] - other[0] - base for one, other, base in zip(ours, theirs, start, strict=True)]
    shares = [100 * seconds / total for seconds, total in zip(added, totals[0], strict=True)]
    report(
        f"what the program adds, {name}",
        statistics.median(shares),
        "%",
        peer={
            "name": "pulumi up of one ConfigMap, and kubectl apply",
            "value": round(statistics.median(start) + statistics.median(totals[1]), 4),
            "unit": "s",
        },
        range=[round(min(shares), 2), round(max(shares), 2)],
        pairs=pairs,
        goal="under 2 % at 1000 workers",
    )


def have_nodes(count: int) -> None:
    """So many simulated nodes; what is said meanwhile is no figure."""
    command = [sys.executable, "-m", "devcluster", "up", f"--simulated-nodes={count}"]
    subprocess.run(command, check=True, stdout=sys.stderr)  # noqa: S603 (our own module)


def main(arguments: list[str]) -> None:
    """Compare for the sizes named, or for all of them."""
    cluster, before = Cluster(), simulation.recorded(Cache.from_environment())
    try:
        for size in [int(argument) for argument in arguments] or SIZES:
            have_nodes(size)
            compare(cluster, size, SIZES.get(size, 3))
    finally:
        have_nodes(before)


if __name__ == "__main__":
    main(sys.argv[1:])
