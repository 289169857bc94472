"""Arguments of the components, by what differs from an ordinary one."""

from typing import Any, cast

from components.network import InfiniBandArgs
from components.tensorboard import TensorBoardArgs
from components.train_job import TrainJobArgs
from components.training_runtime import RuntimeVolcanoArgs, TensorFlowRuntimeArgs
from components.volcano_queue import VolcanoQueueArgs
from components.volumes import data_volume, log_volume

INFINIBAND: InfiniBandArgs = {
    "networks": ["hostdevice-net"],
    "resource": "nvidia.com/hostdev",
    "count": 2,
    "nccl_env": {"NCCL_IB_DISABLE": "0", "NCCL_SOCKET_IFNAME": "net", "NCCL_DEBUG": "INFO"},
}
VOLCANO: RuntimeVolcanoArgs = {"queue_name": "tensorflow"}


def a_runtime(**different: Any) -> TensorFlowRuntimeArgs:
    ordinary = {
        "runtime_name": "tensorflow-distributed",
        "scripts_config_map": "tensorflow-distributed-scripts-0123456789",
        "volumes": [data_volume()],
    }
    return cast(TensorFlowRuntimeArgs, {**ordinary, **different})


def a_train_job(**different: Any) -> TrainJobArgs:
    ordinary = {
        "job_name": "tf-distributed-training",
        "namespace": "default",
        "runtime_name": "tensorflow-distributed-volcano",
        "num_nodes": 2,
    }
    return cast(TrainJobArgs, {**ordinary, **different})


def a_queue(**different: Any) -> VolcanoQueueArgs:
    return cast(VolcanoQueueArgs, {"queue_name": "tensorflow", **different})


def a_tensorboard(**different: Any) -> TensorBoardArgs:
    ordinary = {"tensorboard_name": "digits-tensorboard", "namespace": "ml", "logs": log_volume("/var/logs", None)}
    return cast(TensorBoardArgs, {**ordinary, **different})


def an_event(kind: str, *, inputs: Any = None, outputs: Any = None) -> Any:
    """What a resource hook is called with."""
    import pulumi

    return pulumi.ResourceHookArgs(f"urn:{kind}", "", kind.lower(), kind, new_inputs=inputs, new_outputs=outputs)
