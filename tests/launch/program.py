"""A Pulumi program of the test's own, run by the real engine with a backend in a folder."""

import json
from pathlib import Path
from typing import Any

from pulumi import automation as auto

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
LAUNCH_SECTION = """
import pulumi

from components.launch import deploy
from components.launch_settings import LaunchSettings

for name, value in deploy(LaunchSettings.model_validate_json(pulumi.Config().require("launch"))).items():
    pulumi.export(name, value)
"""


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

    def set_launch(self, **section: Any) -> None:
        self.stack.set_config("launch", auto.ConfigValue(json.dumps(section)))

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
