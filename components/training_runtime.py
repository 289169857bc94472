"""The ClusterTrainingRuntime that Kubeflow Trainer lacks: distributed TensorFlow."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi

from components import api, cluster
from components.kubernetes_object import KubernetesObject
from components.network import InfiniBandArgs, infiniband_annotations, infiniband_resources
from components.ownership import marked
from components.volumes import VolumeArgs, pod_volumes

DEFAULT_IMAGE = "tensorflow/tensorflow:2.21.0"
DEFAULT_GPU_IMAGE = f"{DEFAULT_IMAGE}-gpu"
DEFAULT_ENV: Mapping[str, str] = {
    api.ENV_PORT: "12345",
    api.ENV_EPOCHS: "10",
    api.ENV_BATCH_SIZE: "64",
    api.ENV_NCCL_DEBUG: "INFO",
}
DEFAULT_MAX_RESTARTS = 3
NAME_WITH_VOLCANO = "tensorflow-distributed-volcano"
NAME_WITHOUT_VOLCANO = "tensorflow-distributed"
IF_IT_EXISTS = "set runtime.create to false to use it, or choose another runtime.name"


IMMUTABLE = ["spec.template.spec.failurePolicy", "spec.template.spec.network"]
"""What the API server refuses to change on a runtime, which no provider knows of a custom resource."""


class NetworkTopologyArgs(TypedDict):
    mode: str
    """"hard" (the gang runs that close together or not at all) or "soft" (it prefers to)."""
    highest_tier_allowed: int
    """Highest tier of network the gang may span, at least 1: one leaf switch."""


class RuntimeVolcanoArgs(TypedDict):
    queue_name: pulumi.Input[str]
    """Queue of the runtime's jobs."""
    priority_class: NotRequired[str | None]
    """PriorityClass of the pods and the gang. Default: none."""
    network_topology: NotRequired[NetworkTopologyArgs | None]
    """How close together the gang must run. Default: anywhere."""


class TensorFlowRuntimeArgs(TypedDict):
    runtime_name: str
    """Name of the runtime, unique in the cluster."""
    scripts_config_map: pulumi.Input[str]
    """ConfigMap with the launcher and the training script, in the namespace of every job that uses the runtime."""
    script: NotRequired[str]
    """File name of the training script in that ConfigMap. Default: train.py."""
    args: NotRequired[Sequence[pulumi.Input[str]]]
    """Arguments of the training script. Default: none."""
    image: NotRequired[str | None]
    """Container image with Python and TensorFlow. Default: tensorflow/tensorflow:2.21.0."""
    image_pull_policy: NotRequired[str]
    """IfNotPresent, Always or Never. Default: IfNotPresent."""
    image_pull_secrets: NotRequired[Sequence[str]]
    """Secrets with registry credentials. Default: none."""
    env: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Environment over the defaults TF_WORKER_PORT=12345, EPOCHS=10, BATCH_SIZE=64, NCCL_DEBUG=INFO."""
    resources: NotRequired[Mapping[str, Any] | None]
    """The container's requests and limits. Default: none; a TrainJob's are merged over them."""
    volumes: NotRequired[Sequence[VolumeArgs]]
    """Volumes of the training container. Default: none."""
    shm_size: NotRequired[str | None]
    """Size of /dev/shm as a quantity. Default: the container runtime's own, 64Mi."""
    node_selector: NotRequired[Mapping[str, str]]
    """Labels that a node must have. Default: any node."""
    affinity: NotRequired[Mapping[str, Any] | None]
    """Which nodes and neighbours the pods prefer or require, as in a pod's spec. Default: none."""
    tolerations: NotRequired[Sequence[Mapping[str, Any]]]
    """Taints that the pods put up with, as in a pod's spec. Default: none."""
    volcano: NotRequired[RuntimeVolcanoArgs | None]
    """Gang scheduling by Volcano. Default: the default scheduler."""
    infiniband: NotRequired[InfiniBandArgs | None]
    """RDMA between the workers. Default: off."""
    max_restarts: NotRequired[int]
    """How many times the gang is started again after losing a worker, at least 0. Default: 3. Evictions don't count."""


class TensorFlowRuntime(pulumi.ComponentResource):
    """A runtime for TensorFlow's MultiWorkerMirroredStrategy, changed in place except for its number of restarts: a
    change of that makes the runtime anew, and the jobs that the same program has of it.

    Jobs that exist keep the runtime as it was when they started: the Trainer keeps a copy for each.

    Creating it fails when the cluster has one of this name already, as with VolcanoQueue.
    """

    runtime_name: pulumi.Output[str]
    """Name of the runtime, for a TrainJob's runtimeRef."""

    def __init__(self, name: str, args: TensorFlowRuntimeArgs, opts: pulumi.ResourceOptions | None = None):
        manifest = runtime_manifest(args)
        super().__init__("tftrainer:index:TensorFlowRuntime", name, {}, opts)
        runtime = KubernetesObject(
            name,
            marked(name, manifest, self),
            pulumi.ResourceOptions(
                parent=self,
                delete_before_replace=True,
                replace_on_changes=IMMUTABLE,
                hooks=pulumi.ResourceHookBinding(before_create=[cluster.refuse_existing(IF_IT_EXISTS)]),
            ),
        )
        # The id, not the metadata: unknown until the runtime exists, it keeps a preview from asking the Trainer about a
        # job whose runtime is yet to come, which the Trainer would deny.
        self.runtime_name = runtime.id
        self.register_outputs({"runtime_name": self.runtime_name})


def launch_command(script: str) -> list[str]:
    """How every worker starts: the launcher, then the script from the same ConfigMap."""
    return ["python3", "-u", f"{api.SCRIPTS_DIR}/{api.LAUNCHER}", "--", f"{api.SCRIPTS_DIR}/{script}"]


def runtime_manifest(args: TensorFlowRuntimeArgs) -> dict[str, Any]:
    """The ClusterTrainingRuntime's manifest."""
    volcano = args.get("volcano")
    topology = volcano.get("network_topology") if volcano else None
    pod_group = {
        "networkTopology": {"mode": topology["mode"], "highestTierAllowed": int(topology["highest_tier_allowed"])}
        if topology
        else None
    }
    template = {
        "metadata": {"annotations": {api.QUEUE_ANNOTATION: volcano["queue_name"]}} if volcano else None,
        "spec": _job_set_spec(args),
    }
    spec = {
        # No framework: numNodes becomes the completions of one Job, whose index is the worker's.
        "mlPolicy": {"numNodes": 1},
        "podGroupPolicy": {"volcano": api.drop_absent(pod_group)} if volcano else None,
        "template": api.drop_absent(template),
    }
    return {
        "apiVersion": api.TRAINER_API,
        "kind": api.RUNTIME_KIND,
        "metadata": {"name": args["runtime_name"], "labels": {api.FRAMEWORK_LABEL: api.FRAMEWORK}},
        "spec": api.drop_absent(spec),
    }


def _job_set_spec(args: TensorFlowRuntimeArgs) -> dict[str, Any]:
    pod_template = {
        "metadata": {"annotations": annotations}
        if (annotations := infiniband_annotations(args.get("infiniband")))
        else None,
        "spec": _pod_spec(args),
    }
    # Both end the Job with the reason PodFailurePolicy. JobSet tells them apart by the Job's message
    # (https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controller/job/pod_failure_policy.go); one that it does
    # not know counts as a lost worker.
    bad_input = {"containerName": api.NODE, "operator": "In", "values": [api.EXIT_BAD_INPUT]}
    disruption = [{"type": api.DISRUPTION_CONDITION, "status": "True"}]
    job = {
        # A worker alone can't rejoin a running gang ("different incarnation"): one loss fails the Job, and JobSet
        # starts the whole gang again.
        "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onExitCodes": bad_input},
                {"action": "FailJob", "onPodConditions": disruption},
            ]
        },
        "template": api.drop_absent(pod_template),
    }
    return {
        # Workers look each other up before they are ready.
        "network": {"publishNotReadyAddresses": True},
        "failurePolicy": {
            # Of the old gang not one pod is left when the new one starts.
            "restartStrategy": "BlockingRecreate",
            "maxRestarts": int(args.get("max_restarts", DEFAULT_MAX_RESTARTS)),
            "rules": [
                _rule("bad_input", "FailJobSet", f"failed with exit code {api.EXIT_BAD_INPUT} "),
                _rule("disruption", "RestartJobSetAndIgnoreMaxRestarts", f"has condition {api.DISRUPTION_CONDITION} "),
            ],
        },
        "replicatedJobs": [
            {
                "name": api.NODE,
                "template": {"metadata": {"labels": {api.ANCESTOR_LABEL: api.ANCESTOR_TRAINER}}, "spec": job},
            }
        ],
    }


def _rule(name: str, action: str, message: str) -> dict[str, Any]:
    """What JobSet does when the pod failure policy ended the Job with this message."""
    reasons = {"onJobFailureReasons": ["PodFailurePolicy"], "onJobFailureMessagePatterns": [message]}
    return {"name": name, "action": action, **reasons}


def _pod_spec(args: TensorFlowRuntimeArgs) -> dict[str, Any]:
    volcano = args.get("volcano")
    volumes, mounts = pod_volumes(args["scripts_config_map"], args.get("volumes", []), args.get("shm_size"))
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "schedulerName": api.VOLCANO_SCHEDULER if volcano else None,
        "priorityClassName": (volcano.get("priority_class") if volcano else None) or None,
        "imagePullSecrets": [{"name": secret} for secret in args.get("image_pull_secrets", [])] or None,
        "nodeSelector": dict(args.get("node_selector", {})) or None,
        "affinity": dict(args.get("affinity") or {}) or None,
        "tolerations": [dict(toleration) for toleration in args.get("tolerations", [])] or None,
        "containers": [api.drop_absent({**_container(args), "volumeMounts": mounts})],
        "volumes": volumes,
    }
    return api.drop_absent(spec)


def _container(args: TensorFlowRuntimeArgs) -> dict[str, Any]:
    infiniband = args.get("infiniband")
    env = {
        **DEFAULT_ENV,
        api.ENV_DATA_DIR: api.DATA_DIR,
        **(infiniband["nccl_env"] if infiniband else {}),
        **args.get("env", {}),
    }
    pod_env = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}} for name, field in api.POD_FIELDS.items()
    ]
    # RDMA registers its buffers as locked memory.
    capabilities = {"drop": ["ALL"], "add": ["IPC_LOCK"] if infiniband else None}
    return {
        "name": api.NODE,
        "image": args.get("image") or DEFAULT_IMAGE,
        "imagePullPolicy": args.get("image_pull_policy", "IfNotPresent"),
        "command": launch_command(args.get("script", api.TRAIN_SCRIPT)),
        "args": list(args.get("args", [])) or None,
        # The pod's own first: the others may refer to them as $(NAME), and only to what stands above.
        "env": pod_env + api.env_list(env),
        "resources": merged_resources(args.get("resources"), infiniband_resources(infiniband)),
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": api.drop_absent(capabilities)},
    }


def merged_resources(*parts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Requests and limits of all parts together; None when there are none."""
    merged: dict[str, Any] = {}
    for part in parts:
        for kind, amounts in (part or {}).items():
            merged[kind] = {**merged.get(kind, {}), **amounts}
    return merged or None


def worker_resources(cpu: str | None, memory: str | None, gpu: int) -> dict[str, Any] | None:
    """Requests and limits of one worker.

    CPU has no limit, for it would slow training without protecting anybody; memory has one, to protect the node; GPUs
    can't be requested without an equal limit.
    """
    bounded = api.drop_absent({api.MEMORY: memory or None, api.GPU: str(gpu) if gpu else None})
    requests = api.drop_absent({api.CPU: cpu or None, **bounded})
    return merged_resources({"requests": requests} if requests else None, {"limits": bounded} if bounded else None)
