"""The hooks, against a cluster that is a table of objects."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components import api, cluster
from components.kubeconfig import Kubeconfig
from tests.unit.builders import an_event

QUEUE = {"apiVersion": api.VOLCANO_API, "kind": "Queue", "metadata": {"name": "tensorflow"}}
NO_CLIENT: Any = None


class Cluster:
    """Objects by kind; `vanish_after` looks, nothing is left of them."""

    def __init__(self, vanish_after: int = 1_000_000, **objects: Any) -> None:
        self.objects, self.looks, self.vanish_after = objects, 0, vanish_after

    def find(self, _client: Any, _api: str, plural: str, name: str, namespace: str | None = None) -> Any:
        if plural == api.PLURALS["TrainJob"]:
            self.looks += 1
        found = self.objects.get(plural) if self.looks <= self.vanish_after else None
        return None if found is None else {"kind": plural, "metadata": {"name": name, **found}}

    def pods(self, _client: Any, namespace: str, job_name: str) -> list[Mapping[str, Any]]:
        names = self.objects.get("pods", []) if self.looks <= self.vanish_after else []
        return [{"metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 0}} for name in names]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(stand_in: Cluster) -> None:
        monkeypatch.setattr(Kubeconfig, "of_stack", classmethod(lambda cls: cls()))
        monkeypatch.setattr(Kubeconfig, "api_client", lambda self: NO_CLIENT)
        monkeypatch.setattr(cluster, "_find", stand_in.find)
        monkeypatch.setattr(cluster, "_pods", stand_in.pods)
        monkeypatch.setattr(cluster, "POLL_SECONDS", 0.0)
        monkeypatch.setattr(cluster, "MARGIN_SECONDS", 0.05)
        monkeypatch.setattr(cluster, "GRACE_SECONDS", 0)

    return put


def call(hook: cluster.Hook, event: Any) -> None:
    async def awaited() -> None:
        await hook(event)

    asyncio.run(awaited())


def test_a_new_queue_may_be_created(stand_in: Any) -> None:
    stand_in(Cluster())
    call(cluster.refuse_existing("volcano.queue.create"), an_event("Queue", inputs=QUEUE))


def test_a_queue_of_somebody_elses_is_refused_with_the_setting_that_uses_it(stand_in: Any) -> None:
    stand_in(Cluster(queues={}))
    with pytest.raises(RuntimeError) as refused:
        call(cluster.refuse_existing("volcano.queue.create"), an_event("Queue", inputs=QUEUE))
    assert str(refused.value) == (
        "Queue tensorflow exists already and does not belong to this stack; set volcano.queue.create to false to use "
        "it, or choose another name"
    )


def test_a_job_starts_at_once_when_nothing_of_its_name_is_left(stand_in: Any) -> None:
    stand_in(Cluster())
    call(cluster.wait_for_old_gang("default", "digits"), an_event("TrainJob"))


@pytest.mark.parametrize(
    "left",
    [
        pytest.param({"trainjobs": {"deletionTimestamp": "now"}}, id="the job itself is being deleted"),
        pytest.param({"jobsets": {}}, id="its JobSet"),
        pytest.param({"podgroups": {}}, id="its PodGroup"),
        pytest.param({"pods": ["digits-node-0-0"]}, id="a pod"),
    ],
)
def test_a_job_waits_for_what_is_left_of_the_earlier_one(stand_in: Any, left: dict[str, Any]) -> None:
    leaving = Cluster(vanish_after=3, **left)
    stand_in(leaving)
    call(cluster.wait_for_old_gang("default", "digits"), an_event("TrainJob"))
    assert leaving.looks == 4


def test_pods_that_never_end_are_named(stand_in: Any) -> None:
    stand_in(Cluster(pods=["digits-node-0-0", "digits-node-0-1"]))
    with pytest.raises(TimeoutError) as late:
        call(cluster.wait_for_old_gang("default", "digits"), an_event("TrainJob"))
    assert str(late.value) == (
        "the earlier digits does not end: Pod digits-node-0-0, Pod digits-node-0-1 still in namespace default"
    )


def test_a_job_of_somebody_elses_is_refused_at_once(stand_in: Any) -> None:
    stand_in(Cluster(trainjobs={}))
    with pytest.raises(RuntimeError, match="TrainJob digits exists already in namespace default"):
        call(cluster.wait_for_old_gang("default", "digits"), an_event("TrainJob"))


def condition(kind: str, status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, "reason": "Why", "message": "what happened"}]}


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
def test_how_a_job_ended(status: Any, want: str) -> None:
    verdict = cluster.Verdict()
    call(verdict.hook, an_event("TrainJob", outputs={"status": status}))
    assert verdict.result(status) == want


FAILURE = r"^the TrainJob Failed \(Why\): what happened; change runId to retry$"


def test_a_job_that_fails_fails_the_update_with_its_reason_once() -> None:
    verdict = cluster.Verdict()
    with pytest.raises(RuntimeError, match=FAILURE):
        call(verdict.hook, an_event("TrainJob", outputs={"status": condition("Failed")}))
    assert verdict.result(condition("Failed")) == "Failed"


def test_a_job_that_had_failed_fails_the_update_too() -> None:
    with pytest.raises(pulumi.RunError, match=FAILURE):
        cluster.Verdict().result(condition("Failed"))
