"""From `pulumi up` to a gang whose pods all run, against `kubectl apply` of the same objects.

Two real workers on the embedded cluster's one node, in turns: scripts, queue, runtime, network policy and job by the
program, then the same objects under other names by kubectl, then by a Pulumi program that declares them one after
another and nothing besides: no checks of the settings or the cluster, no components, no hooks. All start from nothing
and end when the kubelet says that both pods run. What engine and provider take to start at all, as the `pulumi up` of a
program with one ConfigMap shows it, is not counted against the program.
"""

import functools
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.gangs import JOB, KUBECTL, Cluster, minimal_pulumi_up, with_kubectl, with_plain_pulumi, with_pulumi
from bench.reporting import report_beside, report_pairs
from tests.cluster.conftest import small_job

PAIRS = 20
"""Many: Volcano looks once a second, so that a pod may wait for a second, or not at all."""
RESAMPLES = 10_000
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


def report_beyond(start: list[float], name: str, seconds: list[float], theirs: list[float], **more: Any) -> None:
    """Print what it took beyond the start: means, their ratio, and its 95 % interval by resampling the turns.

    Means, not the turns' own ratios: those are of differences as small as the second that a pod may wait for Volcano.
    """
    turns = list(zip(start, seconds, theirs, strict=True))
    chance = random.Random(0)  # noqa: S311  no secret
    ratios = [ratio(chance.choices(turns, k=len(turns))) for _ in range(RESAMPLES)]
    low, *_, high = statistics.quantiles(ratios, n=40)
    report_beside(
        f"{name}, without engine's and provider's start: means, and their ratio's 95 % interval",
        "s",
        statistics.fmean(seconds) - statistics.fmean(start),
        KUBECTL,
        statistics.fmean(theirs),
        ratio(turns),
        ratio_range=[round(low, 4), round(high, 4)],
        pairs=len(turns),
        **more,
    )


def ratio(turns: list[tuple[float, float, float]]) -> float:
    """What all turns took beyond their starts, by what kubectl took."""
    start, seconds, theirs = map(sum, zip(*turns, strict=True))
    return (seconds - start) / theirs


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
    whole = "from pulumi up to all pods Running"
    report_pairs(whole, "s", ours, KUBECTL, theirs)
    report_pairs(whole, "s", ours, PLAIN, plain)
    report_pairs("pulumi up of one ConfigMap", "s", start, KUBECTL, theirs)
    report_beyond(start, whole, ours, theirs, goal="at most 1.15 times")
    report_beyond(start, PLAIN, plain, theirs)


if __name__ == "__main__":
    main()
