"""The launcher sets TF_CONFIG, then is the script: arguments, exit code, output and signals are the script's own."""

import json
import signal
from pathlib import Path

import pytest

from tests.trainer.gang import a_gang
from tests.trainer.processes import finish, start

POD = {
    "POD_NAMESPACE": "ml",
    "POD_IP": "127.0.0.1",
    "TF_NUM_WORKERS": "1",
}


@pytest.fixture(autouse=True)
def _hostname(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostname for the children alone: Python reads this file at its start."""
    (tmp_path / "sitecustomize.py").write_text("import socket; socket.gethostname = lambda: 'mnist-node-0-0'")
    monkeypatch.setitem(POD, "PYTHONPATH", str(tmp_path))


def a_script(folder: Path, text: str) -> str:
    (folder / "script.py").write_text(text)
    return str(folder / "script.py")


@pytest.mark.parametrize("dashes", [pytest.param([], id="bare"), pytest.param(["--"], id="after --")])
def test_the_script_gets_its_arguments_and_tf_config(tmp_path: Path, dashes: list[str]) -> None:
    script = a_script(tmp_path, "import os, sys; print(os.environ['TF_CONFIG']); print(sys.argv[1:])")
    result = finish(start("tfrun.py", *dashes, script, "--epochs", "3", "--", "-x", **POD))
    config, arguments = result.output.splitlines()
    assert json.loads(config) == {
        "cluster": {"worker": ["mnist-node-0-0.mnist.ml.svc.cluster.local:12345"]},
        "task": {"type": "worker", "index": 0},
    }
    assert arguments == "['--epochs', '3', '--', '-x']"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("", 0, id="success"),
        pytest.param("raise SystemExit(7)", 7, id="a code of its own"),
        pytest.param("raise ValueError", 1, id="an exception"),
        pytest.param("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, id="killed"),
    ],
)
def test_the_exit_code_is_the_scripts_own(tmp_path: Path, text: str, code: int) -> None:
    assert finish(start("tfrun.py", a_script(tmp_path, text), **POD)).code == code


def test_output_is_not_held_back(tmp_path: Path) -> None:
    process = start("tfrun.py", a_script(tmp_path, "import time; print('here'); time.sleep(60)"), **POD)
    assert process.stdout
    assert process.stdout.readline() == "here\n"
    process.kill()
    process.communicate()


def test_sigterm_reaches_the_script(tmp_path: Path) -> None:
    text = "import signal, sys\nsignal.signal(15, lambda *_: sys.exit(99))\nprint('ready')\nsignal.pause()"
    process = start("tfrun.py", a_script(tmp_path, text), **POD)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert finish(process, timeout=10).code == 99


def test_sigterm_during_the_rendezvous_closes_the_port_and_exits_143(tmp_path: Path) -> None:
    script = a_script(tmp_path, "print('must not run')")
    address = a_gang(1)[0].address
    process = start("tfrun.py", script, **POD | {"TF_NUM_WORKERS": "2", "POD_IP": address})
    assert process.stdout
    assert f"worker 0 of 2 at {address}" in process.stdout.readline()
    process.terminate()
    result = finish(process, timeout=5)
    assert (result.code, result.output) == (143, "[Discovery] stopped by SIGTERM\n")


@pytest.mark.parametrize(
    ("args", "env", "message"),
    [
        pytest.param([], {}, "usage: tfrun.py [--] script.py [arguments...]", id="no script"),
        pytest.param(["--help"], {}, "usage:", id="an option"),
        pytest.param(["nowhere.py"], {}, "no such script: nowhere.py", id="a script that is not there"),
        pytest.param(["tfrun.py"], {"TF_WORKER_PORT": "0"}, "TF_WORKER_PORT='0': expected", id="port 0"),
        pytest.param(["tfrun.py"], {"TF_WORKER_PORT": "http"}, "a whole number, from 1 to 65535", id="a port's name"),
        pytest.param(["tfrun.py"], {"TF_NUM_WORKERS": "none"}, "TF_NUM_WORKERS='none': expected", id="no number"),
        pytest.param(["tfrun.py"], {"TF_RENDEZVOUS_TIMEOUT": "0"}, "TF_RENDEZVOUS_TIMEOUT='0'", id="no time at all"),
        pytest.param(["tfrun.py"], {"POD_IP": "x"}, "POD_IP='x': expected", id="a bad address"),
        pytest.param(["tfrun.py"], {"PYTHONPATH": ""}, "hostname", id="not in a TrainJob's pod"),
    ],
)
def test_bad_input_gives_one_line_and_exit_code_2(args: list[str], env: dict[str, str], message: str) -> None:
    known = [str(Path(__file__)) if arg == "tfrun.py" else arg for arg in args]
    result = finish(start("tfrun.py", *known, **POD | env), timeout=10)
    assert (result.code, result.errors.count("\n")) == (2, 1)
    assert message in result.errors


def test_setup_after_tensorflow_was_imported_is_refused(tmp_path: Path) -> None:
    text = "import sys; sys.modules['tensorflow'] = sys\nfrom rendezvous import setup_tf_config; setup_tf_config()"
    (tmp_path / "script.py").write_text(text)
    trainer = str(Path(__file__).parents[2] / "trainer")
    env = POD | {"PYTHONPATH": f"{POD['PYTHONPATH']}:{trainer}"}
    result = finish(start(str(tmp_path / "script.py"), **env))
    assert "setup_tf_config() must run before `import tensorflow`" in result.errors
