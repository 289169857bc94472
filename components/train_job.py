"""One run: the TrainJob, replaced as a whole whenever what it runs changes."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi

from components import api, cluster, ownership
from components.clashes import longest_job_name
from components.errors import ConfigError
from components.kubernetes_object import KubernetesObject
from components.waiting import AwaitedJob

ONE_DAY_SECONDS = 24 * 60 * 60
MARGIN_SECONDS = 60
"""How long after the deadline to look for the job's end: the Trainer counts from when the job starts or is resumed."""
FINISHED = "jsonpath={.status.conditions[?(@.type=='Complete'||@.type=='Failed')].status}=True"
"""Waiting for Complete alone would hang on a Failed job (https://github.com/pulumi/pulumi-kubernetes/issues/4428)."""
IMMUTABLE = ["spec.runtimeRef", "spec.trainer", "spec.activeDeadlineSeconds"]
"""What the API server refuses to change on a TrainJob, which no provider knows of a custom resource."""


class TrainJobArgs(TypedDict):
    job_name: str
    """Name of the TrainJob: RFC 1035, and short enough for its pods' names."""
    namespace: str
    """Namespace of the TrainJob."""
    runtime_name: pulumi.Input[str]
    """ClusterTrainingRuntime to start from."""
    num_nodes: int
    """Workers, at least 1, one pod each."""
    image: NotRequired[str | None]
    """Container image. Default: the runtime's."""
    command: NotRequired[Sequence[str] | None]
    """What every worker runs. Default: the runtime's."""
    args: NotRequired[Sequence[pulumi.Input[str]]]
    """Arguments of the training script. Default: the runtime's."""
    env: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Environment over the runtime's. Default: the runtime's alone."""
    resources: NotRequired[Mapping[str, Any] | None]
    """Requests and limits of a worker, merged over the runtime's. Default: the runtime's."""
    deadline_seconds: NotRequired[int]
    """Seconds that the job may run before it counts as Failed; 0 for no bound. Default: 0."""
    suspend: NotRequired[bool]
    """Hold the job, without pods, until this is false; changed in place. Default: false."""
    run_trigger: NotRequired[pulumi.Input[Sequence[pulumi.Input[Any]]]]
    """Values any change of which runs the job again. Default: none."""
    await_completion: NotRequired[bool]
    """Whether the update waits for the job's end and fails when the job did. Default: false."""
    await_timeout_seconds: NotRequired[int]
    """Seconds to wait; 0 for a minute longer than the deadline, or a day when there is none. Default: 0."""


class TrainJob(pulumi.ComponentResource):
    """One distributed TensorFlow run.

    A change of anything but `suspend` deletes the job and creates it anew, once the JobSet, the pods and the PodGroup
    of the old run are gone: two gangs of one name would answer to the same host names.

    Raises ConfigError when the name does not leave room for its pods' names.
    """

    job_name: pulumi.Output[str]
    """Name of the TrainJob, of its JobSet, its PodGroup and its DNS domain."""

    def __init__(self, name: str, args: TrainJobArgs, opts: pulumi.ResourceOptions | None = None):
        manifest, trigger = train_job_manifest(args), args.get("run_trigger")
        super().__init__("tftrainer:index:TrainJob", name, {}, opts)
        awaited = AwaitedJob(args["namespace"], args["job_name"]) if _awaits(args) else None
        # What makes a run another one, which `suspend` does not.
        run = ownership.fingerprint({**manifest["spec"], "suspend": None}, trigger)
        manifest["metadata"]["annotations"][api.RUN_ANNOTATION] = run
        job = KubernetesObject(
            name,
            ownership.marked(name, manifest, self),
            pulumi.ResourceOptions(
                parent=self,
                delete_before_replace=True,
                replace_on_changes=IMMUTABLE,
                replacement_trigger=trigger,
                hooks=pulumi.ResourceHookBinding(
                    before_create=[
                        cluster.wait_for_old_gang(args["namespace"], args["job_name"]),
                        *([awaited.begin] if awaited else []),
                    ],
                    before_update=[awaited.begin] if awaited else None,
                    after_create=[awaited.end] if awaited else None,
                    after_update=[awaited.end] if awaited else None,
                ),
            ),
        )
        self.job_name = job.metadata.apply(lambda metadata: str(metadata["name"]))
        outputs: dict[str, Any] = {"job_name": self.job_name}
        if awaited:
            # No hook runs for a job that this update leaves as it was, and one that had Failed is still Failed.
            outputs["result"] = job.status.apply(awaited.result)
        self.register_outputs(outputs)


def _awaits(args: TrainJobArgs) -> bool:
    """Whether the update waits for the job; a suspended one does not end."""
    return args.get("await_completion", False) and not args.get("suspend", False)


def train_job_manifest(args: TrainJobArgs) -> dict[str, Any]:
    """The TrainJob's manifest."""
    num_nodes, deadline = int(args["num_nodes"]), int(args.get("deadline_seconds", 0))
    name, longest = args["job_name"], longest_job_name(num_nodes)
    if len(name) > longest:
        raise ConfigError([f"job_name is {name!r}; accepted for {num_nodes} workers: at most {longest} characters"])
    env = {api.ENV_NUM_WORKERS: str(num_nodes), **args.get("env", {})}
    trainer = {
        "numNodes": num_nodes,
        "image": args.get("image") or None,
        "command": list(args.get("command") or []) or None,
        "args": list(args.get("args", [])) or None,
        "env": api.env_list(env),
        "resourcesPerNode": args.get("resources"),
    }
    spec = {
        "runtimeRef": {
            "apiGroup": api.TRAINER_API.partition("/")[0],
            "kind": api.RUNTIME_KIND,
            "name": args["runtime_name"],
        },
        "trainer": api.drop_absent(trainer),
        "suspend": args.get("suspend", False),
        "activeDeadlineSeconds": deadline or None,
    }
    return {
        "apiVersion": api.TRAINER_API,
        "kind": api.TRAIN_JOB_KIND,
        "metadata": {"name": args["job_name"], "namespace": args["namespace"], "annotations": _annotations(args)},
        "spec": api.drop_absent(spec),
    }


def _annotations(args: TrainJobArgs) -> dict[str, str]:
    # In the foreground, Pulumi's default, the Trainer creates the deleted job's JobSet anew for ever
    # (as JobSet once did with its Jobs: https://github.com/kubernetes-sigs/jobset/issues/561).
    annotations = {api.DELETION_PROPAGATION_ANNOTATION: "background"}
    if _awaits(args):
        deadline = int(args.get("deadline_seconds", 0))
        longest = deadline + MARGIN_SECONDS if deadline else ONE_DAY_SECONDS
        seconds = int(args.get("await_timeout_seconds", 0)) or longest
        annotations |= {api.WAIT_FOR_ANNOTATION: FINISHED, api.TIMEOUT_ANNOTATION: str(seconds)}
    return annotations
