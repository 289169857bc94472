"""The queue as a resource of a stack: the real engine, W&B's real client, and the fake server."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from components.launch_template import workers_variable
from tests.launch.builders import a_hardened_template, a_plain_job
from tests.launch.fake_wandb import ENTITY, KEY, FakeWandb
from tests.launch.program import Program

pytestmark = pytest.mark.cluster  # not for the cluster, but for the Pulumi engine that is built with it


@pytest.fixture
def program(tmp_path: Path, server: FakeWandb) -> Program:
    program = Program(tmp_path)
    program.set_key(KEY)
    program.set_queue(**a_queue(server))
    return program


def a_queue(server: FakeWandb, **changes: Any) -> dict[str, Any]:
    return {
        "queue_name": "ddp",
        "entity": ENTITY,
        "base_url": server.url,
        "template": a_hardened_template(replicas="{{workers}}"),
        "variables": workers_variable(1, 8),
    } | changes


def test_a_queue_lives_with_its_stack(program: Program, server: FakeWandb) -> None:
    assert program.preview() == {"create": 2}
    assert server.operations == []
    program.up()
    assert program.up() == {"same": 2}

    program.set_queue(**a_queue(server, template=a_plain_job(), variables={}))
    assert program.up() == {"same": 1, "update": 1}
    assert server.template("ddp") == a_plain_job()

    program.set_queue(**a_queue(server, queue_name="other"))
    assert program.up() == {"same": 1, "replace": 1}
    assert list(server.queues) == ["other"]

    program.destroy()
    assert server.queues == {}


def test_a_secret_template_is_encrypted_in_the_state(program: Program, server: FakeWandb) -> None:
    template = a_hardened_template(replicas="{{workers}}", env={"TOKEN": "hush"})
    program.set_queue(**a_queue(server, template=template, secret=True))
    program.up()
    assert server.template("ddp") == template
    made = (program.stack.export_stack().deployment or {})["resources"]
    (queue,) = (resource for resource in made if resource["type"].endswith(":LaunchQueue"))
    for part in ("inputs", "outputs"):
        assert "plaintext" in queue[part]["template"], "as an export shows what the state holds encrypted"
    assert program.up() == {"same": 2}


def test_what_somebody_changed_in_wandb_is_put_back(program: Program, server: FakeWandb) -> None:
    program.up()
    server.queues["ddp"]["config"] = json.dumps({"resource_args": {"kubernetes": a_plain_job()}})
    program.refresh()
    assert program.up() == {"same": 1, "update": 1}
    assert server.template("ddp") == a_hardened_template(replicas="{{workers}}")


def test_a_queue_that_somebody_deleted_comes_back(program: Program, server: FakeWandb) -> None:
    program.up()
    server.queues.clear()
    program.refresh()
    program.up()
    assert list(server.queues) == ["ddp"]


def test_a_queue_already_gone_can_be_destroyed(program: Program, server: FakeWandb) -> None:
    program.up()
    server.queues.clear()
    program.destroy()


def test_a_new_key_changes_no_queue_and_is_used_from_the_next_up(program: Program, server: FakeWandb) -> None:
    program.up()
    server.key = "a" * 40
    program.set_key(server.key)
    assert program.up() == {"same": 2}
    program.destroy()
    assert server.queues == {}


@pytest.mark.parametrize(
    ("key", "changes", "want"),
    [
        pytest.param("f" * 40, {}, "refuses the API key; set another: pulumi config set --secret", id="a wrong key"),
        pytest.param(KEY, {"entity": "ghost"}, "entity ghost not found", id="an unknown entity"),
        pytest.param(KEY, {"base_url": "http://127.0.0.1:9"}, "does not answer within 8 s", id="an unreachable host"),
    ],
)
def test_up_fails_soon_and_in_one_line(
    program: Program, server: FakeWandb, key: str, changes: dict[str, Any], want: str
) -> None:
    program.set_key(key)
    program.set_queue(**a_queue(server, **changes))
    started = time.monotonic()
    output = program.failing_up()
    lines = [line for line in output.splitlines() if want in line]
    assert lines
    assert "File " not in output
    assert time.monotonic() - started < 30  # 15 s of them for the engine's own start on a busy machine


def test_the_key_is_in_no_state_and_in_nothing_printed(program: Program, tmp_path: Path) -> None:
    program.preview()
    program.up()
    program.refresh()
    program.destroy()
    written = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
    assert KEY not in "".join(program.printed)
