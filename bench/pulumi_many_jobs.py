"""A stack with 500 TrainJobs: what a job costs there, and in a stack with fewer.

    python -m bench.pulumi_many_jobs [jobs ...]

A sweep as in examples/sweep, one runtime and a TrainJob and a NetworkPolicy for each job, on the embedded cluster. The
jobs are suspended, so that only Pulumi, the API server and the controllers work: no pod starts. For each size the stack
is previewed, made, previewed again with no changes, and destroyed. Growth is linear when a job costs the same in a
large stack as in a small one; what a stack without jobs takes is subtracted from both.

Pulumi's engine puts the whole state together anew at every step, in a preview too, which grows with the square of the
number of resources, whatever the program ([pulumi#10668](https://github.com/pulumi/pulumi/issues/10668)). What is said
of growth was therefore measured with PULUMI_SKIP_CHECKPOINTS=true, and for the smallest size beside it stands the same
without. (In previews the variable is always safe, in updates it is not: a killed one would leave no state.) With
checkpoints, `pulumi up` of 500 jobs took 19 minutes, 2.3 s for each.

The program's own share (settings read and checked, arguments made, manifests built) is measured without an engine.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.gangs import Cluster, pulumi
from bench.reporting import report, report_beside
from components import settings as config
from components import stack
from components.network import policy_manifest
from components.train_job import train_job_manifest
from tests.cluster.program import PROJECT, Project

SIZES = [100, 500]
NO_CHECKPOINTS = {"PULUMI_SKIP_CHECKPOINTS": "true"}
ROUNDS = 5
"""Of the program's own share."""
COMMANDS = ("preview of a new stack", "pulumi up", "preview with no changes")
PROGRAM = f"""
import asyncio
import gc
import sys

import pulumi

sys.path.insert(0, {str(PROJECT)!r})

from components.network import GangNetworkPolicy
from components.train_job import TrainJob
from components.trainer_scripts import TrainerScripts
from components.training_runtime import TensorFlowRuntime

gc.disable()  # this, and the wait at the end, as in examples/sweep


async def main():
    config = pulumi.Config()
    namespace = config.require("namespace")
    scripts = TrainerScripts("scripts", {{"namespace": namespace}})
    runtime = TensorFlowRuntime(
        "runtime", {{"runtime_name": f"{{namespace}}-runtime", "scripts_config_map": scripts.config_map_name}}
    )
    jobs = []
    for index in range(config.require_int("jobs")):
        name = f"sweep-{{index}}"
        policy = GangNetworkPolicy(name, {{"namespace": namespace, "job_name": name}})
        job = TrainJob(
            name,
            {{
                "job_name": name,
                "namespace": namespace,
                "runtime_name": runtime.runtime_name,
                "num_nodes": 2,
                "env": {{"LEARNING_RATE": str(index)}},
                "run_trigger": [scripts.config_map_name],
                "suspend": True,
            }},
            pulumi.ResourceOptions(depends_on=[policy]),
        )
        jobs.append(job)
    await asyncio.gather(*(job.job_name.future() for job in jobs), return_exceptions=True)


pulumi.run(main)
"""


def own_share(jobs: int) -> float:
    """Seconds of the program itself for so many jobs."""
    started = time.perf_counter()
    for index in range(jobs):
        values = {"numNodes": "2", "job": json.dumps({"name": f"sweep-{index}"}), "epochs": str(index + 1)}
        settings = config.parse(values)
        train_job_manifest(stack.job_args(settings, frozenset(), "runtime", "scripts"))
        policy_manifest(settings.job.name, settings.namespace)
    return time.perf_counter() - started


def commands(cluster: Cluster, jobs: int, **environment: str) -> list[float]:
    """Seconds of each of COMMANDS on a stack with so many jobs."""
    with tempfile.TemporaryDirectory() as temporary, cluster.namespace() as namespace:
        folder = Path(temporary) / "project"
        folder.mkdir()
        (folder / "Pulumi.yaml").write_text("name: sweep\nruntime: python\n")
        (folder / "__main__.py").write_text(PROGRAM)
        project = Project(folder, Path(temporary) / "state", {"namespace": namespace, "jobs": str(jobs)})
        seconds = [
            pulumi(project, "preview", **environment),
            pulumi(project, "up", "--yes", "--skip-preview", **environment),
            pulumi(project, "preview", "--expect-no-changes", **environment),
        ]
        pulumi(project, "destroy", "--yes", "--skip-preview", **NO_CHECKPOINTS)
    return seconds


def report_own_share(jobs: int) -> None:
    milliseconds = [1000 * own_share(jobs) / jobs for _ in range(ROUNDS)]
    report(
        f"the program's own share of a job, {jobs} jobs",
        statistics.median(milliseconds),
        "ms",
        range=[round(min(milliseconds), 4), round(max(milliseconds), 4)],
        runs=ROUNDS,
        goal="at most 2 ms",
    )


def measured(cluster: Cluster, sizes: list[int], **environment: str) -> dict[int, list[float]]:
    """Seconds of each of COMMANDS for each job, at each size."""
    without_jobs = commands(cluster, 0, **environment)
    return {
        jobs: [
            (seconds - base) / jobs
            for seconds, base in zip(commands(cluster, jobs, **environment), without_jobs, strict=True)
        ]
        for jobs in sizes
    }


def report_growth(sizes: list[int], bare: dict[int, list[float]], checkpointed: dict[int, list[float]]) -> None:
    """What a job costs at each size, beside the smallest, and beside the engine as it comes."""
    smallest, *larger = sorted(sizes)
    for index, command in enumerate(COMMANDS):
        for jobs in larger:
            report_job(
                f"{command}, for each of {jobs} jobs",
                bare[jobs][index],
                f"for each of {smallest}",
                bare[smallest][index],
                goal="linear: at most 1.25 times",
            )
        name = f"{command} with the engine's checkpoints, for each of {smallest} jobs"
        report_job(name, checkpointed[smallest][index], "without", bare[smallest][index])


def report_job(name: str, seconds: float, peer: str, theirs: float, **more: str) -> None:
    report_beside(name, "s", seconds, peer, theirs, seconds / theirs, **more)


def main(sizes: list[int]) -> None:
    """Measure and report, for these numbers of jobs."""
    report_own_share(max(sizes))
    cluster = Cluster()
    report_growth(sizes, measured(cluster, sizes, **NO_CHECKPOINTS), measured(cluster, [min(sizes)]))


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or SIZES)
