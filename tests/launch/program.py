"""A Pulumi program of the test's own, run by the real engine with a backend in a folder."""

import json
from pathlib import Path
from typing import Any

import yaml
from pulumi import automation as auto

from tests.launch.fake_wandb import ENTITY, FakeWandb

COMPONENTS = Path(__file__).parents[2] / "components"
PROJECT = "name: queue\nruntime: python\n"
QUEUE_ALONE = """
import json

import pulumi

from components.launch_queue import LaunchQueue

queue = LaunchQueue("queue", json.loads(pulumi.Config().require("queue")))
pulumi.export("name", queue.queue_name)
"""
JOB_ALONE = """
import json

import pulumi

from components.volcano_job import VolcanoJob

job = VolcanoJob("job", json.loads(pulumi.Config().require("job")))
pulumi.export("name", job.job_name)
"""
EXAMPLE = Path(__file__).parents[2] / "examples" / "wandb-launch" / "Pulumi.launch.yaml"


def the_example(server: FakeWandb, namespace: str, agent: dict[str, Any]) -> dict[str, Any]:
    """The example's stack config for the program itself, with a server, a namespace and sizes that a test can have."""
    config = yaml.safe_load(EXAMPLE.read_text())["config"]
    settings = {key.removeprefix("tftrainer:"): value for key, value in config.items()}
    launch = settings["launch"]
    launch |= {"entity": ENTITY, "baseUrl": server.url}
    launch["queue"] |= {
        "name": "ddp",
        "namespace": namespace,
        "env": {"STEP_SECONDS": "0.1"},
        "resources": {"cpu": "100m", "memory": "512Mi"},
    }
    launch["agent"] |= agent
    return settings


class Program:
    def __init__(self, folder: Path, main: str = QUEUE_ALONE) -> None:
        self.folder = folder / "project"
        self.state = folder / "state"
        for made in (self.folder, self.state):
            made.mkdir(parents=True)
        (self.folder / "Pulumi.yaml").write_text(PROJECT)
        (self.folder / "__main__.py").write_text(main)
        (self.folder / "components").symlink_to(COMPONENTS)
        options = auto.LocalWorkspaceOptions(
            env_vars={"PULUMI_BACKEND_URL": f"file://{self.state}", "PULUMI_CONFIG_PASSPHRASE": "test"}
        )
        self.stack = auto.create_stack("test", work_dir=str(self.folder), opts=options)
        self.printed: list[str] = []

    def set_key(self, key: str) -> None:
        """`pulumi config set --secret wandb:apiKey KEY`."""
        self.stack.set_config("wandb:apiKey", auto.ConfigValue(key, secret=True))

    def set_queue(self, **args: Any) -> None:
        self.stack.set_config("queue", auto.ConfigValue(json.dumps(args)))

    def set_job(self, **args: Any) -> None:
        self.stack.set_config("job", auto.ConfigValue(json.dumps(args)))

    def preview(self) -> dict[str, int]:
        """Number of resources by operation."""
        result = self.stack.preview(on_output=self.printed.append, diff=True)
        return {str(getattr(op, "value", op)): count for op, count in result.change_summary.items()}

    def up(self) -> dict[str, int]:
        result = self.stack.up(on_output=self.printed.append, diff=True)
        return {str(op): count for op, count in (result.summary.resource_changes or {}).items()}

    def failing_up(self) -> str:
        """What a `pulumi up` prints that must fail."""
        try:
            self.stack.up(on_output=self.printed.append)
        except auto.CommandError as error:
            self.printed.append(str(error))
            return str(error)
        raise AssertionError("pulumi up succeeded")

    def refresh(self) -> None:
        self.stack.refresh(on_output=self.printed.append)

    def destroy(self) -> None:
        self.stack.destroy(on_output=self.printed.append)
