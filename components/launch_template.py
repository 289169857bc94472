"""The two templates that a Launch queue can start from, and their template variable.

`tutorial` is the one of W&B's own page "Run multinode jobs with Volcano", to the letter. `hardened`, the default, is
what a team wants to leave running. docs/launch.md tells the differences and their reasons.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NotRequired, TypedDict

from components.network import InfiniBandArgs
from components.volcano_job import PolicyArgs, VolcanoJobArgs, VolcanoTaskArgs

IMAGE: Final = "${image_uri}"
JOB_NAME: Final = "wandb-job-${run_id}"
LABELS: Final = {"wandb_entity": "${entity_name}", "wandb_project": "${project_name}"}
MASTER: Final = "master"
WORKER: Final = "worker"
PORT: Final = 23456
PLUGINS: Final = {"pytorch": [f"--master={MASTER}", f"--worker={WORKER}", f"--port={PORT}"]}
WORKERS_VARIABLE: Final = "workers"

MASTER_DONE: Final[PolicyArgs] = {"event": "TaskCompleted", "action": "CompleteJob"}
POD_EVICTED: Final[PolicyArgs] = {"event": "PodEvicted", "action": "RestartJob"}
ON_FAILURE: Final[Mapping[str, str]] = {"restart": "RestartJob", "terminate": "TerminateJob"}
"""What becomes of the gang when one of its pods fails: it starts again, and the job is Failed after the last attempt.
Or the job is Terminated at once, and the failed pod stays with its log, which a restart removes. (Letting others fail
by themselves first, by a policy with a timeout, is no way out: Volcano 1.15.1 then starts again what it has ended.)"""

POD_LOGS_LABEL: Final = "wandb/run-id"
"""By this label, with the job's name as its value, the launch agent looks for the logs of a run that failed before
wandb.init; it doesn't set it
(https://github.com/wandb/wandb/blob/v0.31.0/wandb/sdk/launch/runner/kubernetes_runner.py, CrdSubmittedRun.get_logs)."""


class HardenedArgs(TypedDict):
    namespace: str
    """Namespace of the jobs; the agent must have it among its target namespaces."""
    replicas: Any
    """Worker pods beside the master: a whole number, or "{{name}}" for a template variable."""
    image_pull_policy: NotRequired[str]
    """Default: IfNotPresent."""
    command: NotRequired[Sequence[str]]
    """Default: the image's own. Launch doesn't put a job's entry point into a Volcano Job."""
    env: NotRequired[Mapping[str, str]]
    """Environment of all pods."""
    resources: NotRequired[Mapping[str, Mapping[str, str]]]
    """Requests and limits of each pod. Default: none."""
    shared_memory: NotRequired[str]
    """Size of /dev/shm. Default: 64Mi."""
    infiniband: NotRequired[InfiniBandArgs | None]
    """Default: off. The agent admits no IPC_LOCK, so the nodes' memlock limit must be raised for RDMA."""
    on_failure: NotRequired[str]
    """What happens when a pod fails: restart (the default) or terminate."""
    max_retry: NotRequired[int]
    """How many times the gang is started at most, for failures and evictions together. Default: 3."""
    ttl_seconds_after_finished: NotRequired[int]
    """Seconds after which a finished job and its pods' logs are removed. Default: 3600."""
    queue: NotRequired[str]
    """Volcano queue. Default: Volcano's, default."""
    priority_class_name: NotRequired[str]
    """PriorityClass of the jobs. Default: none."""


def tutorial(replicas: Any = 1, namespace: str = "wandb") -> VolcanoJobArgs:
    """The tutorial's template. `replicas` are the workers: a whole number, or "{{name}}" for a template variable."""
    master: VolcanoTaskArgs = {
        "name": MASTER,
        "policies": [MASTER_DONE],
        "replicas": 1,
        "image": IMAGE,
        "restart_policy": "OnFailure",
    }
    worker: VolcanoTaskArgs = {
        "name": WORKER,
        "replicas": replicas,
        "image": IMAGE,
        "working_dir": "/home",
        "restart_policy": "OnFailure",
    }
    return {
        "job_name": JOB_NAME,
        "namespace": namespace,
        "labels": LABELS,
        "tasks": [master, worker],
        "plugins": PLUGINS,
        "min_available": 1,
    }


def hardened(args: HardenedArgs) -> VolcanoJobArgs:
    """A gang that starts together, fails as one and is one run in W&B."""
    master = _pod(args, MASTER, 1, {})
    # Only rank 0 is given the run's id: every other wandb.init would make a stray run of its own.
    worker = _pod(args, WORKER, args["replicas"], {"WANDB_MODE": "disabled"})
    job: VolcanoJobArgs = {
        "job_name": JOB_NAME,
        "namespace": args["namespace"],
        "labels": LABELS,
        "tasks": [{**master, "policies": [MASTER_DONE]}, worker],
        "plugins": PLUGINS,
        "policies": [{"event": "PodFailed", "action": ON_FAILURE[args.get("on_failure", "restart")]}, POD_EVICTED],
        "max_retry": args.get("max_retry", 3),
        "ttl_seconds_after_finished": args.get("ttl_seconds_after_finished", 3600),
    }
    if "queue" in args:
        job["queue"] = args["queue"]
    if "priority_class_name" in args:
        job["priority_class_name"] = args["priority_class_name"]
    return job


def _pod(args: HardenedArgs, task: str, replicas: Any, env: Mapping[str, str]) -> VolcanoTaskArgs:
    pod: VolcanoTaskArgs = {
        "name": task,
        "replicas": replicas,
        "image": IMAGE,
        "image_pull_policy": args.get("image_pull_policy", "IfNotPresent"),
        "command": args.get("command", ()),
        "env": {**args.get("env", {}), "WANDB_RUN_GROUP": "${run_id}", **env},
        "resources": args.get("resources", {}),
        "infiniband": args.get("infiniband"),
        "pod_labels": {POD_LOGS_LABEL: JOB_NAME},
        "service_account_token": False,
    }
    if "shared_memory" in args:
        pod["shared_memory"] = args["shared_memory"]
    return pod


def workers_variable(default: int, most: int) -> dict[str, dict[str, Any]]:
    """The template variable that sets the number of workers at launch, from 1 to `most`."""
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return {WORKERS_VARIABLE: {"schema": schema}}
