"""A Volcano Job: the template that a Launch queue holds, and the same job deployed by the stack itself.

Image, names and the like may hold what W&B Launch fills in later: macros such as `${run_id}`, and `{{name}}` for a
template variable, which may also stand where a number belongs (components/launch_template.py).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NotRequired, TypedDict

import pulumi

from components import api
from components.kubernetes_object import KubernetesObject
from components.network import InfiniBandArgs, infiniband_annotations, infiniband_resources

VOLCANO_JOB_API: Final = "batch.volcano.sh/v1alpha1"
VOLCANO_JOB_KIND: Final = "Job"
SHM_VOLUME: Final = "shm"


class PolicyArgs(TypedDict):
    event: str
    """What happens, such as PodFailed, PodEvicted or TaskCompleted."""
    action: str
    """What Volcano does then, such as RestartJob, TerminateJob or CompleteJob."""
    timeout: NotRequired[str]
    """How long Volcano waits before it acts, such as 30s. Default: not at all."""


class VolcanoTaskArgs(TypedDict):
    name: str
    """Name of the task and of its container; the pods are <job>-<task>-<index>."""
    replicas: Any
    """Pods: a whole number, or "{{name}}" for a template variable."""
    image: str
    """Container image."""
    image_pull_policy: NotRequired[str]
    """Default: IfNotPresent."""
    command: NotRequired[Sequence[str]]
    """Default: the image's own."""
    args: NotRequired[Sequence[str]]
    """Default: the image's own."""
    working_dir: NotRequired[str]
    """Default: the image's own."""
    env: NotRequired[Mapping[str, str]]
    """Environment of the container. Volcano's plugins and the launch agent add theirs."""
    resources: NotRequired[Mapping[str, Mapping[str, str]]]
    """Requests and limits, as in a container's spec. Default: none."""
    shared_memory: NotRequired[str]
    """Size of /dev/shm, such as 2Gi. Default: the container runtime's own, 64Mi."""
    infiniband: NotRequired[InfiniBandArgs | None]
    """Default: off."""
    pod_labels: NotRequired[Mapping[str, str]]
    """Default: none."""
    policies: NotRequired[Sequence[PolicyArgs]]
    """What happens on events of this task; goes before the job's policies. Default: none."""
    restart_policy: NotRequired[str]
    """Never (the default) or OnFailure: a crashing container is then restarted for ever, and the job never fails."""
    service_account_token: NotRequired[bool]
    """Whether the pods get the token of their service account. Default: left to the service account, which gives it."""


class VolcanoJobArgs(TypedDict):
    job_name: str
    """Name of the job, its pods' prefix and their DNS domain."""
    namespace: str
    """Namespace of the job; it must exist."""
    tasks: Sequence[VolcanoTaskArgs]
    """At least one. W&B's run belongs to the first."""
    labels: NotRequired[Mapping[str, str]]
    """Labels of the job. Default: none."""
    plugins: NotRequired[Mapping[str, Sequence[str]]]
    """Volcano's job plugins with their arguments: pytorch, svc, env, ... Default: none."""
    policies: NotRequired[Sequence[PolicyArgs]]
    """What happens on events of any task. Default: none, so that the job goes on while any pod does."""
    min_available: NotRequired[int]
    """Pods that must be placed together. Default: all of them, whatever the replicas are: Volcano's webhook sets it."""
    max_retry: NotRequired[int]
    """How many times the pods are started at most: RestartJob then fails the job. Default: Volcano's, 3."""
    ttl_seconds_after_finished: NotRequired[int]
    """Seconds after which the finished job is removed, with its pods and their logs. Default: never."""
    queue: NotRequired[str]
    """Volcano queue. Default: Volcano's, default."""
    priority_class_name: NotRequired[str]
    """PriorityClass of the job; it must exist. Default: none."""


class VolcanoJob(pulumi.ComponentResource):
    """One job, run as soon as it is deployed. Any change runs it anew, since a running gang can't change its size."""

    job_name: pulumi.Output[str]
    """Name of the job."""

    def __init__(self, name: str, args: VolcanoJobArgs, opts: pulumi.ResourceOptions | None = None):
        manifest = volcano_job(args)
        super().__init__("tftrainer:index:VolcanoJob", name, {}, opts)
        job = KubernetesObject(
            name,
            manifest,
            # Volcano refuses almost every change of a job's spec
            # (https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/webhooks/admission/jobs/validate/admit_job.go).
            pulumi.ResourceOptions(parent=self, delete_before_replace=True, replace_on_changes=["spec"]),
        )
        self.job_name = job.metadata.apply(lambda metadata: str(metadata["name"]))
        self.register_outputs({"job_name": self.job_name})


def volcano_job(args: VolcanoJobArgs) -> dict[str, Any]:
    """The Job's manifest, in the order in which W&B's tutorial writes it."""
    spec = {
        "tasks": [_task(task) for task in args["tasks"]],
        "plugins": {name: list(arguments) for name, arguments in args.get("plugins", {}).items()} or None,
        "policies": [dict(policy) for policy in args.get("policies", ())] or None,
        "minAvailable": _whole(args.get("min_available")),
        "schedulerName": api.VOLCANO_SCHEDULER,
        "maxRetry": _whole(args.get("max_retry")),
        "ttlSecondsAfterFinished": _whole(args.get("ttl_seconds_after_finished")),
        "queue": args.get("queue"),
        "priorityClassName": args.get("priority_class_name"),
    }
    labels = dict(args.get("labels", {})) or None
    return {
        "kind": VOLCANO_JOB_KIND,
        "spec": api.drop_absent(spec),
        "metadata": api.drop_absent({"name": args["job_name"], "labels": labels, "namespace": args["namespace"]}),
        "apiVersion": VOLCANO_JOB_API,
    }


def _task(task: VolcanoTaskArgs) -> dict[str, Any]:
    infiniband = task.get("infiniband")
    metadata = {"labels": dict(task.get("pod_labels", {})) or None, "annotations": infiniband_annotations(infiniband)}
    shared_memory = task.get("shared_memory")
    spec = {
        "containers": [_container(task, infiniband)],
        "restartPolicy": task.get("restart_policy", "Never"),
        "automountServiceAccountToken": task.get("service_account_token"),
        "volumes": [{"name": SHM_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": shared_memory}}]
        if shared_memory
        else None,
    }
    return api.drop_absent(
        {
            "name": task["name"],
            "policies": [dict(policy) for policy in task.get("policies", ())] or None,
            "replicas": _whole(task["replicas"]),
            "template": api.drop_absent({"metadata": api.drop_absent(metadata) or None, "spec": api.drop_absent(spec)}),
        }
    )


def _container(task: VolcanoTaskArgs, infiniband: InfiniBandArgs | None) -> dict[str, Any]:
    env = {**(infiniband["nccl_env"] if infiniband else {}), **task.get("env", {})}
    return api.drop_absent(
        {
            "name": task["name"],
            "image": task["image"],
            "command": list(task.get("command", ())) or None,
            "args": list(task.get("args", ())) or None,
            "workingDir": task.get("working_dir"),
            "imagePullPolicy": task.get("image_pull_policy", "IfNotPresent"),
            "env": api.env_list(env) or None,
            "resources": _resources(task.get("resources", {}), infiniband_resources(infiniband) or {}) or None,
            "volumeMounts": [{"name": SHM_VOLUME, "mountPath": "/dev/shm"}] if task.get("shared_memory") else None,  # noqa: S108
        }
    )


def _resources(*parts: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    merged = {kind: {k: v for part in parts for k, v in part.get(kind, {}).items()} for kind in ("requests", "limits")}
    return {kind: amounts for kind, amounts in merged.items() if amounts}


def _whole(number: Any) -> Any:
    """The number without the fraction that it gets on its way from another language; anything else as it is."""
    return int(number) if isinstance(number, float) else number


def as_json(manifest: Mapping[str, Any]) -> str:
    """The manifest as JSON, in its own order."""
    return json.dumps(manifest, indent=2) + "\n"


def as_yaml(manifest: Mapping[str, Any]) -> str:
    """The manifest as YAML, in its own order, with lists indented below their key."""
    import yaml  # only who wants text needs it

    class Indented(yaml.SafeDumper):
        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, indentless=False)

    return yaml.dump(manifest, Dumper=Indented, sort_keys=False)
