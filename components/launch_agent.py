"""W&B's launch agent, installed from its official Helm chart: it polls the queues and turns each run into an object.

What the chart's values do was read from launch-agent 0.13.12
(https://github.com/wandb/helm-charts/tree/82d5626a27d4e0e608067d9fe7f12f4b791e0d89/charts/launch-agent).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NotRequired, TypedDict

import pulumi

from components import api, cluster
from components.kubernetes_object import KubernetesObject
from components.launch_queue import BASE_URL
from components.ownership import marked

CHART: Final = "launch-agent"
CHART_REPOSITORY: Final = "https://wandb.github.io/helm-charts"
CHART_VERSION: Final = "0.13.12"
RELEASE: Final = "wandb-launch"
IF_IT_EXISTS: Final = (
    "set launch.agent.createNamespace to false to use it (a destroy would delete it with all that is in it), or choose "
    "another launch.agent.namespace"
)
IF_THERE_IS_AN_AGENT: Final = (
    "another stack's agent works in that namespace: take it out of launch.agent.targetNamespaces, or choose another "
    "launch.agent.namespace"
)
API_KEY_ENTRY: Final = "password"
API_KEY_HASH_ANNOTATION: Final = "tftrainer/api-key-hash"
COVERED_GROUPS: Final = ("batch", "batch.volcano.sh")
"""API groups whose jobs the chart's own role covers."""
VERBS: Final = ("create", "get", "watch", "list", "update", "delete", "patch")


class CustomResourceArgs(TypedDict):
    group: str
    """API group, such as kubeflow.org."""
    plural: str
    """Plural name, such as pytorchjobs."""


class LaunchAgentArgs(TypedDict):
    api_key: pulumi.Input[str]
    """W&B API key. Kept in Secrets that only the chart's pods refer to; runs of Volcano Jobs get it in clear."""
    entity: str
    """W&B team or user that owns the queues."""
    queues: Sequence[pulumi.Input[str]]
    """Names of the queues, which must exist: the agent ends itself otherwise."""
    namespace: NotRequired[str]
    """Namespace of the agent. Default: wandb."""
    create_namespace: NotRequired[bool]
    """Whether the component creates that namespace. Default: true."""
    target_namespaces: NotRequired[Sequence[str]]
    """Further namespaces in which the agent may create jobs; they must exist. Default: none."""
    custom_resources: NotRequired[Sequence[CustomResourceArgs]]
    """What else than Jobs and Volcano Jobs the agent may create. Default: nothing."""
    base_url: NotRequired[str]
    """Address of the W&B server's API, as the pods reach it. Default: https://api.wandb.ai."""
    chart: NotRequired[str | None]
    """Local path of the chart. Default: version 0.13.12 from W&B's repository."""
    image: NotRequired[str | None]
    """Image of the agent. Default: the chart's own."""
    image_pull_policy: NotRequired[str]
    """Default: IfNotPresent."""
    resources: NotRequired[Mapping[str, Any] | None]
    """Requests and limits of the agent. Default: the chart's, 1 CPU and 1Gi at most."""
    node_selector: NotRequired[Mapping[str, str]]
    """Labels of the agent's node. Default: none."""
    tolerations: NotRequired[Sequence[Mapping[str, Any]]]
    """Taints that the agent puts up with. Default: none."""
    max_jobs: NotRequired[int]
    """Runs at a time, -1 for no bound. Default: 10."""
    start_timeout: NotRequired[int]
    """Seconds that a run may wait for its place in the cluster before it fails. Default: 1800."""
    env: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Environment of the agent. Default: none. Templates can't read it (see launch_checks.py)."""


class LaunchAgent(pulumi.ComponentResource):
    """The agent, its key, and its rights in every namespace that it creates jobs in."""

    release_name: pulumi.Output[str]
    """Name of the Helm release."""

    def __init__(self, name: str, args: LaunchAgentArgs, opts: pulumi.ResourceOptions | None = None):
        # Only who deploys an agent waits for this import.
        from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

        super().__init__("tftrainer:index:LaunchAgent", name, {}, opts)
        namespace = args.get("namespace", "wandb")
        before: list[pulumi.Resource] = []
        if args.get("create_namespace", True):
            hooks = pulumi.ResourceHookBinding(before_create=[cluster.refuse_existing(IF_IT_EXISTS)])
            own = pulumi.ResourceOptions(parent=self, hooks=hooks)
            manifest = marked(f"{name}-namespace", namespace_manifest(namespace), self)
            before.append(KubernetesObject(f"{name}-namespace", manifest, own))
        # Two stacks' agents share no namespace: the one destroyed first would take the other's key and rights along.
        hooks = pulumi.ResourceHookBinding(before_create=[cluster.refuse_existing(IF_THERE_IS_AN_AGENT)])
        sole = pulumi.ResourceOptions(parent=self, depends_on=list(before), hooks=hooks)
        for target in target_namespaces(args):
            manifests = {"api-key": api_key_secret(target, args["api_key"])}
            manifests |= {manifest["kind"].lower(): manifest for manifest in custom_resource_rights(target, args)}
            for what, manifest in manifests.items():
                resource = f"{name}-{what}-{target}"
                before.append(KubernetesObject(resource, marked(resource, manifest, self), sole))
        location = args.get("chart")
        release = Release(
            name,
            name=RELEASE,
            namespace=namespace,  # the chart's disruption budget has no other
            chart=location or CHART,
            version=None if location else CHART_VERSION,
            repository_opts=None if location else RepositoryOptsArgs(repo=CHART_REPOSITORY),
            values=agent_values(
                args,
                pulumi.Output.all(*args["queues"]).apply(lambda queues: launch_config(args, queues)),
                pulumi.Output.secret(args["api_key"]).apply(api_key_hash),
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=before),
        )
        self.release_name = release.name.apply(str)
        self.register_outputs({"release_name": self.release_name})


def target_namespaces(args: LaunchAgentArgs) -> list[str]:
    """The agent's own namespace and the further ones, each once."""
    return list(dict.fromkeys((args.get("namespace", "wandb"), *args.get("target_namespaces", ()))))


def agent_values(args: LaunchAgentArgs, config: pulumi.Input[str], key_hash: pulumi.Input[str]) -> dict[str, Any]:
    """The chart's values. The key itself is not among them: the chart is told of our Secret."""
    agent = {
        "useExternalWandbSecret": True,
        # The chart restarts the agent when its own Secret changes, but knows nothing of ours.
        "podAnnotations": {API_KEY_HASH_ANNOTATION: key_hash},
        "image": args.get("image"),
        "imagePullPolicy": args.get("image_pull_policy", "IfNotPresent"),
        "resources": args.get("resources"),
        "nodeSelector": dict(args.get("node_selector", {})) or None,
        "tolerations": [dict(toleration) for toleration in args.get("tolerations", ())] or None,
        "startTimeout": int(args.get("start_timeout", 1800)),
    }
    return {
        "agent": api.drop_absent(agent),
        "namespace": args.get("namespace", "wandb"),
        "additionalTargetNamespaces": target_namespaces(args),
        "baseUrl": args.get("base_url", BASE_URL),
        "launchConfig": config,
        # The chart puts values into its template bare, where `8` or `true` would no longer be a text.
        "additionalEnvVars": [{"name": name, "value": quoted(value)} for name, value in args.get("env", {}).items()],
    }


def quoted(value: pulumi.Input[str]) -> pulumi.Input[str]:
    """The value in quotes, and as secret as it was."""
    return json.dumps(value) if isinstance(value, str) else pulumi.Output.json_dumps(value)


def launch_config(args: LaunchAgentArgs, queues: Sequence[str]) -> str:
    """The agent's configuration file, as JSON, which is YAML. It builds no images: jobs bring theirs."""
    config = {"entity": args["entity"], "queues": list(queues), "max_jobs": int(args.get("max_jobs", 10))}
    return json.dumps(config | {"builder": {"type": "noop"}})


def api_key_hash(api_key: str) -> str:
    """Tells one key from another, and nothing else about it."""
    return hashlib.sha256(api_key.encode()).hexdigest()[:16]


def namespace_manifest(namespace: str) -> dict[str, Any]:
    """The Namespace's manifest."""
    return {"apiVersion": api.CORE_API, "kind": api.NAMESPACE_KIND, "metadata": {"name": namespace}}


def api_key_secret(namespace: str, api_key: pulumi.Input[str]) -> dict[str, Any]:
    """The Secret's manifest, under the name and in the form that the chart's agent looks for in each target namespace:
    with another content the agent would refuse to start a Job there."""
    return {
        "apiVersion": api.CORE_API,
        "kind": api.SECRET_KIND,
        "metadata": {"name": f"wandb-api-key-{RELEASE}", "namespace": namespace},
        "type": "kubernetes.io/basic-auth",
        "stringData": {API_KEY_ENTRY: pulumi.Output.secret(api_key)},
    }


def custom_resource_rights(namespace: str, args: LaunchAgentArgs) -> list[dict[str, Any]]:
    """A Role for what the chart's role leaves out, and its binding to the agent; nothing when there is nothing."""
    name = f"wandb-launch-custom-resources-{RELEASE}"
    rules = [
        {"apiGroups": [kind["group"]], "resources": [kind["plural"], f"{kind['plural']}/status"], "verbs": list(VERBS)}
        for kind in args.get("custom_resources", ())
    ]
    if not rules:
        return []
    agent = {
        "kind": "ServiceAccount",
        "name": f"wandb-launch-serviceaccount-{RELEASE}",
        "namespace": args.get("namespace", "wandb"),
    }
    metadata = {"name": name, "namespace": namespace}
    role = {"kind": api.ROLE_KIND, "name": name, "apiGroup": api.RBAC_API.partition("/")[0]}
    return [
        {"apiVersion": api.RBAC_API, "kind": api.ROLE_KIND, "metadata": metadata, "rules": rules},
        {
            "apiVersion": api.RBAC_API,
            "kind": api.ROLE_BINDING_KIND,
            "metadata": metadata,
            "subjects": [agent],
            "roleRef": role,
        },
    ]


def custom_resource(template: Mapping[str, Any]) -> CustomResourceArgs | None:
    """What a queue's template makes the agent create, if the chart's role lacks it. The plural is the agent's own
    guess, right or wrong."""
    group, _, _ = str(template.get("apiVersion", "batch/v1")).partition("/")
    return None if group in COVERED_GROUPS else {"group": group, "plural": f"{str(template['kind']).lower()}s"}
