# ruff: noqa: E501  a row of the table is easier to read on one line
"""What the cluster lacks, or would let wait for ever, is told by the preview in one line, and nothing is created."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from components.volcano_queue import queue_manifest
from tests.cluster.conftest import Deploy
from tests.cluster.objects import SCHEDULING, TRAINER, kind_of, listed, named, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SMALL, CLOSED, LEAVING = (f"{kind}-{uuid.uuid4().hex[:6]}" for kind in ("small", "closed", "leaving"))
COMMANDS = "bus.volcano.sh/v1alpha1"
FINALIZER = "tftrainer.test/hold"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module", autouse=True)
def surroundings() -> Iterator[None]:
    """A queue that is too small, a closed one, and a namespace that is being deleted."""
    queues, namespaces, held = kind_of(SCHEDULING, "Queue"), kind_of("v1", "Namespace"), kind_of("v1", "ConfigMap")
    for name, capability in ((SMALL, {"cpu": "300m"}), (CLOSED, {})):
        queues.create(body=queue_manifest({"queue_name": name, "capability": capability}))
    close(named(SCHEDULING, "Queue", CLOSED))
    namespaces.create(body={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LEAVING}})
    held.create(
        namespace=LEAVING,
        body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": [FINALIZER]}},
    )
    namespaces.delete(name=LEAVING)
    wait_until("a queue is closed", lambda: named(SCHEDULING, "Queue", CLOSED)["status"].get("state") == "Closed")
    yield
    held.patch(namespace=LEAVING, name="held", body={"metadata": {"finalizers": None}}, content_type=MERGE)
    for queue in (SMALL, CLOSED):
        queues.delete(name=queue)


def close(queue: dict[str, Any]) -> None:
    """As `vcctl queue operate --action close` does."""
    target = {"apiVersion": SCHEDULING, "kind": "Queue", "name": CLOSED, "uid": queue["metadata"]["uid"]}
    command = {
        "apiVersion": COMMANDS,
        "kind": "Command",
        "metadata": {"name": CLOSED, "ownerReferences": [target]},
        "action": "CloseQueue",
        "target": target,
    }
    kind_of(COMMANDS, "Command").create(namespace="default", body=command)


def a_foreign_queue(name: str) -> dict[str, Any]:
    return {"volcano": {"queue": {"create": False, "name": name}}}


@pytest.mark.parametrize(
    ("config", "line"),
    [
        pytest.param(
            {"namespace": "no-such"},
            'tftrainer:namespace is "no-such", which the cluster lacks; make it with `kubectl create namespace no-such`',
            id="a namespace that is not there",
        ),
        pytest.param(
            {"namespace": LEAVING},
            f'tftrainer:namespace is "{LEAVING}", which is being deleted; wait until it is gone, or choose another',
            id="a namespace that is being deleted",
        ),
        pytest.param(
            a_foreign_queue("no-such"),
            'tftrainer:volcano.queue.name is "no-such", a queue that the cluster lacks; accepted: one that exists, or volcano.queue.create true',
            id="a queue that is not there",
        ),
        pytest.param(
            a_foreign_queue(CLOSED),
            f'tftrainer:volcano.queue.name is "{CLOSED}", a queue that is Closed; accepted: one that is Open',
            id="a queue that is closed",
        ),
        pytest.param(
            a_foreign_queue(SMALL),
            f'tftrainer:volcano.queue.name is "{SMALL}", whose capability is too small: cpu is 300m; accepted: at least 2 x 200m, which the workers ask for together, or they would wait for ever',
            id="a queue that is too small for the gang",
        ),
        pytest.param(
            {
                "infiniband": {"enabled": True, "count": 8},
                "volcano": {"queue": {"name": "preflight-own", "capability": {"nvidia.com/hostdev": 0}}},
            },
            "tftrainer:volcano.queue.capability: nvidia.com/hostdev is 0; accepted: at least 2 x 8, which the workers ask for together, or they would wait for ever",
            id="a queue of the stack's own that has none of the devices",
        ),
        pytest.param(
            {"volcano": {"priorityClass": "no-such"}},
            'tftrainer:volcano.priorityClass is "no-such", a PriorityClass that the cluster lacks; accepted: one that exists',
            id="a priority class that is not there",
        ),
        pytest.param(
            {"runtime": {"create": False, "name": "no-such"}, "volcano": {}, "data": {}},
            'tftrainer:runtime.name is "no-such", a ClusterTrainingRuntime that the cluster lacks; accepted: one that exists, or runtime.create true',
            id="a runtime that is not there",
        ),
    ],
)
def test_the_preview_says_what_is_wrong(deploy: Deploy, namespace: str, config: dict[str, Any], line: str) -> None:
    output = deploy(**config).preview().output
    assert line in output
    assert "Traceback" not in output
    assert listed(TRAINER, "TrainJob", namespace) == []
