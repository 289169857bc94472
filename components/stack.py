"""From settings to component arguments, and what a stack tells its user at the end."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi

from components import api
from components.settings import Checkpoints, Logs, Settings
from components.tensorboard import TensorBoardArgs
from components.train_job import TrainJobArgs
from components.training_runtime import (
    DEFAULT_GPU_IMAGE,
    NAME_WITH_VOLCANO,
    NAME_WITHOUT_VOLCANO,
    RuntimeVolcanoArgs,
    TensorFlowRuntimeArgs,
    launch_command,
    worker_resources,
)
from components.volcano_queue import VolcanoQueueArgs
from components.volumes import VolumeArgs, checkpoint_volume, data_volume, log_volume


def runtime_name(settings: Settings) -> str:
    """The configured name, or the one that tells whether Volcano is in use."""
    return settings.runtime.name or (NAME_WITH_VOLCANO if settings.volcano.enabled else NAME_WITHOUT_VOLCANO)


def queue_args(settings: Settings) -> VolcanoQueueArgs:
    queue = settings.volcano.queue
    return {
        "queue_name": queue.name,
        "weight": queue.weight,
        "capability": queue.capability,
        "guarantee": queue.guarantee,
        "reclaimable": queue.reclaimable,
        "parent": queue.parent or None,
    }


def runtime_args(
    settings: Settings, secret: frozenset[str], scripts: pulumi.Input[str], queue: pulumi.Input[str] | None
) -> TensorFlowRuntimeArgs:
    """The runtime: what belongs to the platform, and in a stack without a job also what would belong to the job."""
    args: TensorFlowRuntimeArgs = {
        "runtime_name": runtime_name(settings),
        "scripts_config_map": scripts,
        "image_pull_policy": settings.image_pull_policy,
        "image_pull_secrets": settings.image_pull_secrets,
        "volumes": _volumes(settings),
        "shm_size": settings.shm_size or None,
        "node_selector": settings.node_selector,
        "affinity": {str(kind): rules for kind, rules in settings.affinity.items()},
        "tolerations": [_toleration(toleration) for toleration in settings.tolerations],
        "volcano": _volcano(settings, queue) if queue is not None else None,
        "infiniband": settings.infiniband.args(),
        "max_restarts": settings.max_restarts,
        "env": _folders(settings),
    }
    if not settings.job.enabled:
        args["image"] = _image(settings)
        args["script"] = _script_name(settings)
        args["args"] = _args(settings, secret)
        args["env"] = {**_folders(settings), **_env(settings, secret)}
        args["resources"] = _resources(settings)
    return args


def job_args(
    settings: Settings, secret: frozenset[str], runtime: pulumi.Input[str], scripts: pulumi.Input[str] | None
) -> TrainJobArgs:
    """The job: what belongs to one run."""
    return {
        "job_name": settings.job.name,
        "namespace": settings.namespace,
        "runtime_name": runtime,
        "num_nodes": settings.num_nodes,
        "image": _image(settings) if settings.runtime.create else settings.image or None,
        "command": launch_command(_script_name(settings)) if settings.script else None,
        "args": _args(settings, secret),
        "env": _env(settings, secret),
        "resources": _resources(settings),
        "deadline_seconds": settings.deadline,
        "suspend": settings.suspend,
        "run_trigger": _run_trigger(settings, scripts),
        "await_completion": settings.await_completion,
        "await_timeout_seconds": settings.await_timeout,
    }


def tensorboard_args(settings: Settings) -> TensorBoardArgs:
    return {
        "tensorboard_name": f"{settings.job.name}-tensorboard",
        "namespace": settings.namespace,
        "logs": log_volume(settings.logs.host_path or None, settings.logs.pvc or None),
        "image": settings.tensorboard.image or None,
        "image_pull_policy": settings.image_pull_policy,
        "image_pull_secrets": settings.image_pull_secrets,
    }


def verification_commands(settings: Settings) -> dict[str, str]:
    """kubectl commands that show what the stack made, ready to paste, by the name of their stack output."""
    job, namespace = settings.job.name, settings.namespace
    commands = {}
    if settings.trains:
        commands["showRuntime"] = f"kubectl get clustertrainingruntime {runtime_name(settings)}"
    if settings.job.enabled:
        worker_0 = f"{api.JOB_NAME_LABEL}={job}-{api.NODE}-0,{api.COMPLETION_INDEX_LABEL}=0"
        commands |= {
            "showJob": f"kubectl get trainjob {job} -n {namespace}",
            "showPods": f"kubectl get pods -l {api.JOBSET_NAME_LABEL}={job} -n {namespace}",
            # Without the index the label selects every worker, and -f follows at most five pods.
            "workerLogs": f"kubectl logs -l {worker_0} -n {namespace} --tail=-1 -f",
        }
        if settings.volcano.enabled:
            commands["showPodGroup"] = f"kubectl get podgroup {job} -n {namespace}"
    if settings.tensorboard.enabled:
        service = tensorboard_args(settings)["tensorboard_name"]
        commands["tensorboard"] = f"kubectl port-forward service/{service} 6006:80 -n {namespace}"
    return commands


def secret_if(secret: bool, text: str) -> pulumi.Input[str]:
    """The text, encrypted in the state if the config keeps it so."""
    return pulumi.Output.secret(text) if secret else text


def _run_trigger(settings: Settings, scripts: pulumi.Input[str] | None) -> list[Any]:
    """What a run depends on although its TrainJob does not mention it: a change of any runs the job again.

    Not how the runtime starts pods (tolerations, pull secrets, the queue's share): a finished run would be the same
    with another of those.
    """
    if not settings.runtime.create:
        return [settings.run_id]
    queue = settings.volcano.queue.name if settings.volcano.enabled else None
    mounted = [_volumes(settings), _folders(settings), settings.shm_size]
    return [settings.run_id, scripts, *mounted, settings.infiniband.args(), queue]


def _image(settings: Settings) -> str | None:
    return settings.image or (DEFAULT_GPU_IMAGE if settings.resources.gpu else None)


def _script_name(settings: Settings) -> str:
    return Path(settings.script or api.TRAIN_SCRIPT).name


def _resources(settings: Settings) -> dict[str, Any] | None:
    return worker_resources(settings.resources.cpu, settings.resources.memory, settings.resources.gpu)


def _env(settings: Settings, secret: frozenset[str]) -> Mapping[str, pulumi.Input[str]]:
    """The settings with a variable of their own, under the user's environment, whose values stay secret if they are."""
    own = {
        api.ENV_EPOCHS: str(settings.epochs),
        api.ENV_BATCH_SIZE: str(settings.batch_size),
        api.ENV_PORT: str(settings.port),
    }
    return {**own, **{name: secret_if("env" in secret, value) for name, value in settings.env.items()}}


def _args(settings: Settings, secret: frozenset[str]) -> Sequence[pulumi.Input[str]]:
    """The script's arguments, secret if they are."""
    return [secret_if("args" in secret, arg) for arg in settings.args]


def _folders(settings: Settings) -> dict[str, str]:
    """Where checkpoints and logs go: a folder for each job, whoever makes the job."""
    env = {}
    if _given(settings.checkpoints):
        env[api.ENV_CHECKPOINT_DIR] = f"{api.CHECKPOINT_DIR}/{api.FOLDER_OF_JOB}"
        env[api.ENV_CHECKPOINT_EVERY_STEPS] = str(settings.checkpoints.every_steps)
    if _given(settings.logs):
        env[api.ENV_LOG_DIR] = f"{api.LOG_DIR}/{api.FOLDER_OF_JOB}"
    return env


def _volumes(settings: Settings) -> list[VolumeArgs]:
    data, checkpoints, logs = settings.data, settings.checkpoints, settings.logs
    volumes = [data_volume(data.host_path or None, data.pvc or None)] if data.enabled else []
    if _given(checkpoints):
        volumes.append(checkpoint_volume(checkpoints.host_path or None, checkpoints.pvc or None))
    if _given(logs):
        volumes.append(log_volume(logs.host_path or None, logs.pvc or None))
    return volumes


def _given(volume: Checkpoints | Logs) -> bool:
    return bool(volume.host_path or volume.pvc)


def _volcano(settings: Settings, queue: pulumi.Input[str]) -> RuntimeVolcanoArgs:
    topology = settings.volcano.network_topology
    return {
        "queue_name": queue,
        "priority_class": settings.volcano.priority_class or None,
        "network_topology": {"mode": topology.mode, "highest_tier_allowed": topology.highest_tier_allowed}
        if topology
        else None,
    }


def _toleration(toleration: Any) -> dict[str, Any]:
    """As in a pod's spec, without what was not set."""
    return {key: value for key, value in toleration.model_dump(by_alias=True).items() if value not in ("", None)}
