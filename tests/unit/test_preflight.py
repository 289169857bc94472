# ruff: noqa: E501  a row of the table is easier to read on one line
"""What a cluster lacks is told before anything is created, in one line each."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from components import api
from components.errors import ConfigError
from components.preflight import NEW_IN_TRAINER, require_ready
from components.settings import parse
from tests.unit.api_server import ApiServer, api_server
from tests.unit.recording import as_config

TRAINER = f"/openapi/v3/apis/{api.TRAINER_API}"
JOBSET = f"/apis/{api.JOBSET_API}"
VOLCANO = f"/apis/{api.VOLCANO_API}"
NAMESPACE = "/api/v1/namespaces/default"
QUEUE = f"{VOLCANO}/queues/research"
RUNTIME = f"/apis/{api.TRAINER_API}/clustertrainingruntimes/theirs"
PRIORITY = "/apis/scheduling.k8s.io/v1/priorityclasses/high"
INSTALL = "install it with `cd operators && pulumi up`"

LAUNCH_ALONE: dict[str, Any] = {"runtime": {"create": False}, "job": {"enabled": False}}
FOREIGN_QUEUE = {"volcano": {"queue": {"create": False, "name": "research"}}}
FOREIGN_RUNTIME = {"runtime": {"create": False, "name": "theirs"}}


def published(lacking: set[str]) -> dict[str, Any]:
    """The Trainer's schemas as the API server publishes them, without some fields."""
    kinds: dict[str, Any] = {}
    for kind, path in NEW_IN_TRAINER:
        schema = kinds.setdefault(f"org.kubeflow.trainer.v1alpha1.{kind}", {})
        for part in path.split("."):
            if path not in lacking:
                schema = schema.setdefault("properties", {}).setdefault(part, {})
    return {"components": {"schemas": kinds}}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A cluster that has everything."""
    with api_server() as server:
        server.answer(TRAINER, published(set()))
        for path in (JOBSET, VOLCANO, PRIORITY):
            server.answer(path, {})
        server.answer(NAMESPACE, {"status": {"phase": "Active"}})
        server.answer(QUEUE, {"spec": {}, "status": {"state": "Open"}})
        mounts_scripts = {
            "template": {"spec": {"template": {"spec": {"volumes": [{"configMap": {"name": "scripts"}}]}}}}
        }
        server.answer(RUNTIME, {"spec": {"template": {"spec": {"replicatedJobs": [mounts_scripts]}}}})
        server.answer(f"{NAMESPACE}/configmaps/scripts", {})
        yield server


def faults(server: ApiServer, **config: Any) -> list[str]:
    try:
        require_ready(server.kubeconfig, parse({key: as_config(value) for key, value in config.items()}), "tf:")
    except ConfigError as error:
        return list(error.lines)
    return []


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({}, id="its own queue and runtime"),
        pytest.param(FOREIGN_QUEUE, id="a queue of somebody else's"),
        pytest.param(FOREIGN_RUNTIME, id="a runtime of somebody else's"),
        pytest.param(
            {"volcano": {"priorityClass": "high", "queue": {"parent": "research"}}}, id="a priority, a parent"
        ),
    ],
)
def test_a_cluster_that_has_everything(server: ApiServer, config: dict[str, Any]) -> None:
    assert faults(server, **config) == []


def a_launch(**section: Any) -> dict[str, Any]:
    return {"enabled": True, "entity": "team"} | section


def lacks(path: str, config: Mapping[str, Any], want: str, name: str) -> Any:
    return pytest.param(path, config, want, id=name)


@pytest.mark.parametrize(
    ("path", "config", "want"),
    [
        lacks(
            TRAINER,
            {},
            "Kubeflow Trainer is missing in the cluster (TrainJob and ClusterTrainingRuntime of "
            f"trainer.kubeflow.org/v1alpha1); {INSTALL}",
            "Kubeflow Trainer",
        ),
        lacks(
            JOBSET, {}, f"JobSet is missing in the cluster (JobSet of jobset.x-k8s.io/v1alpha2); {INSTALL}", "JobSet"
        ),
        lacks(
            VOLCANO,
            FOREIGN_QUEUE,
            "Volcano is missing in the cluster (Queue and PodGroup of scheduling.volcano.sh/v1beta1); "
            f"{INSTALL}, or set volcano.enabled to false",
            "Volcano",
        ),
        lacks(
            NAMESPACE,
            {},
            'tf:namespace is "default", which the cluster lacks; make it with `kubectl create namespace default`',
            "the namespace",
        ),
        lacks(
            QUEUE,
            FOREIGN_QUEUE,
            'tf:volcano.queue.name is "research", a queue that the cluster lacks; accepted: one that exists, or '
            "volcano.queue.create true",
            "the queue",
        ),
        lacks(
            QUEUE,
            {"volcano": {"queue": {"parent": "research"}}},
            'tf:volcano.queue.parent is "research", a queue that the cluster lacks; accepted: one that exists',
            "the queue above",
        ),
        lacks(
            PRIORITY,
            {"volcano": {"priorityClass": "high"}},
            'tf:volcano.priorityClass is "high", a PriorityClass that the cluster lacks; accepted: one that exists',
            "the priority class",
        ),
        lacks(
            RUNTIME,
            FOREIGN_RUNTIME,
            'tf:runtime.name is "theirs", a ClusterTrainingRuntime that the cluster lacks; accepted: one that exists, or '
            "runtime.create true",
            "the runtime",
        ),
        lacks(
            f"{NAMESPACE}/configmaps/scripts",
            FOREIGN_RUNTIME,
            'tf:namespace is "default", which lacks the ConfigMap scripts that runtime theirs mounts; accepted: the '
            "namespace of the stack that made the runtime",
            "the runtime's scripts in this namespace",
        ),
    ],
)
def test_what_is_missing_is_one_line(server: ApiServer, path: str, config: dict[str, Any], want: str) -> None:
    del server.answers[path]
    assert faults(server, **config) == [want]


@pytest.mark.parametrize("setting", ["data", "checkpoints", "logs"])
def test_a_claim_that_is_missing(server: ApiServer, setting: str) -> None:
    assert faults(server, **{setting: {"pvc": "claim"}}) == [
        f'tf:{setting}.pvc is "claim", a PersistentVolumeClaim that namespace default lacks; accepted: one that exists'
    ]


def test_what_may_not_be_read_is_taken_to_be_there(server: ApiServer) -> None:
    for path in (TRAINER, JOBSET, VOLCANO, NAMESPACE, QUEUE):
        server.answer(path, {"message": "forbidden"}, 403)
    assert faults(server, **FOREIGN_QUEUE) == []


def test_an_older_trainer_is_told_by_the_fields_that_it_lacks(server: ApiServer) -> None:
    server.answer(TRAINER, published({"spec.activeDeadlineSeconds", "spec.mlPolicy.torch.envInjection"}))
    assert faults(server) == [
        "Kubeflow Trainer in the cluster is older than 2.3: it lacks TrainJob spec.activeDeadlineSeconds, "
        f"ClusterTrainingRuntime spec.mlPolicy.torch.envInjection; {INSTALL}"
    ]


def test_a_namespace_that_is_being_deleted(server: ApiServer) -> None:
    server.answer(NAMESPACE, {"status": {"phase": "Terminating"}})
    assert faults(server) == [
        'tf:namespace is "default", which is being deleted; wait until it is gone, or choose another'
    ]


def test_a_closed_queue(server: ApiServer) -> None:
    server.answer(QUEUE, {"spec": {}, "status": {"state": "Closed"}})
    assert faults(server, **FOREIGN_QUEUE) == [
        'tf:volcano.queue.name is "research", a queue that is Closed; accepted: one that is Open'
    ]


@pytest.mark.parametrize(
    ("capability", "config", "want"),
    [
        pytest.param({"nvidia.com/gpu": "8"}, {"resources": {"gpu": 4}}, None, id="GPUs that suffice"),
        pytest.param({"cpu": "1"}, {"resources": {"gpu": 4}}, None, id="no bound on GPUs"),
        pytest.param({"nvidia.com/gpu": "7"}, {"resources": {"gpu": 4}}, "nvidia.com/gpu is 7; accepted: at least 2 x 4", id="too few GPUs"),
        pytest.param({"nvidia.com/gpu": "0"}, {"resources": {"gpu": 1}}, "nvidia.com/gpu is 0; accepted: at least 2 x 1", id="no GPUs"),
        pytest.param({"nvidia.com/hostdev": "2"}, {"infiniband": {"enabled": True}}, "nvidia.com/hostdev is 2; accepted: at least 2 x 2", id="too few adapters"),
        pytest.param({"memory": "1Gi"}, {"resources": {"memory": "513Mi"}}, "memory is 1Gi; accepted: at least 2 x 513Mi", id="too little memory"),
    ],
)  # fmt: skip
def test_the_gang_against_the_capability_of_a_foreign_queue(
    server: ApiServer, capability: dict[str, str], config: dict[str, Any], want: str | None
) -> None:
    server.answer(QUEUE, {"spec": {"capability": capability}, "status": {"state": "Open"}})
    line = (
        f'tf:volcano.queue.name is "research", whose capability is too small: {want}, which the workers ask for '
        "together, or they would wait for ever"
    )
    assert faults(server, **FOREIGN_QUEUE, **config) == ([line] if want else [])


def test_a_stack_of_a_launch_queue_alone_needs_nothing_of_the_trainers(server: ApiServer) -> None:
    for path in (TRAINER, JOBSET, NAMESPACE):
        del server.answers[path]
    assert faults(server, **LAUNCH_ALONE, launch=a_launch()) == []


@pytest.mark.parametrize(
    ("section", "want"),
    [
        pytest.param({"queue": {"volcanoQueue": "none"}}, 'tf:launch.queue.volcanoQueue is "none", a queue that the cluster lacks; accepted: one that exists', id="the Volcano queue"),
        pytest.param({"queue": {"priorityClass": "none"}}, 'tf:launch.queue.priorityClass is "none", a PriorityClass that the cluster lacks; accepted: one that exists', id="the priority class"),
        pytest.param({"agent": {"targetNamespaces": ["none"]}}, "tf:launch.agent.targetNamespaces: none is a namespace that the cluster lacks; make it with `kubectl create namespace none`", id="a target namespace"),
        pytest.param({"agent": {"createNamespace": False}}, "tf:launch.agent.namespace: wandb is a namespace that the cluster lacks; make it with `kubectl create namespace wandb`", id="the agent's namespace"),
    ],
)  # fmt: skip
def test_what_a_launch_queue_misses_is_one_line(server: ApiServer, section: dict[str, Any], want: str) -> None:
    assert faults(server, **LAUNCH_ALONE, launch=a_launch(**section)) == [want]


def test_a_launch_queue_of_volcano_jobs_needs_volcano(server: ApiServer) -> None:
    del server.answers[VOLCANO]
    assert faults(server, **LAUNCH_ALONE, launch=a_launch()) == [
        f"Volcano is missing in the cluster (Queue of scheduling.volcano.sh/v1beta1); {INSTALL}"
    ]


def test_what_is_missing_is_told_although_something_else_may_not_be_read(server: ApiServer) -> None:
    del server.answers[VOLCANO]
    server.answer("/api/v1/namespaces/ml", {"message": "forbidden"}, 403)
    assert faults(server, **LAUNCH_ALONE, launch=a_launch(agent={"targetNamespaces": ["ml"]})) == [
        f"Volcano is missing in the cluster (Queue of scheduling.volcano.sh/v1beta1); {INSTALL}"
    ]


def test_a_server_that_refuses_is_one_line(server: ApiServer) -> None:
    server.answer(NAMESPACE, {"message": "Unauthorized"}, 401)
    assert faults(server) == [
        "the Kubernetes API server refuses GET /api/v1/namespaces/default: 401 Unauthorized; renew the context's "
        "credentials, or choose another with KUBECONFIG or `pulumi config set kubernetes:context`"
    ]
