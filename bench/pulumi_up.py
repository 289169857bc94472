"""From `pulumi up` to a gang whose pods all run, against `kubectl apply` of the same objects.

Two real workers on the embedded cluster's one node, in turns: scripts, queue, runtime, network policy and job by the
program, then the same objects under other names by kubectl, then by a Pulumi program that declares them one after
another and nothing besides: no checks of the settings or the cluster, no components, no hooks. All start from nothing
and end when the kubelet says that both pods run. What engine and provider take to start at all, as the `pulumi up` of a
program with one ConfigMap shows it in the same turn, is not counted against the program.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.gangs import JOB, KUBECTL, Cluster, minimal_pulumi_up, with_kubectl, with_plain_pulumi, with_pulumi
from bench.reporting import report_pairs
from tests.cluster.conftest import small_job

PAIRS = 12
"""Many: Volcano looks once a second, so that a pod may wait for a second, or not at all."""
WORKERS = 2
PLAIN = "a plain Pulumi program of the same objects"
EPOCHS = 1000
"""More than anybody waits for: the gang is deleted as soon as it runs."""


def settings(namespace: str) -> Mapping[str, Any]:
    return small_job(namespace) | {
        "numNodes": WORKERS,
        "epochs": EPOCHS,
        "job": {"name": JOB},
        "awaitCompletion": False,
    }


def all_run(cluster: Cluster, namespace: str) -> Sequence[Callable[[], bool]]:
    return (lambda: cluster.running(namespace) == WORKERS,)


def beyond(start: list[float], seconds: list[float]) -> list[float]:
    """What it took beyond the start of the same turn."""
    return [whole - least for whole, least in zip(seconds, start, strict=True)]


def main() -> None:
    """Measure and report."""
    cluster = Cluster()
    milestones = functools.partial(all_run, cluster)
    ours: list[float] = []
    theirs: list[float] = []
    plain: list[float] = []
    start: list[float] = []
    for _ in range(PAIRS):
        (seconds,), objects = with_pulumi(cluster, settings, milestones)
        ours.append(seconds)
        theirs += with_kubectl(cluster, objects, milestones)
        plain += with_plain_pulumi(cluster, objects, milestones)
        start.append(minimal_pulumi_up(cluster))
    whole, without_start = "from pulumi up to all pods Running", "without engine's and provider's start"
    report_pairs(whole, "s", ours, KUBECTL, theirs)
    report_pairs(whole, "s", ours, PLAIN, plain)
    report_pairs("pulumi up of one ConfigMap", "s", start, KUBECTL, theirs)
    report_pairs(f"{whole}, {without_start}", "s", beyond(start, ours), KUBECTL, theirs, goal="at most 1.15 times")
    report_pairs(f"{PLAIN}, {without_start}", "s", beyond(start, plain), KUBECTL, theirs)


if __name__ == "__main__":
    main()
