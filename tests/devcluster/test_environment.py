"""What a shell and the operators' stack are given."""

import shlex
import subprocess
import sys
from pathlib import Path

import yaml

from devcluster import environment
from tests.devcluster.builders import a_cache


def test_our_programs_come_first_and_the_rest_stays(tmp_path: Path) -> None:
    cache = a_cache(tmp_path)
    path = environment.variables(cache, {"PATH": "/usr/bin:/bin"})["PATH"].split(":")
    assert path == [str(Path(sys.executable).parent), str(cache.bin), "/usr/bin", "/bin"]


def test_asking_again_does_not_make_path_longer(tmp_path: Path) -> None:
    cache = a_cache(tmp_path)
    once = environment.variables(cache, {"PATH": "/bin"})
    assert environment.variables(cache, once) == once


def test_a_shell_can_evaluate_it(tmp_path: Path) -> None:
    cache = a_cache(tmp_path / "with a space")
    script = f'{environment.exports(cache)}\nprintf %s "$KUBECONFIG"'
    shell = subprocess.run(["/bin/sh", "-c", script], check=True, capture_output=True, text=True)  # noqa: S603
    assert shell.stdout == str(cache.kubeconfig)
    assert all(shlex.split(line)[0] == "export" for line in environment.exports(cache).splitlines())


def test_the_operators_get_the_cached_charts_and_keep_what_pulumi_added(tmp_path: Path) -> None:
    cache = a_cache(tmp_path)
    environment.write_operators_config(cache)
    config = yaml.safe_load(cache.operators_config.read_text())
    assert config["config"]["tftrainer-operators:jobsetChart"] == str(cache.files / "charts/jobset")
    assert config["config"]["tftrainer-operators:imagePullPolicy"] == "IfNotPresent"
    assert config["config"]["tftrainer-operators:trainerFeatureGates"] == {"TrainJobStatus": True}

    cache.operators_config.write_text(yaml.safe_dump({**config, "encryptionsalt": "v1:abc"}))
    environment.write_operators_config(cache)
    assert yaml.safe_load(cache.operators_config.read_text())["encryptionsalt"] == "v1:abc"
