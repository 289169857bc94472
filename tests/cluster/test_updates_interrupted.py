"""An update that is interrupted at any time is finished by the next one: nothing doubled, nothing lost."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.cluster.conftest import Deploy
from tests.cluster.objects import SCHEDULING, TRAINER, conditions, listed, named, wait_until
from tests.cluster.program import Program
from tests.cluster.test_updates import QUICK, RUNNING, running
from tests.cluster.watching import watching_pods

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def killed_up(program: Program, after: float) -> None:
    """`pulumi up` whose processes are all killed, as when the machine loses its power."""
    up = program.command("up", "--yes", "--skip-preview")
    time.sleep(after)
    os.killpg(up.pid, signal.SIGKILL)
    up.wait()
    program.stack.cancel()  # `pulumi cancel`: the lock is still there


def made(namespace: str) -> dict[str, int]:
    """How many objects of the program's there are, by kind."""
    scripts = [item for item in listed("v1", "ConfigMap", namespace) if "trainer-scripts" in item["metadata"]["name"]]
    mine = [
        *listed(TRAINER, "TrainJob", namespace),
        *listed("networking.k8s.io/v1", "NetworkPolicy", namespace),
        *scripts,
        *(item for item in listed(SCHEDULING, "Queue") if namespace in item["metadata"]["name"]),
        *(item for item in listed(TRAINER, "ClusterTrainingRuntime") if namespace in item["metadata"]["name"]),
    ]
    kinds = [str(item["kind"]) for item in mine]
    return {kind: kinds.count(kind) for kind in kinds}


ALL_ONCE = {"ClusterTrainingRuntime": 1, "ConfigMap": 1, "NetworkPolicy": 1, "Queue": 1, "TrainJob": 1}


def test_control_c_while_waiting_leaves_the_run_alone_and_the_next_update_goes_on_waiting(
    deploy: Deploy, namespace: str
) -> None:
    program = deploy(**{**RUNNING, "env": {"SECONDS": "25"}, "awaitCompletion": True})
    up = program.command("up", "--yes", "--skip-preview")
    wait_until("the gang runs", lambda: len(running(namespace)) == 2)
    uid = named(TRAINER, "TrainJob", "digits", namespace)["metadata"]["uid"]
    up.send_signal(signal.SIGINT)
    output, _ = up.communicate(timeout=60)
    assert up.returncode != 0
    assert "Traceback" not in output

    program.up()
    job = named(TRAINER, "TrainJob", "digits", namespace)
    assert job["metadata"]["uid"] == uid
    assert "Complete" in conditions(job)
    assert program.up().changed == {}


def kill_often(program: Program, namespace: str, times: int, tmp_path: Path) -> None:
    """Kill first updates and updates of everything at random times, and finish each with one more update."""
    chance = random.Random(5)  # noqa: S311  a test's choice of moments
    for number in range(times):
        script = tmp_path / f"worker_{number}.py"
        script.write_text(f"{QUICK.read_text()}# {number}\n")
        queue = {"name": f"{namespace}-queue", "weight": number + 1}
        program.edit({"script": str(script), "volcano": {"queue": queue}})
        killed_up(program, chance.uniform(1.0, 6.0))
        program.up()
        assert made(namespace) == ALL_ONCE, number
        assert program.up().changed == {}, number
        assert named(SCHEDULING, "Queue", f"{namespace}-queue")["spec"]["weight"] == number + 1
        assert "Complete" in conditions(named(TRAINER, "TrainJob", "digits", namespace))
        if number % 2:
            program.destroy()
            wait_until("nothing is left", lambda: made(namespace) == {})


def test_killed_updates_are_finished_by_the_next(deploy: Deploy, namespace: str, tmp_path: Path) -> None:
    with watching_pods(namespace) as gangs:
        kill_often(deploy(env={"SECONDS": "1"}), namespace, 4, tmp_path)
    assert gangs.overlaps == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_thirty_killed_updates_are_finished_by_the_next(deploy: Deploy, namespace: str, tmp_path: Path) -> None:
    with watching_pods(namespace) as gangs:
        kill_often(deploy(env={"SECONDS": "1"}), namespace, 30, tmp_path)
    assert gangs.overlaps == []


def test_a_run_that_a_killed_update_began_to_wait_for_is_not_run_again(deploy: Deploy, namespace: str) -> None:
    program = deploy(**{**RUNNING, "env": {"SECONDS": "25"}, "awaitCompletion": True})
    up = program.command("up", "--yes", "--skip-preview")
    wait_until("the gang runs", lambda: len(running(namespace)) == 2)
    uid = named(TRAINER, "TrainJob", "digits", namespace)["metadata"]["uid"]
    os.killpg(up.pid, signal.SIGKILL)
    up.wait()
    program.stack.cancel()

    program.up()
    job = named(TRAINER, "TrainJob", "digits", namespace)
    assert job["metadata"]["uid"] == uid
    assert "Complete" in conditions(job)


def test_a_change_that_is_taken_back_after_its_update_was_killed_is_undone_by_an_update_with_a_refresh(
    deploy: Deploy, namespace: str
) -> None:
    program = deploy(**RUNNING)
    program.up()
    program.edit({"numNodes": 3})
    up = program.command("up", "--yes", "--skip-preview")
    wait_until("the old job is gone", lambda: not listed(TRAINER, "TrainJob", namespace))
    os.killpg(up.pid, signal.SIGKILL)
    up.wait()
    program.stack.cancel()

    program.edit({"numNodes": 2})
    program.up(refresh=True)
    wait_until("the gang runs", lambda: len(running(namespace)) == 2)
    assert made(namespace) == ALL_ONCE
    assert program.up().changed == {}
