"""A copy of the program with a stack of its own, driven as a user drives it: edit the stack config, `pulumi up`."""

import compileall
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pulumi import automation as auto

PROJECT = Path(__file__).parents[2]
PROGRAM = ("Pulumi.yaml", "__main__.py", "components", "trainer")
STACK = "test"


@dataclass
class Change:
    """What one `pulumi up` or `pulumi destroy` did: operation by object, and everything that it printed."""

    operations: dict[str, str] = field(default_factory=dict)
    output: str = ""

    def record(self, event: auto.EngineEvent) -> None:
        if event.resource_pre_event:
            step = event.resource_pre_event.metadata
            kind = step.type.split(":")[-1]
            # The provider, the components and the stack are Pulumi's own: only objects in the cluster count here.
            if step.type.startswith("kubernetes:"):
                self.operations[f"{kind}/{step.urn.split('::')[-1]}"] = str(step.op.value)
        elif event.diagnostic_event and event.diagnostic_event.severity != "debug":
            self.output += event.diagnostic_event.message

    @property
    def changed(self) -> dict[str, str]:
        """The kinds that were touched, each with its last operation."""
        return {key.split("/")[0]: op for key, op in self.operations.items() if op != "same"}


class Project:
    """A Pulumi project with a stack of its own and a local backend."""

    def __init__(self, folder: Path, state: Path, config: Mapping[str, Any]) -> None:
        self.folder = folder
        self.project = yaml.safe_load((folder / "Pulumi.yaml").read_text())["name"]
        state.mkdir()
        self.environment = {"PULUMI_BACKEND_URL": f"file://{state}"}
        options = auto.LocalWorkspaceOptions(env_vars=self.environment)
        self.stack = auto.create_stack(STACK, work_dir=str(folder), opts=options)
        self.edit(config)

    def edit(self, config: Mapping[str, Any]) -> None:
        """Merge keys into Pulumi.test.yaml, as an editor would."""
        document = self._stack_file()
        settings = document.setdefault("config", {})
        settings |= {f"{self.project}:{key}": value for key, value in config.items()}
        self._stack_path.write_text(yaml.safe_dump(document))

    @property
    def is_for_others(self) -> bool:
        """Whether it has no job, so that its queue and runtime are protected."""
        return self._stack_file()["config"].get(f"{self.project}:job", {}).get("enabled") is False

    @property
    def _stack_path(self) -> Path:
        return self.folder / f"Pulumi.{STACK}.yaml"

    def _stack_file(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load(self._stack_path.read_text()) if self._stack_path.exists() else {}
        return found

    def set(self, key: str, value: str) -> None:
        """`pulumi config set KEY VALUE`."""
        self.stack.set_config(key, auto.ConfigValue(value))

    def set_secret(self, key: str, value: str) -> None:
        """`pulumi config set --secret KEY VALUE`."""
        self.stack.set_config(key, auto.ConfigValue(value, secret=True))

    def up(self, **options: Any) -> Change:
        change = Change()
        self.stack.up(on_event=change.record, **options)
        return change

    def preview(self, **options: Any) -> Change:
        change = Change()
        try:
            self.stack.preview(on_event=change.record, **options)
        except auto.CommandError as error:
            change.output += str(error)
        return change

    def command(self, *arguments: str) -> subprocess.Popen[str]:
        """`pulumi ARGUMENTS` as a process of its own, with all that it starts in one process group."""
        return subprocess.Popen(  # noqa: S603  all ours
            [str(shutil.which("pulumi")), *arguments, "--stack", STACK, "--non-interactive"],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def failing_up(self) -> Change:
        """A `pulumi up` that must fail."""
        change = Change()
        try:
            self.stack.up(on_event=change.record)
        except auto.CommandError as error:
            change.output += str(error)
            return change
        raise AssertionError("pulumi up succeeded")

    def unprotect(self) -> None:
        """As the engine's refusal to destroy a protected resource says."""
        unprotecting = self.command("state", "unprotect", "--all", "--yes")
        output, _ = unprotecting.communicate()
        assert unprotecting.returncode == 0, output

    def destroy(self) -> Change:
        change = Change()
        self.stack.destroy(on_event=change.record)
        return change

    def output(self, name: str) -> Any:
        return self.stack.outputs()[name].value


class Program(Project):
    """A copy of the program in a folder of the test's, with the state beside it."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        project = folder / "project"
        project.mkdir(parents=True)
        for name in PROGRAM:
            source = PROJECT / name
            if source.is_dir():
                compileall.compile_dir(source, quiet=1)  # as it is after a user's first command
                shutil.copytree(source, project / name, ignore=shutil.ignore_patterns(".*_cache"))
            else:
                shutil.copy(source, project / name)
        (project / ".venv").symlink_to(PROJECT / ".venv")
        super().__init__(project, folder / "state", config)
