"""The W&B Launch part of a stack, from its settings: queue and agent."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import pulumi

from components.errors import ConfigError
from components.launch_agent import LaunchAgent, LaunchAgentArgs, api_key_hash, custom_resource
from components.launch_client import API_KEY, HOW_TO_SET_API_KEY, NO_CLIENT, RESOURCE_TYPE
from components.launch_queue import LaunchQueue
from components.launch_settings import LaunchAgentSettings, LaunchSettings, queue_template
from components.stack import secret_if
from components.volcano_job import as_json


def ready_key() -> pulumi.Output[str]:
    """The API key, to be had before anything is registered: what has been registered is made, whatever fails later.

    Raises ConfigError when the key is not set or not encrypted, or W&B's client is not installed. A preview only warns
    of what is missing, so that everything else can be looked at without an account.
    """
    key = api_key()
    require_client()
    return key


def deploy(launch: LaunchSettings, key: pulumi.Output[str], secret: bool) -> dict[str, pulumi.Input[str]]:
    """Register queue and agent, and return the stack's outputs of them; `secret` settings stay so in the state."""
    template, variables = queue_template(launch.queue)
    queue = LaunchQueue(
        "launch-queue",
        {
            "queue_name": launch.queue.name,
            "entity": launch.entity,
            "base_url": launch.base_url,
            "template": template,
            "variables": variables,
            "prioritization": launch.queue.prioritization,
            "secret": secret,
            "api_key_hash": pulumi.Output.unsecret(key.apply(api_key_hash)),
        },
    )
    if launch.agent.enabled:
        LaunchAgent("launch-agent", agent_args(launch, queue.queue_name, template, key, secret))
    return {
        "launchQueue": queue.queue_name,
        # To edit for a single run and hand to `wandb launch --resource-args`.
        "launchTemplate": secret_if(secret, as_json({RESOURCE_TYPE: template})),
        "launchCommand": f"wandb launch -e {launch.entity} -q '{launch.queue.name}' -d IMAGE -p PROJECT",
    }


def api_key() -> pulumi.Output[str]:
    """The secret config wandb:apiKey; in a preview it may be missing."""
    key = pulumi.Config("wandb").get_secret("apiKey")
    if key is not None:
        if not pulumi.runtime.is_config_secret(API_KEY):
            raise ConfigError([f"{API_KEY} is not encrypted; accepted: {HOW_TO_SET_API_KEY}"])
        return key
    missing = f"{API_KEY} is missing; accepted: a W&B API key, {HOW_TO_SET_API_KEY}"
    if not pulumi.runtime.is_dry_run():
        raise ConfigError([missing])
    pulumi.log.warn(f"{missing}. Until then this can be previewed only.")
    return pulumi.Output.secret("")


def require_client() -> None:
    """The client is asked for only when a queue changes: say before anything does that it is missing."""
    if find_spec("wandb"):
        return
    if not pulumi.runtime.is_dry_run():
        raise ConfigError([NO_CLIENT])
    pulumi.log.warn(f"{NO_CLIENT}. Until then this can be previewed only.")


def agent_args(
    launch: LaunchSettings,
    queue: pulumi.Input[str],
    template: Mapping[str, Any],
    key: pulumi.Input[str],
    secret: bool,
) -> LaunchAgentArgs:
    """The agent's arguments: rights beyond the chart's only if the template needs them."""
    agent, other = launch.agent, custom_resource(template)
    return {
        "api_key": key,
        "entity": launch.entity,
        "queues": [queue],
        "namespace": agent.namespace,
        "create_namespace": agent.create_namespace,
        "target_namespaces": agent.target_namespaces,
        "custom_resources": [other] if other else [],
        "base_url": launch.base_url,
        "chart": agent.chart or None,
        "image": agent.image or None,
        "image_pull_policy": agent.image_pull_policy,
        "resources": _resources(agent),
        "node_selector": agent.node_selector,
        "max_jobs": agent.max_jobs,
        "start_timeout": agent.start_timeout,
        "env": {name: secret_if(secret, value) for name, value in agent.env.items()},
    }


def _resources(agent: LaunchAgentSettings) -> dict[str, Any] | None:
    amounts = {name: amount for name, amount in (("cpu", agent.cpu), ("memory", agent.memory)) if amount}
    return {"requests": amounts, "limits": amounts} if amounts else None
