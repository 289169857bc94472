"""What an update says about a job that it waits for."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pulumi
import pytest

from components import diagnosis, waiting
from components.kubeconfig import Kubeconfig
from tests.unit.builders import an_event

FAILURE = "the TrainJob Failed (Why): what happened; change runId to retry"
FIRST = "worker 1 failed first"


def condition(kind: str, status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, "reason": "Why", "message": "what happened"}]}


@pytest.fixture(autouse=True)
def _cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kubeconfig, "of_stack", classmethod(lambda cls: cls()))
    monkeypatch.setattr(diagnosis, "first_failure", lambda *_: FIRST)


@pytest.fixture
def job() -> waiting.AwaitedJob:
    return waiting.AwaitedJob("ml", "digits")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings of an update that looks at its job all the time."""
    lines: list[str] = []
    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", 0)
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0)
    monkeypatch.setattr(pulumi.log, "warn", lines.append)
    return lines


def end(job: waiting.AwaitedJob, status: Any) -> None:
    asyncio.run(job.end(an_event("TrainJob", outputs={"status": status})))


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param(None, "", id="no status yet"),
        pytest.param({}, "", id="no conditions yet"),
        pytest.param(condition("Suspended"), "", id="suspended"),
        pytest.param(condition("Failed", "False"), "", id="not failed"),
        pytest.param(condition("Complete"), "Complete", id="complete"),
    ],
)
def test_how_a_job_ended(job: waiting.AwaitedJob, status: Any, want: str) -> None:
    end(job, status)
    assert job.result(status) == want


def test_a_job_that_fails_fails_the_update_with_its_reason_and_the_worker_once(job: waiting.AwaitedJob) -> None:
    with pytest.raises(RuntimeError) as failed:
        end(job, condition("Failed"))
    assert str(failed.value) == f"{FAILURE}\n{FIRST}"
    assert job.result(condition("Failed")) == "Failed"


def test_a_job_that_had_failed_fails_the_update_too(job: waiting.AwaitedJob) -> None:
    with pytest.raises(pulumi.RunError) as failed:
        job.result(condition("Failed"))
    assert str(failed.value) == f"{FAILURE}\n{FIRST}"


def test_a_failure_is_told_even_when_the_worker_cannot_be_found(
    job: waiting.AwaitedJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> str:
        raise RuntimeError("403 pods is forbidden")

    monkeypatch.setattr(diagnosis, "first_failure", refused)
    with pytest.raises(RuntimeError) as failed:
        end(job, condition("Failed"))
    assert str(failed.value) == f"{FAILURE}\nwhich worker failed first is not known: 403 pods is forbidden"


def test_a_job_that_somebody_deletes_is_told(
    job: waiting.AwaitedJob, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([None, "job", None])

    def look(*_: Any) -> list[str]:
        if next(looks, "over") is None:
            raise diagnosis.GoneError("TrainJob digits of namespace ml")
        if told:
            job._over.set()
        return []

    monkeypatch.setattr(diagnosis, "obstacles", look)
    job._tell_obstacles()
    assert told == [
        "TrainJob digits of namespace ml was deleted; nothing will come of this update: interrupt it, and make the job "
        "anew with `pulumi up --refresh`"
    ]


def test_each_obstacle_is_told_once_until_the_end(
    job: waiting.AwaitedJob, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Iterator[list[str]] = iter([["0/3 nodes have room"], ["0/4 nodes have room"], ["0/4 nodes have room", "no"]])

    def look(*_: Any) -> list[str]:
        if (found := next(looks, None)) is not None:
            return found
        job._over.set()
        return []

    monkeypatch.setattr(diagnosis, "obstacles", look)
    job._tell_obstacles()
    assert told == ["0/3 nodes have room", "no"]
