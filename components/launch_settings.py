"""The `launch:` section of the stack's settings: a W&B Launch queue and the agent that serves it.

Importing it loads nothing but pydantic and the template's builders; W&B's client is not needed to read settings.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from components import field_types as t
from components.infiniband_settings import InfiniBand
from components.launch_checks import template_faults
from components.launch_template import WORKERS_VARIABLE, HardenedArgs, hardened, tutorial, workers_variable
from components.section import Section
from components.volcano_job import volcano_job

Url = Annotated[
    str,
    AfterValidator(t.whole(r"https?://[^\s/?#]+(/[^\s?#]*)?", 2048)),
    t.Accepts("the address of a W&B server's API, such as https://api.wandb.ai"),
]
WandbName = Annotated[
    str,
    AfterValidator(t.or_empty(t.whole(r"[^\s/]+", 128))),
    t.Accepts("the name of a W&B team or user, without spaces and /"),
]
QueueName = Annotated[str, Field(min_length=1, max_length=64), t.Accepts("a queue's name of 1 to 64 characters")]
Template = Annotated[dict[str, Any], t.Accepts("a Kubernetes object: a Volcano Job, a Job or another custom resource")]


def _no_jobs_at_all(number: int) -> int:
    if number == 0:
        raise ValueError("an agent without jobs")
    return number


MaxJobs = Annotated[
    int,
    Field(ge=-1, le=2**31 - 1),
    AfterValidator(_no_jobs_at_all),
    t.Accepts("a whole number of at least 1, or -1 for no bound"),
]
TUTORIALS_SETTINGS = ("name", "prioritization", "workers", "namespace")
"""What the tutorial's template leaves to choose."""
TEMPLATES_SETTINGS = ("name", "prioritization", "variables")
"""What a template of one's own leaves to choose."""


class LaunchWorkers(Section):
    """The worker pods of a run, beside its master: chosen at launch as template variable `workers`."""

    default: t.Positive = 1
    """Workers of a run that does not say."""
    maximum: t.Positive = 8
    """The most that a run may ask for."""


class LaunchResources(Section):
    """What each pod of a run asks for."""

    cpu: t.Cpu = ""
    """CPUs requested; no limit is set."""
    memory: t.Memory = ""
    """Bytes requested, and the limit."""
    gpu: t.NotNegative = 0
    """NVIDIA GPUs. The pytorch plugin starts one rank per pod, so more than one needs a launcher of your own."""


class LaunchInfiniBand(InfiniBand):
    """RDMA between a run's pods: annotation and device only. The agent refuses capabilities, so the nodes must allow to
    lock memory without IPC_LOCK."""


class LaunchVariable(Section):
    """A template variable of a template of one's own."""

    type: Annotated[Literal["integer", "number", "string"], t.Accepts('"integer", "number" or "string"')]
    """Type of the values."""
    minimum: t.Number | None = None
    """The least that a run may choose. Default: no bound."""
    maximum: t.Number | None = None
    """The most that a run may choose. Default: no bound."""
    enum: t.Values | None = None
    """The only values that a run may choose. Default: any."""
    default: t.Value | None = None
    """Value of a run that does not say. Default: none, and every run must say."""


class LaunchQueueSettings(Section):
    """The queue, and the template of the objects that its runs become."""

    name: QueueName = "volcano-ddp"
    """Name of the queue in W&B."""
    prioritization: Annotated[Literal["DISABLED", "V0"], t.Accepts('"DISABLED" or "V0"')] = "DISABLED"
    """V0: runs of higher priority go first."""
    preset: Annotated[Literal["hardened", "tutorial"], t.Accepts('"hardened" or "tutorial"')] = "hardened"
    """Which template to start from; the tutorial's knows no other settings than workers and namespace."""
    template: Template = {}
    """A template of your own instead, with the variables in it declared in `variables`. Settings that make a template
    don't go with it."""
    variables: dict[str, LaunchVariable] = {}
    """Template variables of a template of your own."""
    namespace: t.Namespace = "wandb"
    """Namespace of the runs."""
    workers: LaunchWorkers = LaunchWorkers()
    image_pull_policy: Annotated[
        Literal["IfNotPresent", "Always", "Never"], t.Accepts('"IfNotPresent", "Always" or "Never"')
    ] = "IfNotPresent"
    """When nodes fetch a run's image."""
    command: t.Arguments = ()
    """Command of every pod. Default: the image's own; Launch does not put a job's entry point into a Volcano Job."""
    env: t.Environment = {}
    """Environment of every pod."""
    resources: LaunchResources = LaunchResources()
    shm_size: t.SharedMemory = ""
    """Size of /dev/shm."""
    infiniband: LaunchInfiniBand = LaunchInfiniBand()
    volcano_queue: t.OptionalName = ""
    """Volcano queue of the runs; it must exist. Default: Volcano's own, default."""
    priority_class: t.OptionalName = ""
    """PriorityClass of the runs; it must exist."""
    on_failure: Annotated[Literal["restart", "terminate"], t.Accepts('"restart" or "terminate"')] = "restart"
    """When a pod fails. restart: all start again, up to maxRetry times, then the job is Failed. terminate: the job ends
    Terminated, and the failed pod stays with its log, which a restart removes."""
    max_retry: t.Positive = 3
    """How many times a run's pods are started at most, for failures and evictions together."""
    ttl: t.NotNegative = 3600
    """Seconds after which a finished job is removed from the cluster, with its pods and their logs."""


class LaunchAgentSettings(Section):
    """The agent that polls the queue, from W&B's Helm chart."""

    enabled: t.Flag = True
    """Off: the agent runs elsewhere."""
    namespace: t.Namespace = "wandb"
    """Namespace of the agent."""
    create_namespace: t.Flag = True
    """Off: the namespace exists."""
    target_namespaces: t.Namespaces = ()
    """Further namespaces in which the agent may create jobs; they must exist."""
    chart: t.OptionalPath = ""
    """Absolute path of the chart. Default: version 0.13.12 from W&B's repository."""
    image: t.OptionalImage = ""
    """Default: the chart's own image."""
    image_pull_policy: Annotated[
        Literal["IfNotPresent", "Always", "Never"], t.Accepts('"IfNotPresent", "Always" or "Never"')
    ] = "IfNotPresent"
    """When the node fetches the agent's image."""
    cpu: t.Cpu = ""
    """CPUs of the agent, requested and at most. Default: the chart's, 1 at most."""
    memory: t.Memory = ""
    """Bytes of the agent, requested and at most. Default: the chart's, 1Gi at most."""
    node_selector: t.NodeLabels = {}
    """Labels of the agent's node."""
    max_jobs: MaxJobs = 10
    """Runs at a time."""
    start_timeout: t.Positive = 1800
    """Seconds that a run may wait for its place in the cluster before it fails."""
    env: t.Environment = {}
    """Environment of the agent."""


class LaunchSettings(Section):
    """W&B Launch on Volcano. Its API key is a setting of its own: `pulumi config set --secret wandb:apiKey`."""

    enabled: t.Flag = False
    """On: the stack holds a W&B Launch queue, and the agent that serves it."""
    entity: WandbName = ""
    """W&B team or user that owns the queue; required when enabled."""
    base_url: Url = "https://api.wandb.ai"
    """Address of the W&B server's API, for the stack and for the agent alike."""
    queue: LaunchQueueSettings = LaunchQueueSettings()
    agent: LaunchAgentSettings = LaunchAgentSettings()


def queue_template(queue: LaunchQueueSettings) -> tuple[dict[str, Any], dict[str, Any]]:
    """The queue's template and its template variables."""
    if queue.template:
        return queue.template, {
            name: {"schema": variable.model_dump(exclude_none=True, mode="json")}
            for name, variable in queue.variables.items()
        }
    replicas = f"{{{{{WORKERS_VARIABLE}}}}}"
    variables = workers_variable(queue.workers.default, queue.workers.maximum)
    if queue.preset == "tutorial":
        return volcano_job(tutorial(replicas, queue.namespace)), variables
    return volcano_job(hardened(_hardened_args(queue, replicas))), variables


def _hardened_args(queue: LaunchQueueSettings, replicas: str) -> HardenedArgs:
    args: HardenedArgs = {
        "namespace": queue.namespace,
        "replicas": replicas,
        "image_pull_policy": queue.image_pull_policy,
        "command": queue.command,
        "env": queue.env,
        "resources": _resources(queue.resources),
        "infiniband": queue.infiniband.args(),
        "on_failure": queue.on_failure,
        "max_retry": queue.max_retry,
        "ttl_seconds_after_finished": queue.ttl,
    }
    if queue.shm_size:
        args["shared_memory"] = queue.shm_size
    if queue.volcano_queue:
        args["queue"] = queue.volcano_queue
    if queue.priority_class:
        args["priority_class_name"] = queue.priority_class
    return args


def _resources(resources: LaunchResources) -> Mapping[str, Mapping[str, str]]:
    gpu = {"nvidia.com/gpu": str(resources.gpu)} if resources.gpu else {}
    memory = {"memory": resources.memory} if resources.memory else {}
    cpu = {"cpu": resources.cpu} if resources.cpu else {}
    return {"requests": {**cpu, **memory, **gpu}, "limits": {**memory, **gpu}}


def launch_clashes(launch: LaunchSettings) -> Iterator[str]:
    """One line per contradiction in the section, each starting with a key."""
    if not launch.enabled:
        return
    queue, agent = launch.queue, launch.agent
    if not launch.entity:
        yield "launch.entity is missing; accepted with launch.enabled true: the W&B team or user that owns the queue"
    if queue.workers.default > queue.workers.maximum:
        yield (
            f"launch.queue.workers.default is {queue.workers.default}; accepted: at most the maximum, "
            f"{queue.workers.maximum}"
        )
        return
    if queue.template:
        yield from _set_beside("launch.queue.template", queue, TEMPLATES_SETTINGS)
    elif queue.preset == "tutorial":
        yield from _set_beside('preset "tutorial"', queue, TUTORIALS_SETTINGS)
    if queue.variables and not queue.template:
        yield "launch.queue.variables is set; accepted: only with launch.queue.template"
    template, variables = queue_template(queue)
    prefix = "launch.queue.template: " if queue.template else "launch.queue: "
    yield from (prefix + line for line in template_faults(template, variables))
    metadata = template.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, Mapping) else None
    if agent.enabled and namespace and namespace not in (agent.namespace, *agent.target_namespaces):
        yield (
            f"launch.agent.targetNamespaces lacks {namespace}, the namespace of the queue's runs; "
            "accepted: a list that has it"
        )


def _set_beside(choice: str, queue: LaunchQueueSettings, accepted: Sequence[str]) -> Iterator[str]:
    for name, field in LaunchQueueSettings.model_fields.items():
        if name not in (*accepted, "preset", "template") and getattr(queue, name) != field.default:
            yield f"launch.queue.{field.alias} is set; accepted with {choice}: only {', '.join(accepted)}"
