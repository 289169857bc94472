"""Both templates as real Volcano Jobs: PyTorch's DistributedDataParallel between the pods of one gang.

What the agent would do with a template is done by the agent's own function for macros, and by one for its environment.
"""

from typing import Any

import pytest
from wandb.sdk.launch.utils import recursive_macro_sub

from components.launch_template import tutorial
from components.volcano_job import volcano_job
from tests.cluster.objects import wait_until
from tests.launch.builders import a_hardened_template
from tests.launch.images import SCRIPT_IN_IMAGE, TRAINING_IMAGE
from tests.launch.volcano import FINAL, Job, submit

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

WORKERS = 2
DIE_IN_TRAINING = f"""
import os, runpy, threading
if os.environ["RANK"] == "2":
    threading.Timer(8, os._exit, (3,)).start()
runpy.run_path({SCRIPT_IN_IMAGE!r}, run_name="__main__")
"""
DIE_BEFORE_IT = DIE_IN_TRAINING.replace("threading.Timer(8, os._exit, (3,)).start()", "raise SystemExit(3)")


def as_launched(template: dict[str, Any], namespace: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    macros: dict[str, str | None] = {
        "image_uri": TRAINING_IMAGE,
        "run_id": "abcd1234",
        "entity_name": "team",
        "project_name": "demo",
    }
    job: dict[str, Any] = recursive_macro_sub(template, macros)
    job["metadata"]["namespace"] = namespace
    for task in job["spec"]["tasks"]:
        container = task["template"]["spec"]["containers"][0]
        container["env"] = [
            *container.get("env", []),
            *({"name": k, "value": v} for k, v in {"WANDB_MODE": "disabled", "EPOCHS": "3", **(env or {})}.items()),
        ]
    return job


def python(code: str) -> list[str]:
    return ["python3", "-u", "-c", code]


@pytest.mark.parametrize(
    "template",
    [
        pytest.param(volcano_job(tutorial(WORKERS)), id="the tutorial's"),
        pytest.param(a_hardened_template(replicas=WORKERS), id="the hardened one"),
    ],
)
def test_a_gang_trains_together(namespace: str, template: dict[str, Any]) -> None:
    job = submit(namespace, as_launched(template, namespace))
    job.wait_for(*FINAL)
    assert job.phase == "Completed"
    address = f"{job.name}-master-0.{job.name}"
    assert job.ranks == {
        "master-0": (0, 3, address),
        "worker-0": (1, 3, address),
        "worker-1": (2, 3, address),
    }
    assert job.losses == sorted(job.losses, reverse=True)
    assert len(job.losses) == 3


def test_a_worker_that_dies_in_training_fails_the_hardened_job_and_leaves_its_log(namespace: str) -> None:
    template = a_hardened_template(replicas=WORKERS, command=python(DIE_IN_TRAINING))
    job = submit(namespace, as_launched(template, namespace, {"STEP_SECONDS": "0.2", "EPOCHS": "20"}))
    assert job.wait_for(*FINAL) == "Failed"
    assert job.ranks["worker-1"][0] == 2


def test_a_worker_that_dies_before_training_ends_the_hardened_job_and_leaves_its_pod(namespace: str) -> None:
    template = a_hardened_template(replicas=WORKERS, command=python(DIE_BEFORE_IT))
    job = submit(namespace, as_launched(template, namespace))
    assert job.wait_for(*FINAL) in {"Failed", "Terminated"}
    assert job.pods["worker-1"]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_in_the_tutorials_template_a_failing_worker_starts_again_for_ever(namespace: str) -> None:
    template = volcano_job(tutorial(1))
    template["spec"]["tasks"][1]["template"]["spec"]["containers"][0]["command"] = python("raise SystemExit(3)")
    job = submit(namespace, as_launched(template, namespace))

    def restarted() -> bool:
        statuses = job.pods.get("worker-0", {}).get("status", {}).get("containerStatuses", [])
        return bool(statuses) and statuses[0]["restartCount"] >= 2

    wait_until("the worker was started three times", restarted)
    assert job.phase == "Running"


def test_the_gangs_size_is_all_of_it(namespace: str) -> None:
    from tests.cluster.objects import named

    job: Job = submit(namespace, as_launched(a_hardened_template(replicas=WORKERS), namespace))
    assert named("batch.volcano.sh/v1alpha1", "Job", job.name, namespace)["spec"]["minAvailable"] == WORKERS + 1
