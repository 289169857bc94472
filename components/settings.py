"""The stack's settings: every key, its type, its default and what it means.

`load()` reads them from the stack's config; `python -m components.settings` prints their JSON schema. Pulumi.yaml
declares the same keys and defaults (a test keeps the two in step), because the engine and editors read that file.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import pulumi
from pulumi.runtime.config import CONFIG
from pydantic import ValidationError

from components import field_types as t
from components.clashes import clashes
from components.errors import ConfigError
from components.faults import fault_lines, fields_by_key, misspelt_namespaces
from components.infiniband_settings import InfiniBand
from components.launch_settings import LaunchSettings
from components.section import Section

OTHER_NAMESPACES = ("kubernetes", "wandb")
"""Of the config, beside the project's own: the provider's settings, and W&B's API key."""


class Job(Section):
    """The TrainJob."""

    enabled: t.Flag = True
    """Off: the stack holds queue and runtime for others, protected from `pulumi destroy`; image, resources, env, epochs
    and the like become the runtime's defaults."""
    name: t.JobName = "tf-distributed-training"
    """Name of the TrainJob, of its pods and of its DNS domain."""


class Runtime(Section):
    """The ClusterTrainingRuntime. It belongs to the whole cluster: one stack creates it, others may use it."""

    create: t.Flag = True
    """Off: use one that another stack, or somebody else, created."""
    name: t.OptionalName = ""
    """Default: tensorflow-distributed-volcano, or tensorflow-distributed without Volcano."""


class Resources(Section):
    """What each worker asks for."""

    cpu: t.Cpu = ""
    """CPUs requested; no limit is set, for a limit slows training without protecting anybody."""
    memory: t.Memory = ""
    """Bytes requested, and the limit."""
    gpu: t.NotNegative = 0
    """NVIDIA GPUs."""


class Data(Section):
    """Where the training data (a cifar-10-batches-py folder) is; mounted at /workspace/data/cifar-10-batches-py."""

    enabled: t.Flag = True
    """Off: nothing is mounted."""
    host_path: t.OptionalPath = ""
    """Folder on every node, which must exist. Default: /home/ubuntu/cifar-10-batches-py."""
    pvc: t.OptionalName = ""
    """PersistentVolumeClaim in the job's namespace, instead of a folder on the nodes."""


class Checkpoints(Section):
    """Where checkpoints go: mounted at /workspace/checkpoints. With neither folder nor claim, none are written."""

    host_path: t.OptionalPath = ""
    """Folder on every node; made when missing."""
    pvc: t.OptionalName = ""
    """PersistentVolumeClaim in the job's namespace."""
    every_steps: t.Positive = 100
    """Steps between two checkpoints."""


class Logs(Section):
    """Where TensorBoard's event files go: mounted at /workspace/logs. With neither folder nor claim, there are none."""

    host_path: t.OptionalPath = ""
    """Folder on every node; made when missing."""
    pvc: t.OptionalName = ""
    """PersistentVolumeClaim in the job's namespace."""


class TensorBoard(Section):
    """A TensorBoard for the event files of the namespace's jobs."""

    enabled: t.Flag = False
    """On: a Deployment and a Service, in the job's namespace. Needs logs.hostPath or logs.pvc."""
    image: t.OptionalImage = ""
    """Image with the tensorboard command. Default: tensorflow/tensorflow:2.21.0."""


class Queue(Section):
    """The Volcano queue. It belongs to the whole cluster: one stack creates it, others may use it."""

    create: t.Flag = True
    """Off: use one that another stack, or somebody else, created."""
    name: t.ObjectName = "tensorflow"
    """Name of the queue."""
    weight: t.Positive = 1
    """Share of the cluster against the other queues' weights."""
    capability: t.ResourceAmounts = {}
    """The most that the queue's jobs may use together. Default: no bound."""
    guarantee: t.ResourceAmounts = {}
    """What is kept free for the queue's jobs. Default: nothing."""
    reclaimable: t.Flag = True
    """Whether other queues may take back what this one uses beyond its share."""
    parent: t.OptionalName = ""
    """Queue above this one. Default: root."""


class NetworkTopology(Section):
    """How close together the gang must run (needs Volcano's HyperNodes)."""

    mode: Annotated[Literal["hard", "soft"], t.Accepts('"hard" (or not at all) or "soft" (if possible)')]
    """hard: wait for such a place; soft: prefer it."""
    highest_tier_allowed: t.Positive
    """Highest tier of network that the gang may span; 1 means one leaf switch."""


class Volcano(Section):
    """Gang scheduling: all workers start together, or none does."""

    enabled: t.Flag = True
    """Off: the default scheduler, worker by worker."""
    queue: Queue = Queue()
    priority_class: t.OptionalName = ""
    """PriorityClass of the pods and of the gang; it must exist."""
    network_topology: NetworkTopology | None = None


class Toleration(Section):
    """A taint that the pods put up with, as in a pod's spec."""

    key: t.TaintKey = ""
    """The taint's key; empty, with operator Exists, for all."""
    operator: Annotated[Literal["Equal", "Exists"], t.Accepts('"Equal" or "Exists"')] = "Equal"
    """Equal: key and value are the taint's; Exists: the key is, whatever its value."""
    value: t.TaintValue = ""
    """The taint's value."""
    effect: Annotated[
        Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"],
        t.Accepts('"NoSchedule", "PreferNoSchedule", "NoExecute", or "" for all'),
    ] = ""
    """The taint's effect."""
    toleration_seconds: t.NotNegative | None = None
    """Seconds that a pod stays on a node so tainted. Default: for ever."""


class Settings(Section):
    """Everything that a stack can set."""

    namespace: t.Namespace = "default"
    """Namespace of the TrainJob and its scripts; it must exist."""
    num_nodes: t.Positive = 2
    """Workers, one pod each. A change runs the job anew and touches nothing else."""
    job: Job = Job()
    runtime: Runtime = Runtime()
    image: t.OptionalImage = ""
    """Container image with Python and TensorFlow. Default: tensorflow/tensorflow:2.21.0, its -gpu variant with GPUs."""
    image_pull_policy: Annotated[
        Literal["IfNotPresent", "Always", "Never"], t.Accepts('"IfNotPresent", "Always" or "Never"')
    ] = "IfNotPresent"
    """When nodes fetch the image."""
    image_pull_secrets: t.Names = ()
    """Secrets with registry credentials, in the job's namespace."""
    resources: Resources = Resources()
    shm_size: t.SharedMemory = ""
    """Size of /dev/shm, which NCCL uses between the GPUs of a node; counts as the worker's memory."""
    node_selector: t.NodeLabels = {}
    """Labels that a node must have."""
    affinity: t.Affinity = {}
    """Which nodes and neighbours the pods prefer or require, as in a pod's spec."""
    tolerations: tuple[Toleration, ...] = ()
    script: t.OptionalScript = ""
    """Your own training script, started on every worker with TF_CONFIG set. Default: the built-in CIFAR-10 training."""
    args: t.Arguments = ()
    """Arguments of the training script."""
    env: t.Environment = {}
    """Environment of the training script; takes precedence over epochs, batchSize and port."""
    epochs: t.Positive = 10
    """Passes over the data (EPOCHS)."""
    batch_size: t.Positive = 64
    """Examples in a step, for each worker (BATCH_SIZE)."""
    port: t.Port = 12345
    """Port on which TensorFlow's workers talk (TF_WORKER_PORT)."""
    data: Data = Data()
    checkpoints: Checkpoints = Checkpoints()
    logs: Logs = Logs()
    tensorboard: TensorBoard = TensorBoard()
    volcano: Volcano = Volcano()
    infiniband: InfiniBand = InfiniBand()
    max_restarts: t.NotNegative = 3
    """How many times the whole gang is started again after losing a worker, before the job counts as Failed; evictions
    and drains don't count. A change makes the runtime, and so the job, anew."""
    deadline: t.NotNegative = 0
    """Seconds that the job may run before it counts as Failed; 0 for no bound."""
    suspend: t.Flag = False
    """Hold the job: its pods are removed until this is false again."""
    run_id: t.Text = ""
    """Any text; a new one runs the job again with everything else unchanged."""
    await_completion: t.Flag = False
    """Whether `pulumi up` waits until the job is Complete, and fails when it is Failed."""
    await_timeout: t.NotNegative = 0
    """Seconds that `pulumi up` waits; 0 for a minute longer than the deadline, or for a day when there is none."""
    launch: LaunchSettings = LaunchSettings()

    @property
    def trains(self) -> bool:
        """Whether the stack has anything to do with Kubeflow Trainer; one of a Launch queue alone has not."""
        return self.runtime.create or self.job.enabled


def load() -> tuple[Settings, frozenset[str]]:
    """The current stack's settings, and the top-level keys whose values its config keeps encrypted.

    Raises ConfigError naming every fault: unknown keys, wrong types and values, settings that contradict each other.
    """
    project, everything = pulumi.get_project(), CONFIG.get()
    if lines := misspelt_namespaces(everything, [project, *OTHER_NAMESPACES]):
        raise ConfigError(lines)
    prefix = f"{project}:"
    config = {key.removeprefix(prefix): value for key, value in everything.items() if key.startswith(prefix)}
    secret = frozenset(key for key in config if pulumi.runtime.is_config_secret(prefix + key))
    return parse(config, prefix, secret), secret


def parse(config: Mapping[str, str], prefix: str = "", secret: Iterable[str] = ()) -> Settings:
    """Settings from config values in the form Pulumi passes them: text for text, JSON for everything else.

    Raises ConfigError with one line per fault, each key preceded by `prefix`, without the values of `secret` keys.
    """
    fields = fields_by_key(Settings)
    texts = {key for key, field in fields.items() if field.annotation is str}
    document = {key: value if key in texts else _decoded(value) for key, value in config.items()}
    try:
        # As JSON, because pydantic's strict mode admits lists for tuples and objects for models only from there.
        settings = Settings.model_validate_json(json.dumps(document))
    except ValidationError as error:
        raise ConfigError(fault_lines(error, Settings, prefix, secret)) from None
    if lines := [prefix + line for line in clashes(settings)]:
        raise ConfigError(lines)
    return settings


def _decoded(value: str) -> Any:
    """The JSON value, or the text itself when it is none: the type check then shows it as it is."""
    try:
        return json.loads(value)
    except ValueError:
        return value


if __name__ == "__main__":
    print(json.dumps(Settings.model_json_schema(), indent=2))
