"""The queue's provider, called as the engine calls it, with W&B's real client against the fake server."""

import base64
import json
import sys
import threading
import time
from typing import Any

import pytest
from pulumi.dynamic import ConfigureRequest
from pulumi.dynamic.config import Config
from pulumi.dynamic.dynamic import serialize_provider

from components.errors import ConfigError
from components.launch_client import API_KEY
from components.launch_queue import LaunchQueue, LaunchQueueArgs, LaunchQueueProvider, queue_properties
from components.launch_template import workers_variable
from tests.launch.builders import a_hardened_template, a_plain_job
from tests.launch.fake_wandb import ENTITY, KEY, FakeWandb

NOBODYS_PORT = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bring back what a failing operation switches off."""
    monkeypatch.setattr(sys, "tracebacklimit", None, raising=False)


def a_queue(server: FakeWandb, **changes: Any) -> dict[str, Any]:
    args: LaunchQueueArgs = {
        "queue_name": "ddp",
        "entity": ENTITY,
        "base_url": server.url,
        "template": a_hardened_template(replicas="{{workers}}"),
        "variables": workers_variable(1, 8),
        "prioritization": "V0",
    }
    return queue_properties({**args, **changes})  # type: ignore[typeddict-item]


def a_provider(key: str | None = KEY) -> LaunchQueueProvider:
    provider = LaunchQueueProvider()
    provider.configure(ConfigureRequest(Config({API_KEY: key} if key else {}, "any")))
    return provider


@pytest.fixture
def created(server: FakeWandb) -> dict[str, Any]:
    result = a_provider().create(a_queue(server))
    assert result.outs is not None
    return result.outs


def test_create_makes_the_queue_that_was_asked_for(server: FakeWandb) -> None:
    result = a_provider().create(a_queue(server))
    held = server.queues["ddp"]
    assert server.template("ddp") == a_hardened_template(replicas="{{workers}}")
    assert held["resource"] == "kubernetes"
    assert held["prioritizationMode"] == "V0"
    assert [variable["name"] for variable in held["variables"]] == ["workers"]
    assert (result.id, result.outs) == (f"{ENTITY}/ddp", a_queue(server))


def test_create_leaves_a_queue_of_somebody_elses_alone(server: FakeWandb, created: dict[str, Any]) -> None:
    with pytest.raises(
        RuntimeError, match=r"^W&B Launch queue: queue ddp of team exists and is not this stack's: take"
    ):
        a_provider().create(a_queue(server, template=a_plain_job(), variables={}))
    assert server.template("ddp")["kind"] == "Job"
    assert server.template("ddp")["apiVersion"] == "batch.volcano.sh/v1alpha1"


def test_a_service_process_of_the_client_that_does_not_end_is_not_waited_for(
    server: FakeWandb, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = threading.Event()
    monkeypatch.setattr("wandb.teardown", ends.wait)
    monkeypatch.setattr("components.launch_client.TEARDOWN_SECONDS", 0.1)
    assert a_provider().create(a_queue(server)).id == f"{ENTITY}/ddp"
    ends.set()


def test_nothing_differs_after_create(server: FakeWandb, created: dict[str, Any]) -> None:
    result = a_provider().diff("id", created, a_queue(server))
    assert (result.changes, result.replaces) == (False, [])


@pytest.mark.parametrize(
    ("changes", "replaces"),
    [
        pytest.param({"queue_name": "other"}, ["queue_name"], id="another name replaces the queue"),
        pytest.param({"entity": "other"}, ["entity"], id="another owner replaces the queue"),
        pytest.param({"base_url": NOBODYS_PORT}, ["base_url"], id="another server replaces the queue"),
        pytest.param({"prioritization": "DISABLED"}, [], id="another prioritization changes it in place"),
        pytest.param({"api_key_hash": "other"}, [], id="another key is tried on it"),
        pytest.param({"variables": workers_variable(2, 8)}, [], id="another variable changes it in place"),
        pytest.param({"template": a_plain_job(), "variables": {}}, [], id="another template changes it in place"),
    ],
)
def test_diff(server: FakeWandb, created: dict[str, Any], changes: dict[str, Any], replaces: list[str]) -> None:
    result = a_provider().diff("id", created, a_queue(server, **changes))
    assert (result.changes, result.replaces) == (True, replaces)


def test_update_changes_the_queue_in_place(server: FakeWandb, created: dict[str, Any]) -> None:
    before = server.queues["ddp"]["id"]
    new = a_queue(server, template=a_plain_job(), variables={}, prioritization="DISABLED")
    result = a_provider().update("id", created, new)
    assert result.outs == new
    assert server.template("ddp") == a_plain_job()
    assert server.queues["ddp"]["prioritizationMode"] == "DISABLED"
    assert server.queues["ddp"]["id"] == before


def test_update_keeps_the_links_that_somebody_added_in_wandb(server: FakeWandb, created: dict[str, Any]) -> None:
    links = {"links": [{"label": "wiki", "url": "https://wiki.example/ddp"}]}
    server.queues["ddp"]["links"] = json.dumps(links)
    a_provider().update("id", created, a_queue(server, prioritization="DISABLED"))
    assert json.loads(server.queues["ddp"]["links"]) == links


def test_read_finds_no_change_where_there_is_none(server: FakeWandb, created: dict[str, Any]) -> None:
    result = a_provider().read("id", created)
    assert (result.id, result.outs) == ("id", created)


def test_read_finds_what_somebody_changed_in_wandb(server: FakeWandb, created: dict[str, Any]) -> None:
    server.queues["ddp"]["config"] = json.dumps({"resource_args": {"kubernetes": a_plain_job()}})
    result = a_provider().read("id", created)
    assert result.outs is not None
    assert json.loads(result.outs["template"]) == a_plain_job()
    assert a_provider().diff("id", result.outs, a_queue(server)).changes is True


def test_read_finds_a_queue_gone(server: FakeWandb, created: dict[str, Any]) -> None:
    server.queues.clear()
    assert a_provider().read("id", created).id == ""


def test_delete_removes_the_queue(server: FakeWandb, created: dict[str, Any]) -> None:
    a_provider().delete("id", created)
    assert server.queues == {}


def test_delete_is_content_with_a_queue_already_gone(server: FakeWandb, created: dict[str, Any]) -> None:
    server.queues.clear()
    a_provider().delete("id", created)


@pytest.mark.parametrize(
    ("key", "changes", "want"),
    [
        pytest.param(
            None,
            {},
            "W&B Launch queue: no W&B API key: pulumi config set --secret wandb:apiKey",
            id="without a key",
        ),
        pytest.param(
            "f" * 40,
            {},
            "W&B at {url} refuses the API key; set another: pulumi config set --secret wandb:apiKey, then pulumi up",
            id="with a wrong key",
        ),
        pytest.param(KEY, {"entity": "ghost"}, "W&B Launch queue: input: entity ghost not found", id="for nobody"),
        pytest.param(
            KEY,
            {"base_url": NOBODYS_PORT},
            f"W&B at {NOBODYS_PORT} does not answer within 8 s; check the base URL and the network",
            id="where nobody answers",
        ),
    ],
)
def test_create_fails_soon_and_in_one_sentence(
    server: FakeWandb, key: str | None, changes: dict[str, Any], want: str
) -> None:
    started = time.monotonic()
    with pytest.raises(RuntimeError) as failure:
        a_provider(key).create(a_queue(server, **changes))
    assert str(failure.value) == want.format(url=server.url)
    assert time.monotonic() - started < 15


def test_the_pickled_provider_holds_no_key() -> None:
    assert KEY.encode() not in base64.b64decode(serialize_provider(LaunchQueueProvider()))


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({"queue_name": ""}, "queue_name has 0 characters; accepted: 1 to 64", id="no name"),
        pytest.param({"queue_name": "q" * 65}, "queue_name has 65 characters; accepted: 1 to 64", id="a long name"),
        pytest.param({"prioritization": "V1"}, "prioritization is V1; accepted: DISABLED, V0", id="no such priority"),
        pytest.param({"variables": {}}, '"{{workers}}" stands in the template; accepted: ', id="a bad template"),
    ],
)
def test_bad_arguments_fail_before_anything_is_registered(changes: dict[str, Any], want: str) -> None:
    args: dict[str, Any] = {
        "queue_name": "ddp",
        "entity": ENTITY,
        "template": a_hardened_template(replicas="{{workers}}"),
        "variables": workers_variable(1, 8),
    }
    with pytest.raises(ConfigError) as failure:
        LaunchQueue("queue", {**args, **changes})  # type: ignore[typeddict-item]
    assert failure.value.lines[0].startswith(want)
