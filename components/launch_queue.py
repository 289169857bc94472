"""A W&B Launch queue, kept by the stack: created, changed in place, and put back when somebody changed it in W&B.

W&B has no Pulumi provider, so this is a dynamic one over W&B's own client. The API key comes from the stack's secret
config `wandb:apiKey`, which the engine hands to the provider at run time: it is in no queue's inputs or outputs.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NotRequired, TypedDict

import pulumi
from pulumi import dynamic

from components import launch_client
from components.errors import ConfigError
from components.launch_checks import template_faults

BASE_URL: Final = "https://api.wandb.ai"
PRIORITIZATIONS: Final = ("DISABLED", "V0")
QUEUE_NAME_MAX: Final = 64
PROPERTIES: Final = ("queue_name", "entity", "base_url", "template", "variables", "prioritization", "api_key_hash")
REPLACING: Final = ("queue_name", "entity", "base_url")


class LaunchQueueArgs(TypedDict):
    queue_name: str
    """Name of the queue, 1 to 64 characters. A change makes a new queue and removes the old one."""
    entity: str
    """W&B team or user that owns the queue."""
    template: Mapping[str, Any]
    """Kubernetes object that each run on the queue becomes: a Volcano Job, a Job, or another custom resource."""
    variables: NotRequired[Mapping[str, Any]]
    """Template variables, as name → {"schema": {"type", "minimum", "maximum", "enum", "default"}}. Default: none."""
    prioritization: NotRequired[str]
    """V0, by which runs of higher priority go first, or DISABLED (the default)."""
    base_url: NotRequired[str]
    """Address of the W&B server's API. Default: https://api.wandb.ai."""
    secret: NotRequired[bool]
    """Whether the template stays encrypted in the state; in W&B it is in clear. Default: false."""
    api_key_hash: NotRequired[pulumi.Input[str]]
    """Tells one API key from another: a new key is tried on the queue, before anything that depends on it changes."""


class LaunchQueue(dynamic.Resource, module="launch", name="LaunchQueue"):
    """A queue of type Kubernetes. Creating it fails when the entity has one of this name already.

    Raises ConfigError, one line per fault, before anything is registered.
    """

    queue_name: pulumi.Output[str]
    """Name of the queue, known once it exists."""

    def __init__(self, name: str, args: LaunchQueueArgs, opts: pulumi.ResourceOptions | None = None):
        if lines := list(queue_faults(args)):
            raise ConfigError(lines)
        super().__init__(LaunchQueueProvider(), name, dict(queue_properties(args)), opts)


def queue_faults(args: LaunchQueueArgs) -> Iterator[str]:
    """One line per fault of a queue's arguments."""
    if not 1 <= len(args["queue_name"]) <= QUEUE_NAME_MAX:
        yield f"queue_name has {len(args['queue_name'])} characters; accepted: 1 to {QUEUE_NAME_MAX}"
    if args.get("prioritization", "DISABLED") not in PRIORITIZATIONS:
        yield f"prioritization is {args['prioritization']}; accepted: {', '.join(PRIORITIZATIONS)}"
    yield from template_faults(args["template"], args.get("variables", {}))


def queue_properties(args: LaunchQueueArgs) -> dict[str, pulumi.Input[str]]:
    """What the state keeps. Template and variables are texts, which Pulumi shows as the JSON that they are."""
    template: pulumi.Input[str] = json.dumps(args["template"])
    if args.get("secret", False):
        template = pulumi.Output.secret(template)
    return {
        "queue_name": args["queue_name"],
        "entity": args["entity"],
        "base_url": args.get("base_url", BASE_URL),
        "template": template,
        "variables": json.dumps(args.get("variables", {})),
        "prioritization": args.get("prioritization", "DISABLED"),
        "api_key_hash": args.get("api_key_hash", ""),
    }


class LaunchQueueProvider(dynamic.ResourceProvider):
    """Pickled into the state, so it holds nothing; `configure` finds the key anew in each process."""

    def configure(self, req: dynamic.ConfigureRequest) -> None:
        self.api_key = req.config.get(launch_client.API_KEY)

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.DiffResult:
        replaces = [key for key in REPLACING if _olds.get(key) != _news[key]]
        changed = any(_olds.get(key) != _news[key] for key in ("prioritization", "api_key_hash")) or any(
            json.loads(_olds.get(key) or "null") != json.loads(_news[key]) for key in ("template", "variables")
        )
        return dynamic.DiffResult(changes=changed or bool(replaces), replaces=replaces)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        with launch_client.client(self.api_key, props["base_url"]) as api:
            if launch_client.find(api, props):
                queue = f"queue {props['queue_name']} of {props['entity']}"
                raise launch_client.QueueError(
                    f"{queue} exists and is not this stack's: take another name, or delete that one in W&B"
                )
            launch_client.upsert(api, props, {})
        return dynamic.CreateResult(f"{props['entity']}/{props['queue_name']}", _kept(props))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        with launch_client.client(self.api_key, props["base_url"]) as api:
            queue = launch_client.find(api, props)
            if queue is None:
                return dynamic.ReadResult("", {})  # tells the engine that the queue is gone
            return dynamic.ReadResult(id_, _kept(props) | launch_client.contents(queue))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.UpdateResult:
        with launch_client.client(self.api_key, _news["base_url"]) as api:
            queue = launch_client.find(api, _news)
            launch_client.upsert(api, _news, launch_client.links(queue) if queue else {})
        return dynamic.UpdateResult(_kept(_news))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        with launch_client.client(self.api_key, _props["base_url"]) as api:
            if queue := launch_client.find(api, _props):
                queue.delete()


def _kept(props: Mapping[str, Any]) -> dict[str, Any]:
    return {key: props[key] for key in PROPERTIES}
