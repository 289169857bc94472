"""The Pulumi package on a real engine: the schema that it serves, and a program in another language."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cluster import yaml_program
from tests.cluster.conftest import IMAGE
from tests.cluster.objects import TRAINER, conditions, named
from tests.cluster.program import PROJECT, Project
from tests.unit.package_schema import generated_schema, interface

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

DATA = "/var/lib/tftrainer/cifar-10-batches-py"
SMALL = {
    "resources": {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
    "env": {"EPOCHS": "1"},
    "awaitCompletion": True,
}
"""What makes the example's job one for a two-core node, and a test."""


def test_the_engine_serves_the_schema(tmp_path: Path) -> None:
    for name in ("components", "package"):
        # Without its requirements, which the engine would install: this environment has them.
        ignored = shutil.ignore_patterns("__pycache__", "requirements.txt")
        shutil.copytree(PROJECT / name, tmp_path / name, ignore=ignored)
    command = [str(shutil.which("pulumi")), "package", "get-schema", "."]
    printed = subprocess.run(  # noqa: S603  all ours
        command,
        cwd=tmp_path / "package",  # the language host of the embedded cluster's engine starts what is in this folder
        env={**os.environ, "PULUMI_BACKEND_URL": f"file://{tmp_path}"},
        check=True,
        capture_output=True,
    )
    assert interface(json.loads(printed.stdout)) == interface(generated_schema())


def test_the_yaml_example_trains(namespace: str, tmp_path: Path) -> None:
    client = yaml_client(tmp_path, {"namespace": namespace, "image": IMAGE, "data": DATA})
    try:
        client.up()
        assert client.output("job") == "digits"
        assert "Complete" in conditions(named(TRAINER, "TrainJob", "digits", namespace))
        assert client.preview().changed == {}
    finally:
        client.destroy()


def yaml_client(folder: Path, config: dict[str, str]) -> Project:
    """The example as a project whose plugin is a program in a folder of its own, as a released one would be."""
    program = yaml.safe_load((PROJECT / "examples" / "yaml" / "Pulumi.yaml").read_text())
    program["resources"]["job"]["properties"] |= SMALL
    plugin = folder / "plugin" / "pulumi-resource-tftrainer"
    plugin.parent.mkdir()
    plugin.write_text(f'#!/bin/sh\nexec {sys.executable} {PROJECT / "package"} "$@"\n')
    plugin.chmod(0o755)
    client = folder / "client"
    client.mkdir()
    provider = {"name": "tftrainer", "path": str(plugin.parent)}
    project = {"name": program["name"], "runtime": "python", "plugins": {"providers": [provider]}}
    (client / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    (client / "program.yaml").write_text(yaml.safe_dump(program, sort_keys=False))
    shutil.copy(yaml_program.__file__, client / "__main__.py")
    return Project(client, folder / "state", config)
