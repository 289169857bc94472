"""Stacks and jobs side by side: what they share belongs to one of them, and is not taken from the others."""

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi.automation import CommandError

from components.api import RBAC_API
from tests.cluster.conftest import Deploy
from tests.cluster.objects import SCHEDULING, TRAINER, conditions, kind_of, listed, named, wait_until
from tests.cluster.program import PROJECT, STACK, Program, Project
from tests.cluster.test_updates import QUICK, RUNNING, running

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


OWNER = RUNNING | {"job": {"enabled": False}}
"""A stack of a queue and a runtime alone."""


def a_guest(deploy: Deploy, namespace: str, **changes: Any) -> Program:
    """A stack of a job alone, which uses the namespace's runtime and, through it, its queue."""
    own = {key: RUNNING[key] for key in ("env", "awaitCompletion", "resources")} | {"job": {"name": "guest"}} | changes
    return deploy(**own, runtime={"create": False, "name": f"{namespace}-runtime"}, volcano={}, data={}, image="")


def test_stacks_share_the_queue_and_the_runtime_of_another_and_leave_them_to_it(deploy: Deploy, namespace: str) -> None:
    queue, runtime = f"{namespace}-queue", f"{namespace}-runtime"
    owner = deploy(**OWNER)
    owner.up()
    one, two = (a_guest(deploy, namespace, job={"name": name}) for name in ("one", "two"))
    one.up()
    two.up()
    wait_until("both gangs run", lambda: len(running(namespace)) == 4)
    assert {group["spec"]["queue"] for group in listed(SCHEDULING, "PodGroup", namespace)} == {queue}
    uid = named(TRAINER, "TrainJob", "two", namespace)["metadata"]["uid"]

    one.destroy()
    wait_until("the first one's pods are gone", lambda: len(running(namespace)) == 2)
    assert named(TRAINER, "ClusterTrainingRuntime", runtime)
    assert named(SCHEDULING, "Queue", queue)
    assert named(TRAINER, "TrainJob", "two", namespace)["metadata"]["uid"] == uid
    assert owner.up(refresh=True).changed == {}


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        pytest.param(
            {},
            "Queue {0}-queue exists already and does not belong to this stack; set volcano.queue.create to false",
            id="the queue",
        ),
        pytest.param(
            {"volcano": {"enabled": False}},
            "ClusterTrainingRuntime {0}-runtime exists already and does not belong to this stack; set runtime.create "
            "to false",
            id="the runtime",
        ),
    ],
)
def test_a_second_stack_that_would_make_it_is_refused(
    deploy: Deploy, namespace: str, config: dict[str, Any], refused: str
) -> None:
    deploy(**OWNER).up()
    assert refused.format(namespace) in deploy(**OWNER | config).failing_up().output


def test_a_stack_for_others_is_replaced_and_destroyed_only_on_purpose_and_gangs_that_run_outlive_it(
    deploy: Deploy, namespace: str
) -> None:
    owner = deploy(**OWNER)
    owner.up()
    owner.edit({"maxRestarts": 1})
    assert "currently marked for protection" in owner.failing_up().output
    owner.unprotect()
    assert set(owner.up().changed) == {"ClusterTrainingRuntime"}

    guest = a_guest(deploy, namespace, env={"SECONDS": "20"})
    guest.up()
    wait_until("the guest's gang runs", lambda: len(running(namespace)) == 2)

    with pytest.raises(CommandError, match="cannot be deleted"):
        owner.destroy()
    assert owner.up(refresh=True).changed == {}, "nothing is gone"

    owner.unprotect()
    owner.destroy()
    wait_until("it ends well", lambda: "Complete" in conditions(named(TRAINER, "TrainJob", "guest", namespace)))


def test_a_guest_needs_no_more_rights_than_documented(
    deploy: Deploy, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(**OWNER).up()
    (text,) = re.findall(r"```yaml\n(apiVersion: rbac.*?)```", (PROJECT / "docs" / "sharing.md").read_text(), re.DOTALL)
    role = yaml.safe_load(text)
    role["metadata"]["namespace"] = namespace
    bound = {"kind": "Role", "name": role["metadata"]["name"], "apiGroup": RBAC_API.partition("/")[0]}
    binding = {
        "metadata": {"name": "guest"},
        "roleRef": bound,
        "subjects": [{"kind": "ServiceAccount", "name": "guest", "namespace": namespace}],
    }
    kind_of("v1", "ServiceAccount").create(namespace=namespace, body={"metadata": {"name": "guest"}})
    kind_of(RBAC_API, "Role").create(namespace=namespace, body=role)
    kind_of(RBAC_API, "RoleBinding").create(namespace=namespace, body=binding)
    command = ["kubectl", "create", "token", "guest", "--namespace", namespace]
    token = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603  all ours
    kubeconfig = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    for user in kubeconfig["users"]:
        user["user"] = {"token": token}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))

    guest = a_guest(deploy, namespace, env={"SECONDS": "1"}, awaitCompletion=True)
    with monkeypatch.context() as patch:
        patch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        guest.up()
        guest.set("runId", "again")
        assert set(guest.up().changed) == {"TrainJob"}
        guest.destroy()
    assert listed(TRAINER, "TrainJob", namespace) == []


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
    options = ["--yes", "--protect=false", "--generate-code=false", "--parent", f"parent={component}"]
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
    (folder / "Pulumi.sweep.yaml").rename(folder / f"Pulumi.{STACK}.yaml")
    sweep = Project(folder, tmp_path / "state", {"namespace": namespace})

    def kinds() -> Counter[str]:
        return Counter(key.split("/")[0] for key in sweep.preview().operations)

    shared = {"Queue": 1, "ConfigMap": 1, "ClusterTrainingRuntime": 1}
    assert kinds() == shared | {"TrainJob": 4, "NetworkPolicy": 4}
    one_more = sweep.command("config", "set", "--path", "learningRates[4]", "0.008")
    assert one_more.wait(60) == 0
    assert kinds() == shared | {"TrainJob": 5, "NetworkPolicy": 5}
