"""Nobody but the gang reaches the gang: TensorFlow asks no peer who it is."""

import subprocess
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from components import api
from tests.cluster.conftest import small_job
from tests.cluster.jobs import Job, Lab
from tests.cluster.objects import kind_of, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

PORT = 12345
LONG = 1000  # epochs: training that no test waits for
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)"
RESOLVE = "import socket, sys; socket.gethostbyname(sys.argv[1])"


def executes(namespace: str, pod: str, script: str, *args: str) -> bool:
    """Whether a Python script runs without an error inside the pod."""
    command = ["kubectl", "exec", pod, "--namespace", namespace, "--", "python3", "-c", script, *args]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0  # noqa: S603


def address(job: Job, index: int) -> str:
    return str(job.pods[index]["status"]["podIP"])


def stranger(namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    """A pod that does nothing by itself."""
    container = {"name": "python", "image": small_job("")["image"], "command": ["sleep", "infinity"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stranger", "namespace": namespace, "labels": labels},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }


@pytest.fixture(scope="module")
def training(lab: Lab) -> Iterator[Job]:
    """A gang that trains."""
    job = lab.job("training", EPOCHS=LONG)
    job.apply()
    job.wait_for_training()
    yield job
    job.remove()


@pytest.fixture(scope="module")
def gathering(lab: Lab) -> Iterator[Job]:
    """A gang whose workers wait for one more."""
    job = lab.job("gathering", TF_NUM_WORKERS=3)
    job.apply()
    wait_until("two have met", lambda: any("found 2 of 3" in worker.log for worker in job.workers), 60)
    yield job
    job.remove()


@pytest.fixture(scope="module")
def strangers(lab: Lab) -> Iterator[dict[str, str]]:
    """Pods of another job, by where they are; each pod's namespace."""
    other = f"test-{uuid.uuid4().hex[:6]}"
    kind_of("v1", "Namespace").create(body={"metadata": {"name": other}})
    places = {"the same namespace": lab.namespace, "another namespace": other}
    for namespace in places.values():
        pod = stranger(namespace, {api.JOBSET_NAME_LABEL: "another-job"})
        kind_of("v1", "Pod").create(body=pod, namespace=namespace)
    wait_until("the strangers run", lambda: all(executes(where, "stranger", "pass") for where in places.values()), 60)
    yield places
    kind_of("v1", "Pod").delete(name="stranger", namespace=lab.namespace)
    kind_of("v1", "Namespace").delete(name=other)


@pytest.mark.parametrize("place", ["the same namespace", "another namespace"])
@pytest.mark.parametrize("stage", ["training", "gathering"])
def test_a_pod_of_another_job_is_kept_out(
    stage: str, place: str, strangers: dict[str, str], request: pytest.FixtureRequest
) -> None:
    gang: Job = request.getfixturevalue(stage)
    for index in (0, 1):
        assert not executes(strangers[place], "stranger", CONNECT, address(gang, index), str(PORT))


@pytest.mark.parametrize("stage", ["training", "gathering"])
def test_the_gang_reaches_itself(stage: str, request: pytest.FixtureRequest) -> None:
    gang: Job = request.getfixturevalue(stage)
    caller = str(gang.pods[1]["metadata"]["name"])
    assert executes(gang.lab.namespace, caller, CONNECT, address(gang, 0), str(PORT))


def test_the_gang_asks_the_clusters_dns(training: Job) -> None:
    for pod in training.pods:
        assert executes(training.lab.namespace, str(pod["metadata"]["name"]), RESOLVE, "kubernetes.default.svc")


def test_it_is_the_policy_that_keeps_them_out(gathering: Job, strangers: dict[str, str]) -> None:
    kind_of(api.NETWORKING_API, api.NETWORK_POLICY_KIND).delete(name=gathering.name, namespace=gathering.lab.namespace)
    port = (address(gathering, 0), str(PORT))
    wait_until(
        "they get in", lambda: all(executes(where, "stranger", CONNECT, *port) for where in strangers.values()), 30
    )
