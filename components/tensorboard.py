"""A TensorBoard that reads the event files of a namespace's jobs."""

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

import pulumi

from components import api, cluster
from components.kubernetes_object import KubernetesObject
from components.ownership import marked
from components.training_runtime import DEFAULT_IMAGE
from components.volumes import VolumeArgs, mount, pod_volume

PORT = 6006
NOBODY = 65534
NAME_LABEL = "app.kubernetes.io/name"
IF_IT_EXISTS = "set tensorboard.enabled to false to do without, or choose another job.name"


class TensorBoardArgs(TypedDict):
    tensorboard_name: str
    """Name of the Deployment and of the Service."""
    namespace: str
    """Namespace of both, and of the jobs whose event files are shown."""
    logs: VolumeArgs
    """The volume that the jobs write to; read only here."""
    image: NotRequired[str | None]
    """Image with the tensorboard command. Default: tensorflow/tensorflow:2.21.0."""
    image_pull_policy: NotRequired[str]
    """IfNotPresent, Always or Never. Default: IfNotPresent."""
    image_pull_secrets: NotRequired[Sequence[str]]
    """Secrets with registry credentials. Default: none."""


class TensorBoard(pulumi.ComponentResource):
    """A Deployment of one pod and a Service on port 80, inside the cluster alone: TensorBoard asks nobody who they are.

    With a folder of the nodes, the event files are on the node of worker 0, and TensorBoard sees those of its own node
    only: use a claim, or a folder that all nodes share.
    """

    service_name: pulumi.Output[str]
    """Name of the Service."""

    def __init__(self, name: str, args: TensorBoardArgs, opts: pulumi.ResourceOptions | None = None):
        super().__init__("tftrainer:index:TensorBoard", name, {}, opts)
        hooks = pulumi.ResourceHookBinding(before_create=[cluster.refuse_existing(IF_IT_EXISTS)])
        child = pulumi.ResourceOptions(parent=self, hooks=hooks)
        KubernetesObject(name, marked(f"{name}-deployment", deployment_manifest(args), self), child)
        service = KubernetesObject(name, marked(f"{name}-service", service_manifest(args), self), child)
        self.service_name = service.metadata.apply(lambda metadata: str(metadata["name"]))
        self.register_outputs({"service_name": self.service_name})


def deployment_manifest(args: TensorBoardArgs) -> dict[str, Any]:
    """The Deployment's manifest."""
    logs: VolumeArgs = {**args["logs"], "read_only": True}
    scratch = {"name": "tmp", "emptyDir": {}}
    container = {
        "name": "tensorboard",
        "image": args.get("image") or DEFAULT_IMAGE,
        "imagePullPolicy": args.get("image_pull_policy", "IfNotPresent"),
        "command": ["python3", "-m", "tensorboard.main"],
        "args": [f"--logdir={logs['mount_path']}/{args['namespace']}", "--bind_all", f"--port={PORT}"],
        "ports": [{"name": "http", "containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
        "resources": {"requests": {api.CPU: "100m", api.MEMORY: "512Mi"}, "limits": {api.MEMORY: "2Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [mount(logs), {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108  in the pod
    }
    pod = {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "imagePullSecrets": [{"name": secret} for secret in args.get("image_pull_secrets", [])] or None,
        "containers": [container],
        "volumes": [pod_volume(logs), scratch],
    }
    labels = {NAME_LABEL: args["tensorboard_name"]}
    return {
        "apiVersion": api.APPS_API,
        "kind": api.DEPLOYMENT_KIND,
        "metadata": {"name": args["tensorboard_name"], "namespace": args["namespace"]},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": api.drop_absent(pod)},
        },
    }


def service_manifest(args: TensorBoardArgs) -> dict[str, Any]:
    """The Service's manifest."""
    return {
        "apiVersion": api.CORE_API,
        "kind": api.SERVICE_KIND,
        "metadata": {"name": args["tensorboard_name"], "namespace": args["namespace"]},
        "spec": {
            "selector": {NAME_LABEL: args["tensorboard_name"]},
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        },
    }
