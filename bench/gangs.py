"""A gang made by `pulumi up`, and by `kubectl apply` of the very same objects: what their benchmarks have in common."""

import json
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config, dynamic
from kubernetes.dynamic.exceptions import NotFoundError

from components.kubernetes_object import PROVIDER_VERSION, type_token
from tests.cluster.program import STACK, Program, Project

JOB = "gang"
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 900.0
MINIMAL_PROGRAM = """\
import pulumi

pulumi.CustomResource(
    "kubernetes:core/v1:ConfigMap",
    "minimal",
    {{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"namespace": "{namespace}"}}, "data": {{"key": "value"}}}},
    pulumi.ResourceOptions(version="{version}"),
)
"""
"""The least that starts the engine and the provider."""
PLAIN_PROGRAM = """\
import pulumi
import yaml

made = []
for token, item in yaml.safe_load(open("resources.yaml")):
    options = pulumi.ResourceOptions(version="{version}", depends_on=made[-1:])
    made.append(pulumi.CustomResource(token, item["kind"], item, options))
"""
"""The objects of a file, each with its type token, one after another, as `kubectl apply` makes them."""
KUBECTL = "kubectl apply of the same objects"

Objects = list[dict[str, Any]]
Milestones = Callable[[str], Sequence[Callable[[], bool]]]
"""Of a gang in a namespace: what is to be seen of it, one after another."""


class Cluster:
    """Small questions to the API server, which is busy enough."""

    def __init__(self) -> None:
        config.load_kube_config()
        self._client = dynamic.DynamicClient(client.ApiClient())

    def exists(self, api_version: str, kind: str, name: str, namespace: str) -> bool:
        try:
            self._kind(api_version, kind).get(name=name, namespace=namespace, serialize=False)
        except NotFoundError:
            return False
        return True

    def pods(self, namespace: str) -> int:
        """How many there are: one of them, and the number of those left."""
        answer = self._pods(namespace, limit=1)
        return len(answer["items"]) + int(answer["metadata"].get("remainingItemCount", 0))

    def running(self, namespace: str) -> int:
        """How many pods run. With a selector the API server does not say how many are left."""
        return len(self._pods(namespace, field_selector="status.phase=Running")["items"])

    def waits(self, namespace: str) -> bool:
        """Whether a pod has no node."""
        return bool(self._pods(namespace, field_selector="spec.nodeName=", limit=1)["items"])

    def _pods(self, namespace: str, **query: Any) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self._kind("v1", "Pod").get(namespace=namespace, serialize=False, **query).data
        )
        return found

    def _kind(self, api_version: str, kind: str) -> Any:
        return self._client.resources.get(api_version=api_version, kind=kind)

    @contextmanager
    def namespace(self) -> Iterator[str]:
        """A namespace of its own, gone with its pods at the end."""
        name = f"bench-{uuid.uuid4().hex[:6]}"
        self._kind("v1", "Namespace").create(body={"metadata": {"name": name}})
        yield name
        self._kind("v1", "Namespace").delete(name=name)
        while self.exists("v1", "Namespace", name, ""):
            time.sleep(0.5)


def watched(create: Callable[[], object], milestones: Sequence[Callable[[], bool]]) -> list[float]:
    """Run a command that creates the gang; the seconds from its start until each milestone could be seen.

    Raises RuntimeError when the command fails, or a milestone is not reached within PATIENCE_SECONDS.
    """
    seconds: list[float] = []
    with ThreadPoolExecutor(1) as pool:
        started = time.monotonic()
        command = pool.submit(create)
        for number, reached in enumerate(milestones, 1):
            while not reached():
                if command.done():
                    command.result()  # raises when it failed: nothing is to come then
                if time.monotonic() - started > PATIENCE_SECONDS:
                    raise RuntimeError(f"milestone {number} was not reached within {PATIENCE_SECONDS:g} s")
                time.sleep(POLL_SECONDS)
            seconds.append(time.monotonic() - started)
    return seconds


def with_pulumi(
    cluster: Cluster, settings: Callable[[str], Mapping[str, Any]], milestones: Milestones
) -> tuple[list[float], Objects]:
    """A gang by `pulumi up` in a namespace of its own, which the settings are made for; also the objects it made."""
    with tempfile.TemporaryDirectory() as folder, cluster.namespace() as namespace:
        program = Program(Path(folder), settings(namespace))
        seconds = watched(lambda: pulumi_up(program), milestones(namespace))
        objects = list(made_objects(program))
        program.destroy()
    return seconds, objects


def with_kubectl(cluster: Cluster, objects: Objects, milestones: Milestones) -> list[float]:
    """A gang by `kubectl apply` of the same objects under other names."""
    with tempfile.TemporaryDirectory() as folder, cluster.namespace() as namespace:
        file = Path(folder) / "objects.yaml"
        file.write_text(yaml.safe_dump_all(moved(objects, namespace)))
        seconds = watched(lambda: tool("kubectl", "apply", "--filename", file), milestones(namespace))
        tool("kubectl", "delete", "--filename", file)
    return seconds


def with_plain_pulumi(cluster: Cluster, objects: Objects, milestones: Milestones) -> list[float]:
    """A gang by `pulumi up` of a program that declares the same objects under other names, and nothing besides."""
    with tempfile.TemporaryDirectory() as folder, cluster.namespace() as namespace:
        project = minimal_project(Path(folder), PLAIN_PROGRAM, namespace)
        resources = [[type_token(item["apiVersion"], item["kind"]), item] for item in moved(objects, namespace)]
        (project.folder / "resources.yaml").write_text(yaml.safe_dump(resources))
        seconds = watched(lambda: pulumi_up(project), milestones(namespace))
        project.destroy()
    return seconds


def moved(objects: Objects, namespace: str) -> Objects:
    """The objects of a program, as they would be in this namespace."""
    old = next(item for item in objects if item["kind"] == "TrainJob")["metadata"]["namespace"]
    there: Objects = json.loads(json.dumps(objects).replace(old, namespace))
    return there


def minimal_project(folder: Path, program: str, namespace: str) -> Project:
    """A project with this program, which may name the namespace and the provider's version."""
    project = folder / "project"
    project.mkdir(parents=True)
    (project / "Pulumi.yaml").write_text("name: minimal\nruntime: python\n")
    (project / "__main__.py").write_text(program.format(namespace=namespace, version=PROVIDER_VERSION))
    return Project(project, folder / "state", {})


def minimal_pulumi_up(cluster: Cluster) -> float:
    """Seconds that `pulumi up` takes for a program of one ConfigMap: engine and provider start, and do no more."""
    with tempfile.TemporaryDirectory() as folder, cluster.namespace() as namespace:
        project = minimal_project(Path(folder), MINIMAL_PROGRAM, namespace)
        seconds = pulumi_up(project)
        project.destroy()
    return seconds


def pulumi_up(project: Project) -> float:
    """As typed by a user, but for the preview; the seconds it took."""
    return pulumi(project, "up", "--yes", "--skip-preview")


def pulumi(project: Project, *arguments: str, **environment: str) -> float:
    """Seconds that a command on the project's stack takes."""
    started = time.monotonic()
    env = os.environ | project.environment | environment
    tool("pulumi", *arguments, "--stack", STACK, "--cwd", project.folder, env=env)
    return time.monotonic() - started


def made_objects(project: Project) -> Iterator[dict[str, Any]]:
    """The Kubernetes objects in a stack, as the program described them."""
    for resource in (project.stack.export_stack().deployment or {})["resources"]:
        if resource["type"].startswith("kubernetes:"):
            yield {key: value for key, value in resource["inputs"].items() if not key.startswith("__")}


def tool(*words: str | Path, env: Mapping[str, str] | None = None) -> None:
    """Run a command; its output is of interest only if it fails."""
    done = subprocess.run(words, env=env, check=False, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
