"""The network between a gang's workers: InfiniBand for their pods, and a policy that keeps everybody else out."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pulumi

from components import api, cluster
from components.kubernetes_object import KubernetesObject
from components.ownership import marked

IF_IT_EXISTS = "choose another job.name"


class InfiniBandArgs(TypedDict):
    networks: Sequence[str]
    """NetworkAttachmentDefinitions that every pod joins."""
    resource: str
    """Resource name of the adapters, such as nvidia.com/hostdev."""
    count: int
    """Adapters for each worker, at least 1."""
    nccl_env: Mapping[str, str]
    """Environment that makes NCCL use them."""


class GangNetworkPolicyArgs(TypedDict):
    namespace: pulumi.Input[str]
    """Namespace of the job."""
    job_name: str
    """Name of the TrainJob, and so of its JobSet."""


class GangNetworkPolicy(pulumi.ComponentResource):
    """Admits to the job's pods only each other, on every port.

    TensorFlow's workers talk without any authentication, and rendezvous and NCCL choose ports of their own.
    """

    def __init__(self, name: str, args: GangNetworkPolicyArgs, opts: pulumi.ResourceOptions | None = None):
        super().__init__("tftrainer:index:GangNetworkPolicy", name, {}, opts)
        KubernetesObject(
            name,
            marked(name, policy_manifest(args["job_name"], args["namespace"]), self),
            pulumi.ResourceOptions(
                parent=self, hooks=pulumi.ResourceHookBinding(before_create=[cluster.refuse_existing(IF_IT_EXISTS)])
            ),
        )
        self.register_outputs({})


def policy_manifest(job_name: str, namespace: pulumi.Input[str]) -> dict[str, Any]:
    """The NetworkPolicy's manifest."""
    gang = {"matchLabels": {api.JOBSET_NAME_LABEL: job_name}}
    return {
        "apiVersion": api.NETWORKING_API,
        "kind": api.NETWORK_POLICY_KIND,
        "metadata": {"name": job_name, "namespace": namespace},
        "spec": {"podSelector": gang, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": gang}]}]},
    }


def infiniband_annotations(infiniband: InfiniBandArgs | None) -> dict[str, str] | None:
    """The pods' annotations; None without InfiniBand."""
    return {api.NETWORKS_ANNOTATION: ",".join(infiniband["networks"])} if infiniband else None


def infiniband_resources(infiniband: InfiniBandArgs | None) -> dict[str, Any] | None:
    """The container's resources: a device must be asked for in requests and limits alike; None without InfiniBand."""
    if infiniband is None:
        return None
    devices = {infiniband["resource"]: str(int(infiniband["count"]))}
    return {"requests": devices, "limits": devices}
