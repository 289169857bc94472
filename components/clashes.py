"""Settings that are fine one by one and contradict each other, or can't work together."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from components import api
from components.faults import shown
from components.field_types import quantity
from components.launch_settings import launch_clashes

if TYPE_CHECKING:
    from components.settings import Queue, Settings

POD_NAME_MAX = 63
POD_SUFFIX = 6
"""A dash and five random characters that Kubernetes adds to a pod's name."""
VOLCANO_OWN_QUEUES = ("default", "root")
RESERVED_ENV = {api.ENV_TF_CONFIG, api.ENV_NUM_WORKERS, *api.POD_FIELDS}
OWNED_BY_RUNTIME = (
    "image_pull_policy", "image_pull_secrets", "shm_size", "node_selector", "affinity", "tolerations", "script",
    "data", "checkpoints", "logs", "infiniband", "max_restarts",
)  # fmt: skip


def longest_job_name(num_nodes: int) -> int:
    """Longest TrainJob name whose pods JobSet accepts; beyond it the job would hang without a word
    (https://github.com/kubeflow/trainer/issues/1101).

    >>> longest_job_name(2), longest_job_name(11)
    (48, 47)
    """
    return POD_NAME_MAX - POD_SUFFIX - len(f"-{api.NODE}-0-{num_nodes - 1}")


def clashes(settings: "Settings") -> Iterator[str]:
    """One line per contradiction, each starting with a key."""
    yield from _name(settings)
    yield from _env(settings)
    yield from _volumes(settings)
    yield from _tolerations(settings)
    yield from _tensorboard(settings)
    yield from _foreign_runtime(settings)
    yield from launch_clashes(settings.launch)
    if settings.volcano.enabled and settings.runtime.create:
        yield from _queue(settings.volcano.queue)
        yield from _capability(settings)


def _name(settings: "Settings") -> Iterator[str]:
    name, longest = settings.job.name, longest_job_name(settings.num_nodes)
    if len(name) > longest:
        yield (
            f"job.name is {shown(name)}, {len(name)} characters; accepted with numNodes {settings.num_nodes}: at most "
            f"{longest}, so that the pods' names (<job>-{api.NODE}-0-<index> and a suffix) stay within {POD_NAME_MAX}"
        )


def _env(settings: "Settings") -> Iterator[str]:
    for key, env in (("env", settings.env), ("infiniband.ncclEnv", settings.infiniband.nccl_env)):
        for name in env.keys() & RESERVED_ENV:
            yield f"{key}.{name} is set; accepted: any other variable, because the program sets this one itself"
    for name, key, field in (
        (api.ENV_EPOCHS, "epochs", "epochs"),
        (api.ENV_BATCH_SIZE, "batchSize", "batch_size"),
        (api.ENV_PORT, "port", "port"),
    ):
        value = getattr(settings, field)
        is_default = value == type(settings).model_fields[field].default
        if name in settings.env and not is_default and settings.env[name] != str(value):
            yield f"env.{name} is set and {key} is {value}; accepted: one of the two"


def _volumes(settings: "Settings") -> Iterator[str]:
    for key, volume in (("data", settings.data), ("checkpoints", settings.checkpoints), ("logs", settings.logs)):
        if volume.host_path and volume.pvc:
            both = f"{key}.hostPath is {shown(volume.host_path)} and {key}.pvc {shown(volume.pvc)}"
            yield f"{both}; accepted: one of the two"


def _tensorboard(settings: "Settings") -> Iterator[str]:
    if settings.tensorboard.enabled and not (settings.logs.host_path or settings.logs.pvc):
        yield "tensorboard.enabled is true; accepted with logs.hostPath or logs.pvc, where its event files are"


def _tolerations(settings: "Settings") -> Iterator[str]:
    for index, toleration in enumerate(settings.tolerations):
        key = f"tolerations[{index}]"
        if toleration.operator == "Exists" and toleration.value:
            yield f'{key}.value is {shown(toleration.value)}; accepted with operator "Exists": no value'
        if toleration.operator == "Equal" and not toleration.key:
            yield f'{key}.key is missing; accepted with operator "Equal": the taint\'s key'
        if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            yield f'{key}.effect is {shown(toleration.effect)}; accepted with tolerationSeconds: "NoExecute"'


def _foreign_runtime(settings: "Settings") -> Iterator[str]:
    """A runtime of somebody else's keeps its own settings."""
    if settings.runtime.create:
        return
    fields = type(settings).model_fields
    for field in OWNED_BY_RUNTIME:
        if getattr(settings, field) != fields[field].default:
            yield f"{fields[field].alias} is set; accepted with runtime.create false: only what a TrainJob can change"
    if settings.volcano.model_copy(update={"enabled": True}) != fields["volcano"].default:
        yield "volcano is set; accepted with runtime.create false: volcano.enabled only, the rest is the runtime's"
    if not settings.job.enabled and not settings.launch.enabled:
        yield "job.enabled is false; accepted without runtime.create and launch.enabled: true, or the stack is empty"


def _queue(queue: "Queue") -> Iterator[str]:
    if queue.create and queue.name in VOLCANO_OWN_QUEUES:
        own = " and ".join(map(shown, VOLCANO_OWN_QUEUES))
        yield f"volcano.queue.name is {shown(queue.name)}; accepted with create true: any name but Volcano's own, {own}"
    if queue.parent == queue.name:
        yield f"volcano.queue.parent is {shown(queue.parent)}; accepted: any other queue than this one itself"
    for resource, amount in queue.guarantee.items():
        most = queue.capability.get(resource)
        if most is not None and quantity(amount) > quantity(most):
            yield f"volcano.queue.guarantee: {resource} is {amount}; accepted: at most the capability, {most}"


def gang_request(settings: "Settings") -> dict[str, str]:
    """What one worker asks for, as resource → quantity."""
    asked = {api.CPU: settings.resources.cpu, api.MEMORY: settings.resources.memory}
    if settings.resources.gpu:
        asked[api.GPU] = str(settings.resources.gpu)
    if settings.infiniband.enabled:
        asked[settings.infiniband.resource] = str(settings.infiniband.count)
    return {resource: amount for resource, amount in asked.items() if amount}


def _capability(settings: "Settings") -> Iterator[str]:
    queue = settings.volcano.queue
    if queue.create and settings.job.enabled:
        yield from over_capability(settings, "volcano.queue.capability", queue.capability)


def over_capability(settings: "Settings", where: str, capability: Mapping[str, str]) -> Iterator[str]:
    """One line for each resource of which the workers together ask for more than a queue may ever use: such a gang
    waits for ever. A resource that the capability leaves out has no bound."""
    for resource, amount in gang_request(settings).items():
        most = capability.get(resource)
        if most is not None and settings.num_nodes * quantity(amount) > quantity(most):
            yield (
                f"{where}: {resource} is {most}; accepted: at least {settings.num_nodes} x {amount}, "
                "which the workers ask for together, or they would wait for ever"
            )
