"""`pulumi preview` of a stack in which nothing has changed, against the smallest Pulumi program there is.

The stack of Pulumi.dev.yaml, deployed and trained to its end, in turns with a program of two lines that declares one
ConfigMap, deployed as well: same engine, same provider, same cluster, same Python. The two lines are written as anybody
would write them, with `pulumi_kubernetes`; whose classes take longer to import than all of this program, which goes
without. So they are also written without, as a peer that is as small as can be.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from bench.gangs import MINIMAL_PROGRAM, Cluster, minimal_project, pulumi, pulumi_up
from bench.reporting import report_pairs
from tests.cluster.program import PROJECT, Program, Project

PAIRS = 12
WITH_CLASSES = """\
from pulumi_kubernetes.core.v1 import ConfigMap

ConfigMap("minimal", metadata={{"namespace": "{namespace}"}}, data={{"key": "value"}})
"""


@contextmanager
def deployed(project: Project) -> Iterator[Project]:
    """The project's stack, up while the block runs, and previewed once: Python has its bytecode then."""
    pulumi_up(project)
    preview(project)
    yield project
    project.destroy()


def preview(project: Project) -> float:
    """Seconds; it must find nothing to change."""
    return pulumi(project, "preview", "--expect-no-changes")


def dev_stack(folder: Path, namespace: str) -> Program:
    config = yaml.safe_load((PROJECT / "Pulumi.dev.yaml").read_text())["config"]
    settings = {key.partition(":")[2]: value for key, value in config.items()}
    settings["volcano"]["queue"]["name"] = f"{namespace}-queue"
    return Program(folder, settings | {"namespace": namespace, "runtime": {"name": f"{namespace}-runtime"}})


def main() -> None:
    """Measure and report."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        namespace = stack.enter_context(Cluster().namespace())
        projects = [
            stack.enter_context(deployed(project))
            for project in (
                dev_stack(folder / "dev", namespace),
                minimal_project(folder / "with", WITH_CLASSES, namespace),
                minimal_project(folder / "without", MINIMAL_PROGRAM, namespace),
            )
        ]
        seconds = [[preview(project) for project in projects] for _ in range(PAIRS)]
    ours, with_classes, without_classes = map(list, zip(*seconds, strict=True))
    name = "preview of the dev stack, no changes"
    report_pairs(name, "s", ours, "a program with one ConfigMap", with_classes, goal="at most 1.25 times")
    report_pairs(name, "s", ours, "the same without pulumi_kubernetes' classes", without_classes)


if __name__ == "__main__":
    main()
