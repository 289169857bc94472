"""Fixtures of the tests on the embedded cluster. They refuse any other: some of them take a cluster's parts away."""

import os
import subprocess
import uuid
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from kubernetes import config

from tests.cluster.jobs import Job, Lab
from tests.cluster.objects import kind_of, listed
from tests.cluster.program import Program
from tests.cluster.recording import Worker, recording

NODE = "devcluster"
EPOCHS = 40
"""Epochs of the runs that are disturbed: about twenty seconds of training on two cores, after ten of starting up."""
IMAGE = "localhost/tftrainer/tensorflow:2.21.0"
EVIDENCE = (
    "kubectl get trainjobs,jobsets,jobs,podgroups,queues,pods -A -o wide",
    "kubectl get events -A --sort-by=.lastTimestamp",
)
"""What a failed test shows: afterwards its objects are gone."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed and item.get_closest_marker("cluster"):
        for command in EVIDENCE:
            shown = subprocess.run(command.split(), capture_output=True, text=True, check=False)  # noqa: S603
            report.sections.append((command, "\n".join(shown.stdout.splitlines()[-100:])))
    return report


@pytest.fixture(scope="session", autouse=True)
def cluster() -> None:
    """Point the Kubernetes client at the embedded cluster."""
    config.load_kube_config(os.environ.get("KUBECONFIG"))
    names = [node["metadata"]["name"] for node in listed("v1", "Node")]
    assert NODE in names, f"the current kube context is not the embedded cluster: its nodes are {names}"


@pytest.fixture
def namespace() -> Iterator[str]:
    """A fresh namespace, deleted afterwards with all that is in it."""
    name = f"test-{uuid.uuid4().hex[:6]}"
    kind_of("v1", "Namespace").create(body={"metadata": {"name": name}})
    yield name
    kind_of("v1", "Namespace").delete(name=name)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A stack with the runtime alone, for jobs that come and go by hand, with a checkpoint every ten steps."""
    name = f"test-{uuid.uuid4().hex[:6]}"
    kind_of("v1", "Namespace").create(body={"metadata": {"name": name}})
    checkpoints = tmp_path_factory.mktemp("checkpoints")
    shape = {"job": {"enabled": False}, "checkpoints": {"hostPath": str(checkpoints), "everySteps": 10}}
    program = Program(tmp_path_factory.mktemp("lab"), small_job(name) | shape)
    program.up()
    with recording(name) as found:
        yield Lab(name, f"{name}-runtime", checkpoints, found)
    kind_of("v1", "Namespace").delete(name=name)
    program.unprotect()
    program.destroy()


class MakeJob(Protocol):
    def __call__(self, *, command: Sequence[str] = (), **env: object) -> Job: ...


@pytest.fixture
def make_job(lab: Lab) -> Iterator[MakeJob]:
    """Make TrainJobs, yet to be applied, that are removed after the test."""
    jobs: list[Job] = []

    def make(*, command: Sequence[str] = (), **env: object) -> Job:
        jobs.append(lab.job(f"job-{uuid.uuid4().hex[:6]}", command, **env))
        return jobs[-1]

    yield make
    for job in jobs:
        job.remove()


@pytest.fixture(scope="session")
def undisturbed(lab: Lab) -> Worker:
    """Worker 0 of a run of EPOCHS epochs that nothing has happened to."""
    job = lab.job("undisturbed", EPOCHS=EPOCHS)
    job.apply()
    assert job.wait_for_end() == "Complete"
    job.remove()
    return job.last_gang[0]


class Deploy(Protocol):
    def __call__(self, **config: Any) -> Program: ...


@pytest.fixture
def deploy(namespace: str, tmp_path: Path) -> Iterator[Deploy]:
    """Make programs whose stacks are destroyed after the test. Cluster-scoped names carry the namespace's name."""
    programs: list[Program] = []

    def make(**overrides: Any) -> Program:
        program = Program(tmp_path / str(len(programs)), small_job(namespace) | overrides)
        programs.append(program)
        return program

    yield make
    for program in reversed(programs):
        if program.is_for_others:
            program.unprotect()
        program.destroy()


def small_job(namespace: str) -> dict[str, Any]:
    """The smallest training that is still the real thing: digits, one epoch, two workers that fit a two-core node."""
    return {
        "namespace": namespace,
        "numNodes": 2,
        "epochs": 1,
        "image": IMAGE,
        "resources": {"cpu": "200m", "memory": "1Gi"},
        "data": {"hostPath": "/var/lib/tftrainer/cifar-10-batches-py"},
        "job": {"name": "digits"},
        "runtime": {"name": f"{namespace}-runtime"},
        "volcano": {"queue": {"name": f"{namespace}-queue"}},
        "awaitCompletion": True,
    }
