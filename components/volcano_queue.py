"""The Volcano queue that the gangs wait in."""

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

import pulumi

from components import api, cluster
from components.kubernetes_object import KubernetesObject
from components.ownership import marked

IF_IT_EXISTS = "set volcano.queue.create to false to use it, or choose another volcano.queue.name"


class VolcanoQueueArgs(TypedDict):
    queue_name: str
    """Name of the queue, unique in the cluster."""
    weight: NotRequired[int]
    """Share of the cluster against the other queues' weights, at least 1. Default: 1."""
    capability: NotRequired[Mapping[str, str]]
    """The most that the queue's jobs may use together, as resource → quantity. Default: no bound."""
    guarantee: NotRequired[Mapping[str, str]]
    """What is kept free for the queue's jobs, as resource → quantity. Default: nothing."""
    reclaimable: NotRequired[bool]
    """Whether other queues may take back what this one uses beyond its share. Default: true."""
    parent: NotRequired[str | None]
    """Queue above this one. Default: root."""


class VolcanoQueue(pulumi.ComponentResource):
    """A queue, changed in place. Creating it fails when the cluster has one of this name already: two stacks that both
    created it would each delete it from under the other."""

    queue_name: pulumi.Output[str]
    """Name of the queue."""

    def __init__(self, name: str, args: VolcanoQueueArgs, opts: pulumi.ResourceOptions | None = None):
        manifest = queue_manifest(args)
        super().__init__("tftrainer:index:VolcanoQueue", name, {}, opts)
        queue = KubernetesObject(
            name,
            marked(name, manifest, self),
            pulumi.ResourceOptions(
                parent=self,
                hooks=pulumi.ResourceHookBinding(before_create=[cluster.refuse_existing(IF_IT_EXISTS)]),
            ),
        )
        self.queue_name = queue.metadata.apply(lambda metadata: str(metadata["name"]))
        self.register_outputs({"queue_name": self.queue_name})


def queue_manifest(args: VolcanoQueueArgs) -> dict[str, Any]:
    """The Queue's manifest."""
    guarantee = dict(args.get("guarantee") or {})
    spec = {
        "weight": int(args.get("weight", 1)),
        "reclaimable": args.get("reclaimable", True),
        "capability": dict(args.get("capability") or {}) or None,
        "guarantee": {"resource": guarantee} if guarantee else None,
        # Volcano refuses a guarantee that is not also deserved
        # (https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/webhooks/admission/queues/validate/validate_queue.go).
        "deserved": guarantee or None,
        "parent": args.get("parent") or None,
    }
    return {
        "apiVersion": api.VOLCANO_API,
        "kind": api.QUEUE_KIND,
        "metadata": {"name": args["queue_name"]},
        "spec": api.drop_absent(spec),
    }
