"""What `pulumi up` does to a stack that exists: exactly what was asked, seen in the cluster."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import Deploy, small_job
from tests.cluster.objects import (
    SCHEDULING,
    TRAINER,
    conditions,
    kind_of,
    listed,
    log,
    named,
    pods,
    wait_until,
)
from tests.cluster.program import Program
from tests.cluster.watching import Gangs, watching_pods

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

QUICK = Path(__file__).with_name("quick_worker.py")
RUNNING = {"script": str(QUICK), "env": {"SECONDS": "600"}, "awaitCompletion": False, "resources": {"cpu": "50m"}}


def running(namespace: str) -> list[dict[str, Any]]:
    """The pods whose script has started."""
    alive = [pod for pod in pods(namespace) if pod["status"]["phase"] == "Running"]
    return [pod for pod in alive if "peers" in log(pod) and "deletionTimestamp" not in pod["metadata"]]


def peers(pod: dict[str, Any]) -> set[str]:
    """The addresses of the workers that the pod's TF_CONFIG names, as they were when its script began."""
    (line,) = [line for line in log(pod).splitlines() if line.startswith("peers ")]
    return set(line.split()[1:])


def the_job(namespace: str) -> dict[str, Any]:
    return named(TRAINER, "TrainJob", "digits", namespace)


def assert_the_gang_knows_only_itself(namespace: str, size: int = 2) -> None:
    wait_until("the gang runs", lambda: len(running(namespace)) == size)
    gang = running(namespace)
    addresses = {str(pod["status"]["podIP"]) for pod in gang}
    assert [peers(pod) for pod in gang] == [addresses] * size


Edits = list[tuple[dict[str, Any], set[str]]]
"""Edits of the config, each with the kinds that they touch."""
REPLACED: Edits = [
    ({"env": {"SECONDS": "600", "NEW": "1"}}, {"TrainJob"}),
    ({"runId": "again"}, {"TrainJob"}),
    ({"resources": {"cpu": "60m"}}, {"TrainJob"}),
    ({"numNodes": 3}, {"TrainJob"}),
]
IN_PLACE: Edits = [
    ({"volcano": {"queue": {"weight": 7, "capability": {"cpu": "1"}}}}, {"Queue"}),
    ({"tolerations": [{"key": "gpu", "operator": "Exists"}]}, {"ClusterTrainingRuntime"}),
]


def with_queue_name(namespace: str, change: dict[str, Any]) -> dict[str, Any]:
    """`volcano` in the config is one object: an edit of its queue's weight keeps its queue's name."""
    if "volcano" in change:
        return {"volcano": {"queue": small_job(namespace)["volcano"]["queue"] | change["volcano"]["queue"]}}
    return change


@pytest.fixture
def gangs(namespace: str) -> Iterator[Gangs]:
    with watching_pods(namespace) as found:
        yield found


def test_a_running_job_is_replaced_by_what_changes_its_run_and_by_nothing_else(
    deploy: Deploy, namespace: str, gangs: Gangs, tmp_path: Path
) -> None:
    program = deploy(**RUNNING)
    program.up()
    assert_the_gang_knows_only_itself(namespace)

    for change, want in IN_PLACE:
        before = the_job(namespace)["metadata"]["uid"]
        program.edit(with_queue_name(namespace, change))
        assert set(program.up().changed) == want
        assert the_job(namespace)["metadata"]["uid"] == before
    assert len(gangs.pods) == 1

    size = 2
    for change, want in REPLACED:
        program.edit(change)
        size = change.get("numNodes", size)
        assert program.up().changed == dict.fromkeys(want, "create-replacement")
        assert_the_gang_knows_only_itself(namespace, size)

    script = tmp_path / "other_worker.py"
    script.write_text(QUICK.read_text() + "# edited\n")
    program.edit({"script": str(script)})
    assert set(program.up().changed) == {"ConfigMap", "ClusterTrainingRuntime", "TrainJob"}
    assert_the_gang_knows_only_itself(namespace, size)

    program.edit({"maxRestarts": 1})
    assert set(program.up().changed) == {"ClusterTrainingRuntime", "TrainJob"}
    assert_the_gang_knows_only_itself(namespace, size)

    program.edit({"image": "localhost/no/such:image"})
    assert set(program.up().changed) == {"TrainJob"}
    wait_until("pods of the new image", lambda: len(gangs.pods) == 8)
    assert gangs.overlaps == []
    assert gangs.sizes == [2, 2, 2, 2, 3, 3, 3, 3]


def replace_in_a_row(program: Program, namespace: str, times: int) -> None:
    with watching_pods(namespace) as gangs:
        for number in range(times):
            program.edit({"runId": str(number)})
            program.up()
            assert "Complete" in conditions(the_job(namespace))
    assert gangs.overlaps == []
    assert gangs.sizes == [2] * times


def test_three_replaces_in_a_row_all_complete(deploy: Deploy, namespace: str) -> None:
    replace_in_a_row(deploy(script=str(QUICK)), namespace, 3)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_twenty_replaces_of_a_training_in_a_row_all_complete(deploy: Deploy, namespace: str) -> None:
    replace_in_a_row(deploy(epochs=2), namespace, 20)


@pytest.mark.parametrize("waits", [False, True], ids=["not waiting", "waiting for the end"])
def test_suspending_and_resuming_keep_the_job(deploy: Deploy, namespace: str, waits: bool) -> None:
    program = deploy(**RUNNING)
    program.up()
    wait_until("the gang runs", lambda: len(running(namespace)) == 2)
    uid = the_job(namespace)["metadata"]["uid"]

    program.edit({"suspend": True, "awaitCompletion": waits})
    start = time.monotonic()
    assert program.up().changed == {"TrainJob": "update"}
    assert time.monotonic() - start < 60
    wait_until("no pods are left", lambda: pods(namespace) == [])

    program.edit({"suspend": False})
    if not waits:
        assert program.up().changed == {"TrainJob": "update"}
        wait_until("the gang runs again", lambda: len(running(namespace)) == 2)
    else:
        up = program.command("up", "--yes", "--skip-preview")
        wait_until("the gang runs again", lambda: len(running(namespace)) == 2)
        assert up.poll() is None  # it waits, as it was told to
        up.kill()
        up.wait()
        program.stack.cancel()
    assert the_job(namespace)["metadata"]["uid"] == uid


def test_a_failed_job_fails_every_update_with_the_worker_until_it_is_run_again(deploy: Deploy, namespace: str) -> None:
    program = deploy(script=str(QUICK), env={"FAILING": "1"}, maxRestarts=0)
    for _ in range(2):
        output = program.failing_up().output
        assert "the TrainJob Failed" in output
        assert "change runId to retry" in output
        assert "worker 1 (digits-node-0-1-" in output
        assert "failed first, with exit code 3; its last lines:" in output
        assert "no luck today" in output
        assert "Traceback" not in output
    uid = the_job(namespace)["metadata"]["uid"]

    program.edit({"env": {}, "runId": "retry"})
    assert program.up().changed == {"TrainJob": "create-replacement"}
    assert the_job(namespace)["metadata"]["uid"] != uid
    assert "Complete" in conditions(the_job(namespace))


def test_a_job_past_its_deadline_fails_the_update_with_the_reason(deploy: Deploy) -> None:
    output = deploy(**RUNNING | {"awaitCompletion": True, "deadline": 5}).failing_up().output
    assert "the TrainJob Failed (DeadlineExceeded)" in output


def test_a_gang_that_does_not_start_says_why_while_it_is_waited_for(deploy: Deploy, namespace: str) -> None:
    program = deploy(script=str(QUICK), data={"hostPath": "/no/such/folder"}, awaitTimeout=20)
    output = program.failing_up().output
    assert "FailedMount" in output
    assert "hostPath type check failed: /no/such/folder is not a directory" in output


def test_refresh_of_an_untouched_stack_shows_nothing_and_what_was_edited_by_hand_is_set_back(
    deploy: Deploy, namespace: str
) -> None:
    program = deploy(script=str(QUICK))
    program.up()
    assert program.stack.refresh().summary.resource_changes == {"same": 16}

    queue = f"{namespace}-queue"
    kind_of(SCHEDULING, "Queue").patch(
        name=queue, body={"spec": {"weight": 9}}, content_type="application/merge-patch+json"
    )
    kind_of("networking.k8s.io/v1", "NetworkPolicy").delete(name="digits", namespace=namespace)
    drift = program.preview(refresh=True)
    assert set(drift.changed) == {"Queue", "NetworkPolicy"}
    assert program.up(refresh=True).changed == {"Queue": "update", "NetworkPolicy": "create"}
    assert named(SCHEDULING, "Queue", queue)["spec"]["weight"] == 1
    assert [item["metadata"]["name"] for item in listed("networking.k8s.io/v1", "NetworkPolicy", namespace)] == [
        "digits"
    ]
    assert program.up(refresh=True).changed == {}
