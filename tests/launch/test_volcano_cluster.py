"""Both templates as real Volcano Jobs: PyTorch's DistributedDataParallel between the pods of one gang.

The macros are filled in by the agent's own function.
"""

from pathlib import Path
from typing import Any

import pytest
from wandb.sdk.launch.utils import recursive_macro_sub

from components.api import env_list
from components.launch_template import tutorial
from components.volcano_job import VOLCANO_JOB_API, volcano_job
from tests.cluster.objects import kind_of, named, wait_until
from tests.launch.builders import a_hardened_template
from tests.launch.images import SCRIPT_IN_IMAGE, TRAINING_IMAGE
from tests.launch.program import JOB_ALONE, Program
from tests.launch.volcano import FINAL, Job, submit

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

WORKERS = 2
DIE_IN_TRAINING = f"""
import os, runpy, threading
if os.environ["RANK"] == "2":
    threading.Timer(8, os._exit, (3,)).start()
runpy.run_path({SCRIPT_IN_IMAGE!r}, run_name="__main__")
"""
DIE_BEFORE_IT = DIE_IN_TRAINING.replace(
    "threading.Timer(8, os._exit, (3,)).start()", "print('dies'); raise SystemExit(3)"
)


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
        held = {variable["name"]: variable["value"] for variable in container.get("env", [])}
        container["env"] = env_list({**held, "WANDB_MODE": "disabled", "EPOCHS": "3", **(env or {})})
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
    job = submit(namespace, as_launched(template, namespace, {"STEP_SECONDS": "0.1"}))
    address = f"{job.name}-master-0.{job.name}"
    assert job.wait_for_ranks(WORKERS + 1) == {
        "master-0": (0, 3, address),
        "worker-0": (1, 3, address),
        "worker-1": (2, 3, address),
    }
    assert job.wait_for(*FINAL) == "Completed"
    assert job.losses == sorted(job.losses, reverse=True)
    assert len(job.losses) == 3


@pytest.mark.parametrize(
    "code", [pytest.param(DIE_IN_TRAINING, id="in training"), pytest.param(DIE_BEFORE_IT, id="before")]
)
def test_a_dying_worker_fails_the_hardened_job_after_the_last_attempt(namespace: str, code: str) -> None:
    template = a_hardened_template(replicas=WORKERS, command=python(code), max_retry=2)
    job = submit(namespace, as_launched(template, namespace, {"STEP_SECONDS": "0.2", "EPOCHS": "20"}))
    assert job.wait_for(*FINAL, seconds=300) == "Failed"
    # Fewer when the other ranks fail before Volcano has seen to the first one: then no pod is left to start again for.
    assert job.status.get("retryCount", 0) <= 2


def test_a_dying_worker_can_end_the_job_at_once_and_leave_its_log(namespace: str) -> None:
    template = a_hardened_template(replicas=WORKERS, command=python(DIE_BEFORE_IT), on_failure="terminate")
    job = submit(namespace, as_launched(template, namespace))
    assert job.wait_for(*FINAL) == "Terminated"
    assert job.pods["worker-1"]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert "dies" in job.log("worker-1")


def test_in_the_tutorials_template_a_failing_worker_starts_again_for_ever(namespace: str) -> None:
    template = volcano_job(tutorial(1))
    template["spec"]["tasks"][1]["template"]["spec"]["containers"][0]["command"] = python("raise SystemExit(3)")
    job = submit(namespace, as_launched(template, namespace))

    def restarted() -> bool:
        statuses = job.pods.get("worker-0", {}).get("status", {}).get("containerStatuses", [])
        return bool(statuses) and statuses[0]["restartCount"] >= 2

    wait_until("the worker was started three times", restarted)
    assert job.phase == "Running"


def test_after_an_eviction_the_gang_starts_again_and_completes(namespace: str) -> None:
    template = a_hardened_template(replicas=WORKERS)
    job = submit(namespace, as_launched(template, namespace, {"STEP_SECONDS": "0.2"}))
    job.wait_for_ranks(WORKERS + 1)
    kind_of("v1", "Pod").delete(name=f"{job.name}-worker-1", namespace=namespace)
    assert job.wait_for(*FINAL, seconds=300) == "Completed"
    assert job.status["retryCount"] == 1


def test_a_job_of_the_stacks_own_is_replaced_when_it_changes_and_gone_with_the_stack(
    namespace: str, tmp_path: Path
) -> None:
    program = Program(tmp_path, JOB_ALONE)
    task = {"name": "master", "replicas": 1, "image": TRAINING_IMAGE, "env": {"WANDB_MODE": "disabled"}}
    args = {"job_name": "alone", "namespace": namespace, "plugins": {"pytorch": ["--master=master"]}}
    program.set_job(**args, tasks=[task])
    program.up()
    job = Job(namespace, "alone")
    assert job.wait_for(*FINAL) == "Completed"
    program.set_job(**args, tasks=[task, {**task, "name": "worker"}])
    assert program.up() == {"same": 2, "replace": 1}
    assert job.wait_for(*FINAL) == "Completed"
    program.destroy()
    assert job.phase == "gone"


def test_the_gangs_size_is_all_of_it(namespace: str) -> None:
    job = submit(namespace, as_launched(a_hardened_template(replicas=WORKERS), namespace))
    assert named(VOLCANO_JOB_API, "Job", job.name, namespace)["spec"]["minAvailable"] == WORKERS + 1
