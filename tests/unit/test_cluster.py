"""The hooks, against a cluster that is a table of objects."""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from components import api, cluster, live_objects
from components.kubeconfig import Kubeconfig
from tests.unit.builders import an_event

QUEUE = {"apiVersion": api.VOLCANO_API, "kind": "Queue", "metadata": {"name": "tensorflow"}}


class Cluster:
    """Objects by kind; `vanish_after` looks, nothing is left of them."""

    def __init__(self, vanish_after: int = 1_000_000, **objects: Any) -> None:
        self.objects, self.looks, self.vanish_after = objects, 0, vanish_after
        self.deleted: list[str] = []
        self.returns = range(0)

    def find(self, _kubeconfig: Any, _api: str, kind: str, name: str, namespace: str | None = None) -> Any:
        if kind == "TrainJob":
            self.looks += 1
        there = self.looks <= self.vanish_after or self.looks in self.returns
        found = self.objects.get(kind) if there else None
        return None if found is None else {"kind": kind, "metadata": {"name": name, **found}}

    def delete(self, _kubeconfig: Any, _api: str, kind: str, name: str, namespace: str | None = None) -> None:
        self.deleted.append(f"{kind} {namespace}/{name}")
        self.objects[kind] = {"deletionTimestamp": "now"}
        self.vanish_after = self.looks + 2

    def pods(self, _kubeconfig: Any, namespace: str, job_name: str) -> list[Mapping[str, Any]]:
        names = self.objects.get("Pod", []) if self.looks <= self.vanish_after else []
        grace = {"terminationGracePeriodSeconds": 0}
        return [{"kind": "Pod", "metadata": {"name": name}, "spec": grace} for name in names]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(stand_in: Cluster) -> None:
        monkeypatch.setattr(Kubeconfig, "of_stack", classmethod(lambda cls: cls()))
        monkeypatch.setattr(live_objects, "find", stand_in.find)
        monkeypatch.setattr(live_objects, "gang_pods", stand_in.pods)
        monkeypatch.setattr(live_objects, "delete", stand_in.delete)
        monkeypatch.setattr(cluster, "POLL_SECONDS", 0.01)
        monkeypatch.setattr(cluster, "QUIET_SECONDS", 0.1)
        monkeypatch.setattr(cluster, "MARGIN_SECONDS", 0.5)
        monkeypatch.setattr(cluster, "GRACE_SECONDS", 0)

    return put


def call(hook: cluster.Hook, event: Any) -> None:
    async def awaited() -> None:
        await hook(event)

    asyncio.run(awaited())


def test_a_new_queue_may_be_created(stand_in: Any) -> None:
    stand_in(Cluster())
    call(cluster.refuse_existing("set volcano.queue.create to false"), an_event("Queue", inputs=QUEUE))


def test_a_queue_of_somebody_elses_is_refused_with_the_setting_that_uses_it(stand_in: Any) -> None:
    stand_in(Cluster(Queue={}))
    with pytest.raises(RuntimeError) as refused:
        call(cluster.refuse_existing("set volcano.queue.create to false"), an_event("Queue", inputs=QUEUE))
    assert str(refused.value) == (
        "Queue tensorflow exists already and does not belong to this stack; set volcano.queue.create to false"
    )


def test_an_object_in_a_namespace_is_looked_for_there(stand_in: Any) -> None:
    stand_in(Cluster(ConfigMap={}))
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scripts", "namespace": "ml"}}
    with pytest.raises(RuntimeError, match=r"^ConfigMap scripts exists already in namespace ml and does not"):
        call(cluster.refuse_existing("choose another name"), an_event("ConfigMap", inputs=config_map))


def test_a_job_starts_at_once_when_nothing_of_its_name_is_left(stand_in: Any) -> None:
    stand_in(Cluster())
    call(cluster.wait_for_old_gang("default", "digits"), an_event("TrainJob", inputs={"metadata": {}}))


@pytest.mark.parametrize(
    "left",
    [
        pytest.param({"TrainJob": {"deletionTimestamp": "now"}}, id="the job itself is being deleted"),
        pytest.param({"JobSet": {}}, id="its JobSet"),
        pytest.param({"PodGroup": {}}, id="its PodGroup"),
        pytest.param({"Pod": ["digits-node-0-0"]}, id="a pod"),
    ],
)
def test_a_job_waits_for_what_is_left_of_the_earlier_one(stand_in: Any, left: dict[str, Any]) -> None:
    leaving = Cluster(vanish_after=3, **left)
    stand_in(leaving)
    call(cluster.wait_for_old_gang("default", "digits"), an_event("TrainJob", inputs={"metadata": {}}))
    assert leaving.looks > 4
    assert leaving.deleted == []


def test_a_job_set_that_the_trainer_makes_once_more_is_waited_for_too(stand_in: Any) -> None:
    leaving = Cluster(vanish_after=3, JobSet={})
    leaving.returns = range(6, 9)
    stand_in(leaving)
    call(cluster.wait_for_old_gang("default", "digits"), an_event("TrainJob", inputs={"metadata": {}}))
    assert leaving.looks > 9


def test_pods_that_never_end_are_named(stand_in: Any) -> None:
    stand_in(Cluster(Pod=["digits-node-0-0", "digits-node-0-1"]))
    with pytest.raises(TimeoutError) as late:
        call(cluster.wait_for_old_gang("default", "digits"), an_event("TrainJob", inputs={"metadata": {}}))
    assert str(late.value) == (
        "the earlier digits does not end: Pod digits-node-0-0, Pod digits-node-0-1 still in namespace default"
    )


def test_a_job_of_somebody_elses_is_refused_at_once(stand_in: Any) -> None:
    stand_in(Cluster(TrainJob={}))
    with pytest.raises(RuntimeError, match="TrainJob digits exists already in namespace default"):
        call(cluster.wait_for_old_gang("default", "digits"), an_event("TrainJob", inputs={"metadata": {}}))


def annotated(owner: str, run: str = "1") -> dict[str, Any]:
    return {"annotations": {api.OWNER_ANNOTATION: owner, api.RUN_ANNOTATION: run}}


def test_an_object_that_a_killed_update_of_this_stack_left_is_taken_up(stand_in: Any) -> None:
    stand_in(Cluster(Queue=annotated("us")))
    wanted = {**QUEUE, "metadata": {"name": "tensorflow", **annotated("us")}}
    call(cluster.refuse_existing("set volcano.queue.create to false"), an_event("Queue", inputs=wanted))


def test_the_mark_of_another_stack_is_refused(stand_in: Any) -> None:
    stand_in(Cluster(Queue=annotated("them")))
    wanted = {**QUEUE, "metadata": {"name": "tensorflow", **annotated("us")}}
    with pytest.raises(RuntimeError, match="does not belong to this stack"):
        call(cluster.refuse_existing("set volcano.queue.create to false"), an_event("Queue", inputs=wanted))


def test_a_job_that_a_killed_update_left_is_taken_up_as_it_runs(stand_in: Any) -> None:
    left = Cluster(TrainJob=annotated("us", "1"), JobSet={}, Pod=["digits-node-0-0"])
    stand_in(left)
    wanted = an_event("TrainJob", inputs={"metadata": annotated("us", "1")})
    call(cluster.wait_for_old_gang("default", "digits"), wanted)
    assert left.deleted == []


def test_a_job_that_a_killed_update_left_makes_room_for_another_run(stand_in: Any) -> None:
    left = Cluster(TrainJob=annotated("us", "1"), JobSet={}, Pod=["digits-node-0-0"])
    stand_in(left)
    wanted = an_event("TrainJob", inputs={"metadata": annotated("us", "2")})
    call(cluster.wait_for_old_gang("default", "digits"), wanted)
    assert left.deleted == ["TrainJob default/digits"]


def test_hooks_get_a_thread_while_registrations_that_wait_for_them_hold_all_of_the_loops(stand_in: Any) -> None:
    stand_in(Cluster())
    answered = threading.Event()

    async def registered() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        registration = loop.run_in_executor(None, answered.wait, 5)
        hook = cluster.refuse_existing("choose another name")
        await asyncio.wait_for(hook(an_event("Queue", inputs=QUEUE)), 2)
        answered.set()
        await registration

    asyncio.run(registered())
