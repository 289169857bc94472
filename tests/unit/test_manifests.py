"""Every manifest as a whole, against its golden file and the official models."""

from typing import Any

import pytest
from kubeflow_trainer_api import models  # type: ignore[import-untyped]

from components.errors import ConfigError
from components.network import policy_manifest
from components.tensorboard import deployment_manifest, service_manifest
from components.train_job import train_job_manifest
from components.training_runtime import runtime_manifest, worker_resources
from components.volcano_queue import queue_manifest
from components.volumes import checkpoint_volume, data_volume, log_volume
from tests.unit.builders import INFINIBAND, VOLCANO, a_queue, a_runtime, a_tensorboard, a_train_job
from tests.unit.goldens import assert_golden

RUNTIMES = [
    pytest.param("runtime_basic", {}, id="without Volcano and InfiniBand"),
    pytest.param(
        "runtime_volcano", {"runtime_name": "tensorflow-distributed-volcano", "volcano": VOLCANO}, id="Volcano"
    ),
    pytest.param("runtime_infiniband", {"infiniband": INFINIBAND}, id="InfiniBand alone"),
    pytest.param(
        "runtime_volcano_infiniband",
        {"runtime_name": "tensorflow-distributed-volcano", "volcano": VOLCANO, "infiniband": INFINIBAND},
        id="Volcano and InfiniBand",
    ),
    pytest.param(
        "runtime_everything",
        {
            "volcano": {
                "queue_name": "tensorflow",
                "priority_class": "high",
                "network_topology": {"mode": "hard", "highest_tier_allowed": 2},
            },
            "infiniband": INFINIBAND,
            "image": "registry/tf:1",
            "image_pull_policy": "Always",
            "image_pull_secrets": ["registry"],
            "script": "mine.py",
            "args": ["--lr", "0.1"],
            "env": {"EPOCHS": "5"},
            "resources": worker_resources("2", "8Gi", 1),
            "volumes": [
                data_volume(pvc="cifar"),
                checkpoint_volume("/var/checkpoints", None),
                log_volume(None, "logs"),
            ],
            "shm_size": "2Gi",
            "node_selector": {"gpu": "a100"},
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "max_restarts": 0,
        },
        id="every option",
    ),
]
JOBS = [
    pytest.param("train_job_1", {"num_nodes": 1}, id="one node"),
    pytest.param("train_job_2", {"num_nodes": 2}, id="two nodes"),
    pytest.param("train_job_4", {"num_nodes": 4}, id="four nodes"),
    pytest.param(
        "train_job_everything",
        {
            "image": "registry/tf:1",
            "command": ["python3", "mine.py"],
            "args": ["--lr", "0.1"],
            "env": {"EPOCHS": "5"},
            "resources": worker_resources("2", "8Gi", 1),
            "deadline_seconds": 3600,
            "await_completion": True,
        },
        id="every option",
    ),
    pytest.param("train_job_suspended", {"suspend": True, "await_completion": True}, id="suspended"),
]


@pytest.mark.parametrize(("golden", "different"), RUNTIMES)
def test_runtime_manifest(golden: str, different: dict[str, Any]) -> None:
    manifest = runtime_manifest(a_runtime(**different))
    assert_golden(golden, manifest)
    assert_model(models.TrainerV1alpha1ClusterTrainingRuntime, manifest)


@pytest.mark.parametrize(("golden", "different"), JOBS)
def test_train_job_manifest(golden: str, different: dict[str, Any]) -> None:
    manifest = train_job_manifest(a_train_job(**different))
    assert_golden(golden, manifest)
    assert_model(models.TrainerV1alpha1TrainJob, manifest)


@pytest.mark.parametrize(
    ("golden", "different"),
    [
        pytest.param("queue_basic", {}, id="defaults"),
        pytest.param(
            "queue_everything",
            {
                "weight": 4,
                "capability": {"cpu": "64", "nvidia.com/gpu": "32"},
                "guarantee": {"cpu": "8"},
                "reclaimable": False,
                "parent": "research",
            },
            id="every option",
        ),
    ],
)
def test_queue_manifest(golden: str, different: dict[str, Any]) -> None:
    assert_golden(golden, queue_manifest(a_queue(**different)))


def test_tensorboard_manifests() -> None:
    assert_golden("tensorboard_deployment", deployment_manifest(a_tensorboard()))
    assert_golden("tensorboard_service", service_manifest(a_tensorboard()))


def test_network_policy_admits_the_jobs_own_pods_alone() -> None:
    manifest = policy_manifest("tf-distributed-training", "default")
    assert_golden("network_policy", manifest)


def test_infiniband_off_leaves_nothing_of_it() -> None:
    text = str(runtime_manifest(a_runtime()))
    assert "hostdev" not in text
    assert "networks" not in text
    assert "IPC_LOCK" not in text


def test_env_of_the_job_is_the_job_alone_that_knows_the_number_of_workers() -> None:
    assert "TF_NUM_WORKERS" not in str(runtime_manifest(a_runtime()))
    assert {"name": "TF_NUM_WORKERS", "value": "2"} in train_job_manifest(a_train_job())["spec"]["trainer"]["env"]


def test_numbers_from_other_languages_arrive_as_floats_and_leave_as_integers() -> None:
    assert repr(train_job_manifest(a_train_job(num_nodes=2.0))) == repr(train_job_manifest(a_train_job(num_nodes=2)))
    assert repr(queue_manifest(a_queue(weight=2.0))) == repr(queue_manifest(a_queue(weight=2)))
    infiniband = {**INFINIBAND, "count": 2.0}
    assert repr(runtime_manifest(a_runtime(infiniband=infiniband))) == repr(
        runtime_manifest(a_runtime(infiniband=INFINIBAND))
    )


def test_a_job_name_without_room_for_its_pods_is_refused() -> None:
    with pytest.raises(ConfigError, match="at most 47 characters"):
        train_job_manifest(a_train_job(job_name="x" * 48, num_nodes=11))


@pytest.mark.parametrize(
    ("cpu", "memory", "gpu", "want"),
    [
        pytest.param("", "", 0, None, id="nothing"),
        pytest.param("2", "", 0, {"requests": {"cpu": "2"}}, id="CPU has no limit"),
        pytest.param(
            "", "1Gi", 0, {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}}, id="memory has a limit"
        ),
        pytest.param(
            "", "", 8, {"requests": {"nvidia.com/gpu": "8"}, "limits": {"nvidia.com/gpu": "8"}}, id="GPUs have a limit"
        ),
    ],
)
def test_worker_resources(cpu: str, memory: str, gpu: int, want: dict[str, Any] | None) -> None:
    assert worker_resources(cpu, memory, gpu) == want


def assert_model(model: type[Any], manifest: dict[str, Any]) -> None:
    """The official model reads the manifest, and gives all of it back: no field is misspelt or misplaced."""
    assert model.from_dict(manifest).to_dict() == manifest
