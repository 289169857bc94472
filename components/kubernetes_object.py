"""A Kubernetes object registered from its manifest.

pulumi_kubernetes' own classes would do the same, but importing `pulumi_kubernetes.core.v1` for one ConfigMap costs
every preview 0.35 s, and its CustomResource does not expose the `status` that the provider has read.
"""

from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from threading import Thread
from typing import Any

import pulumi
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor

PROVIDER_VERSION = version("pulumi-kubernetes")


class KubernetesObject(pulumi.CustomResource):
    """One object, named in the cluster as its manifest says.

    Raises KeyError when the manifest lacks apiVersion or kind.
    """

    metadata: pulumi.Output[Any]
    """The live object's metadata."""
    status: pulumi.Output[Any]
    """The live object's status, as of the last create, update or refresh; None when it has none."""

    def __init__(self, name: str, manifest: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None):
        super().__init__(
            type_token(manifest["apiVersion"], manifest["kind"]),
            name,
            {"status": None, **manifest},
            pulumi.ResourceOptions.merge(pulumi.ResourceOptions(version=PROVIDER_VERSION), opts),
        )


def start_provider() -> None:
    """Have the engine start the Kubernetes provider now, not at the first object, which then finds it ready.

    Starting takes the provider about a second. A function of the provider is what makes it start; this one asks
    nothing of the cluster. What a provider that cannot start has to say, it says at the first object.

    By the SDK's own way to call a function the program would at its end wait for the answer; but a provider gives none
    while its cluster gives none.
    """
    request = resource_pb2.ResourceInvokeRequest(tok="kubernetes:yaml:decode", version=PROVIDER_VERSION)
    request.args.update({"text": ""})
    Thread(target=_call, args=(get_monitor(), request), daemon=True).start()


def _call(monitor: Any, request: resource_pb2.ResourceInvokeRequest) -> None:
    with suppress(Exception):  # the engine's answer, whatever it is
        monitor.Invoke(request)


def type_token(api_version: str, kind: str) -> str:
    """The provider's type token; the core group is spelled out.

    >>> type_token("v1", "ConfigMap")
    'kubernetes:core/v1:ConfigMap'
    >>> type_token("scheduling.volcano.sh/v1beta1", "Queue")
    'kubernetes:scheduling.volcano.sh/v1beta1:Queue'
    """
    group_version = api_version if "/" in api_version else f"core/{api_version}"
    return f"kubernetes:{group_version}:{kind}"
