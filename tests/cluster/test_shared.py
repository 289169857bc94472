"""Stacks and jobs side by side: what they share belongs to one of them, and is not taken from the others."""

import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import Deploy
from tests.cluster.objects import SCHEDULING, TRAINER, kind_of, listed, named, wait_until
from tests.cluster.program import PROJECT, Program, Project
from tests.cluster.test_updates import QUICK, RUNNING, running

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

CLUSTER_SCOPED = ((TRAINER, "ClusterTrainingRuntime"), (SCHEDULING, "Queue"))
SETTLED_SECONDS = 10
"""Time for the controllers to take away what they would wrongly take away."""


def a_guest(deploy: Deploy, namespace: str) -> Program:
    """A stack of a job alone, which uses the namespace's runtime and, through it, its queue."""
    own = {key: RUNNING[key] for key in ("env", "awaitCompletion", "resources")}
    runtime = {"create": False, "name": f"{namespace}-runtime"}
    return deploy(**own, job={"name": "guest"}, runtime=runtime, volcano={}, data={})


def the_runtime(namespace: str) -> dict[str, Any]:
    return named(TRAINER, "ClusterTrainingRuntime", f"{namespace}-runtime")


def test_two_stacks_share_a_queue_and_a_runtime(deploy: Deploy, namespace: str) -> None:
    queue, runtime = f"{namespace}-queue", f"{namespace}-runtime"
    owner = deploy(**RUNNING)
    owner.up()
    refused = deploy(**RUNNING, job={"name": "second"}).failing_up().output
    for kind, name, setting in (
        ("Queue", queue, "volcano.queue.create"),
        ("ClusterTrainingRuntime", runtime, "runtime.create"),
    ):
        assert f"{kind} {name} exists already and does not belong to this stack; set {setting} to false" in refused

    guest = a_guest(deploy, namespace)
    guest.up()
    wait_until("both gangs run", lambda: len(running(namespace)) == 4)
    assert {group["spec"]["queue"] for group in listed(SCHEDULING, "PodGroup", namespace)} == {queue}
    uid = named(TRAINER, "TrainJob", "digits", namespace)["metadata"]["uid"]

    guest.destroy()
    wait_until("the guest's pods are gone", lambda: len(running(namespace)) == 2)
    assert named(TRAINER, "ClusterTrainingRuntime", runtime)
    assert named(SCHEDULING, "Queue", queue)
    assert named(TRAINER, "TrainJob", "digits", namespace)["metadata"]["uid"] == uid
    assert owner.up(refresh=True).changed == {}


def test_a_destroy_leaves_a_runtime_that_is_in_use_until_it_is_not(deploy: Deploy, namespace: str) -> None:
    owner = deploy(**RUNNING | {"job": {"enabled": False}})
    owner.up()
    guest = a_guest(deploy, namespace)
    guest.up()
    wait_until("the guest's gang runs", lambda: len(running(namespace)) == 2)
    destroy = owner.command("destroy", "--yes", "--skip-preview")
    wait_until("the runtime is to go", lambda: "deletionTimestamp" in the_runtime(namespace)["metadata"])
    time.sleep(SETTLED_SECONDS)
    assert len(running(namespace)) == 2
    assert named(SCHEDULING, "Queue", f"{namespace}-queue")
    assert destroy.poll() is None

    guest.destroy()
    output, _ = destroy.communicate(timeout=120)
    assert destroy.returncode == 0, output
    names = {item["metadata"]["name"] for kind in CLUSTER_SCOPED for item in listed(*kind)}
    assert names.isdisjoint({f"{namespace}-queue", f"{namespace}-runtime"})


def test_an_existing_queue_is_imported_as_documented(deploy: Deploy, namespace: str) -> None:
    queue = f"{namespace}-queue"
    by_hand = {
        "apiVersion": SCHEDULING,
        "kind": "Queue",
        "metadata": {"name": queue},
        "spec": {"weight": 3, "reclaimable": True},
    }
    kind_of(SCHEDULING, "Queue").create(body=by_hand)
    uid = named(SCHEDULING, "Queue", queue)["metadata"]["uid"]
    program = deploy(script=str(QUICK))
    assert "exists already and does not belong to this stack" in program.failing_up().output

    component = "urn:pulumi:test::tftrainer::tftrainer:index:VolcanoQueue::queue"
    kind = "kubernetes:scheduling.volcano.sh/v1beta1:Queue"
    options = ["--yes", "--protect=false", "--generate-code=false", "--parent", f"queue={component}"]
    imported = program.command("import", kind, "queue", queue, *options)
    output, _ = imported.communicate()
    assert imported.returncode == 0, output

    program.up()
    live = named(SCHEDULING, "Queue", queue)
    assert (live["metadata"]["uid"], live["spec"]["weight"]) == (uid, 1)
    assert program.up().changed == {}


def test_the_sweep_example_is_a_job_for_each_rate(namespace: str, tmp_path: Path) -> None:
    folder = tmp_path / "examples" / "sweep"
    shutil.copytree(PROJECT / "examples" / "sweep", folder)
    for part in (".venv", "components", "trainer"):
        (tmp_path / part).symlink_to(PROJECT / part)
    preview = Project(folder, tmp_path / "state", {"namespace": namespace})
    kinds = Counter(key.split("/")[0] for key in preview.preview().operations)
    assert kinds == {"Queue": 1, "ConfigMap": 1, "ClusterTrainingRuntime": 1, "TrainJob": 4, "NetworkPolicy": 4}
