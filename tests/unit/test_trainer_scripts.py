"""What goes into the ConfigMap of scripts."""

import os
from pathlib import Path

import pytest

from components.errors import ConfigError
from components.trainer_scripts import CONFIG_MAP_MAX_BYTES, read_scripts, scripts_manifest


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "trainer"
    folder.mkdir()
    for name in ("__init__.py", "tfrun.py", "train.py", "notes.txt"):
        (folder / name).write_text(f"# {name}\n")
    return folder


def mine(tmp_path: Path, name: str, text: str = "# mine\n") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def refusal(script: str, sources: Path) -> str:
    with pytest.raises(ConfigError) as refused:
        read_scripts(script, sources)
    (line,) = refused.value.lines
    return line


def test_the_scripts_and_nothing_else(sources: Path) -> None:
    assert read_scripts(None, sources) == {"tfrun.py": "# tfrun.py\n", "train.py": "# train.py\n"}


def test_a_script_of_ones_own_is_added(sources: Path, tmp_path: Path) -> None:
    assert set(read_scripts(mine(tmp_path, "mine.py"), sources)) == {"tfrun.py", "train.py", "mine.py"}


def test_a_script_of_ones_own_may_be_called_train(sources: Path, tmp_path: Path) -> None:
    assert read_scripts(mine(tmp_path, "train.py"), sources)["train.py"] == "# mine\n"


def test_a_script_cannot_take_the_launchers_place(sources: Path, tmp_path: Path) -> None:
    script = mine(tmp_path, "tfrun.py")
    assert refusal(script, sources) == (
        f"script is {script!r}; accepted: another file name, for the launcher has a tfrun.py too"
    )


@pytest.mark.parametrize("name", ["json.py", "socket.py", "tensorflow.py"])
def test_a_script_cannot_hide_a_module(sources: Path, tmp_path: Path, name: str) -> None:
    script = mine(tmp_path, name)
    module = name.removesuffix(".py")
    assert refusal(script, sources) == (
        f"script is {script!r}; accepted: another file name, for `import {module}` would find this one"
    )


@pytest.mark.parametrize("name", ["my script.py", "b\u00e9.py"])
def test_a_name_that_no_config_map_takes(sources: Path, tmp_path: Path, name: str) -> None:
    script = mine(tmp_path, name)
    assert refusal(script, sources) == f"script is {script!r}; accepted: a file name of letters, digits, -, _ and ."


def test_a_pipe_is_not_waited_for(sources: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mine.py")
    assert "accepted: a readable Python file (no file: " in refusal(str(tmp_path / "mine.py"), sources)


def test_a_missing_script(sources: Path) -> None:
    assert refusal("/nowhere/mine.py", sources) == (
        "script is '/nowhere/mine.py'; accepted: a readable Python file (No such file or directory: /nowhere/mine.py)"
    )


def test_a_script_that_is_no_text(sources: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes(b"\xff\xfe")
    assert "not UTF-8 text" in refusal(str(tmp_path / "mine.py"), sources)


def test_a_script_too_big_for_a_config_map(sources: Path, tmp_path: Path) -> None:
    script = mine(tmp_path, "mine.py", "#" * CONFIG_MAP_MAX_BYTES)
    assert f"at most {CONFIG_MAP_MAX_BYTES} bytes" in refusal(script, sources)


def test_nobody_changes_a_config_map_of_scripts() -> None:
    assert scripts_manifest("scripts-1", "default", {"a.py": "1"}) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "scripts-1", "namespace": "default"},
        "immutable": True,
        "data": {"a.py": "1"},
    }
