# ruff: noqa: E501  a row of the table is easier to read on one line
"""What the cluster's objects say about a gang that does not start, and about one that failed."""

from collections.abc import Iterator
from typing import Any

import pytest

from components import api
from components.diagnosis import first_failure, obstacles
from tests.unit.api_server import ApiServer, api_server

PODS = "/api/v1/namespaces/ml/pods"
GANG = f"{PODS}?labelSelector=jobset.sigs.k8s.io/jobset-name%3Ddigits"
EVENTS = "/api/v1/namespaces/ml/events"
JOB = f"/apis/{api.TRAINER_API}/namespaces/ml/trainjobs/digits"
GROUP = f"/apis/{api.VOLCANO_API}/namespaces/ml/podgroups/digits"
BEFORE, START, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A job whose pods are pending, for no reason that anybody tells."""
    with api_server() as server:
        server.answer(JOB, {"metadata": {"creationTimestamp": START}})
        server.answer(GANG, {"items": [a_pod(0), a_pod(1)]})
        server.answer(EVENTS, {"items": []})
        yield server


def a_pod(worker: int, phase: str = "Pending", **status: Any) -> dict[str, Any]:
    labels = {api.COMPLETION_INDEX_LABEL: str(worker)}
    return {
        "metadata": {"name": f"digits-node-0-{worker}-x", "labels": labels, "creationTimestamp": START},
        "status": {"phase": phase, **status},
    }


def ended(worker: int, code: int, at: str = LATER, reason: str = "Error") -> dict[str, Any]:
    terminated = {"exitCode": code, "finishedAt": at, "reason": reason}
    return a_pod(worker, "Failed" if code else "Succeeded", containerStatuses=[{"state": {"terminated": terminated}}])


def an_event(name: str, reason: str, message: str, kind: str = "Pod", at: str = LATER, **other: Any) -> dict[str, Any]:
    about = {"kind": kind, "name": name}
    return {
        "involvedObject": about,
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    } | other


def told(server: ApiServer) -> list[str]:
    return list(obstacles(server.kubeconfig, "ml", "digits"))


def test_nothing_is_told_of_a_gang_that_runs(server: ApiServer) -> None:
    server.answer(GANG, {"items": [a_pod(0, "Running"), a_pod(1, "Running")]})
    server.answer(EVENTS, {"items": [an_event("digits-node-0-0-x", "FailedMount", "a slow mount")]})
    assert told(server) == []


def test_no_room_for_the_gang(server: ApiServer) -> None:
    unschedulable = {"type": "Unschedulable", "message": "2/2 tasks in gang unschedulable: 1 Insufficient cpu"}
    server.answer(GROUP, {"spec": {"queue": "q"}, "status": {"phase": "Inqueue", "conditions": [unschedulable]}})
    server.answer(EVENTS, {"items": [an_event("digits-node-0-0-x", "FailedScheduling", "the same again")]})
    assert told(server) == ["Volcano does not start the gang: 2/2 tasks in gang unschedulable: 1 Insufficient cpu"]


def test_a_queue_that_is_full(server: ApiServer) -> None:
    server.answer(GROUP, {"spec": {"queue": "q"}, "status": {"phase": "Pending"}})
    full = an_event("digits", "Unschedulable", "queue resource quota insufficient", "PodGroup", type="Normal")
    server.answer(EVENTS, {"items": [full]})
    assert told(server) == ["the gang waits in queue q: queue resource quota insufficient"]


def test_no_node_without_volcano(server: ApiServer) -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
    server.answer(GANG, {"items": [a_pod(0, conditions=[condition])]})
    assert told(server) == ["no node for digits-node-0-0-x: 0/1 nodes are available"]


def test_an_image_that_cannot_be_fetched(server: ApiServer) -> None:
    waiting = {"reason": "ErrImagePull", "message": "no such\n image"}
    server.answer(GANG, {"items": [a_pod(0, containerStatuses=[{"state": {"waiting": waiting}}])]})
    server.answer(EVENTS, {"items": [an_event("digits-node-0-0-x", "Failed", "Error: ErrImagePull")]})
    assert told(server) == ["digits-node-0-0-x: ErrImagePull: no such image"]


@pytest.mark.parametrize(
    ("event", "want"),
    [
        pytest.param(
            an_event("digits-node-0-0-x", "FailedMount", "hostPath type check failed"),
            ["Pod digits-node-0-0-x: FailedMount: hostPath type check failed"],
            id="a folder that the node lacks",
        ),
        pytest.param(
            an_event("digits-node-0", "FailedCreate", "exceeded quota", "Job"),
            ["Job digits-node-0: FailedCreate: exceeded quota"],
            id="a quota of the namespace",
        ),
        pytest.param(
            an_event("digits", "TrainJobResourcesCreationFailed", "denied", "TrainJob"),
            ["TrainJob digits: TrainJobResourcesCreationFailed: denied"],
            id="the Trainer's own",
        ),
        pytest.param(
            {"involvedObject": {"name": "digits"}, "type": "Warning", "lastTimestamp": LATER, "reason": "Odd"},
            ["object digits: Odd"],
            id="one that says little",
        ),
        pytest.param(an_event("digits-node-0-0-y", "FailedMount", "x", at=BEFORE), [], id="of an earlier run"),
        pytest.param(an_event("digits2-node-0-0-x", "FailedMount", "x"), [], id="of another job"),
        pytest.param(an_event("digits", "Created", "x", "TrainJob", type="Normal"), [], id="no warning"),
    ],
)
def test_what_controllers_report(server: ApiServer, event: dict[str, Any], want: list[str]) -> None:
    server.answer(EVENTS, {"items": [event]})
    assert told(server) == want


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([ended(0, 1, LATER), ended(1, 7, START)], "worker 1 (digits-node-0-1-x) failed first, with exit code 7", id="the earlier"),
        pytest.param([ended(0, 1), ended(1, 7)], "worker 1 (digits-node-0-1-x) failed first, with exit code 7", id="not the one that lost the other"),
        pytest.param([ended(0, 143), ended(1, 137, reason="OOMKilled")], "worker 1 (digits-node-0-1-x) failed first, with exit code 137 (OOMKilled)", id="out of memory"),
        pytest.param([ended(0, 0), a_pod(1, "Failed", reason="Evicted", message="disk pressure")], "worker 1 (digits-node-0-1-x) failed first, Evicted: disk pressure", id="evicted"),
        pytest.param([], "", id="no pods left"),
    ],
)  # fmt: skip
def test_the_worker_that_failed_first(server: ApiServer, pods: list[dict[str, Any]], want: str) -> None:
    server.answer(GANG, {"items": pods})
    assert first_failure(server.kubeconfig, "ml", "digits") == want


def test_the_end_of_its_log(server: ApiServer) -> None:
    server.answer(GANG, {"items": [ended(1, 2)]})
    server.answers[f"{PODS}/digits-node-0-1-x/log?container=node&tailLines=10"] = (200, b"one\ntrain: no data\n")
    assert first_failure(server.kubeconfig, "ml", "digits") == (
        "worker 1 (digits-node-0-1-x) failed first, with exit code 2; its last lines:\n    one\n    train: no data"
    )
