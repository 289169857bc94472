"""A Kubernetes object registered from its manifest.

pulumi_kubernetes' own classes would do the same, but importing `pulumi_kubernetes.core.v1` for one ConfigMap costs
every preview 0.35 s, and its CustomResource does not expose the `status` that the provider has read.
"""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pulumi

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


def type_token(api_version: str, kind: str) -> str:
    """The provider's type token; the core group is spelled out.

    >>> type_token("v1", "ConfigMap")
    'kubernetes:core/v1:ConfigMap'
    >>> type_token("scheduling.volcano.sh/v1beta1", "Queue")
    'kubernetes:scheduling.volcano.sh/v1beta1:Queue'
    """
    group_version = api_version if "/" in api_version else f"core/{api_version}"
    return f"kubernetes:{group_version}:{kind}"
