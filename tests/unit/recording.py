"""Pulumi's mocks, made to remember what they drop: options, hooks and outputs of every registered resource."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.runtime import mocks, rpc
from pulumi.runtime.settings import ROOT, SETTINGS

PROJECT, STACK = "tftrainer", "unit"
FUNCTIONS: dict[str, dict[Any, Any]] = {"kubernetes:yaml:decode": {}}
"""What the providers' functions return: the one by which the provider is started. The program needs no other."""


@dataclass
class Registered:
    """One resource as the program registered it."""

    type: str
    name: str
    inputs: dict[str, Any]
    parent: str
    request: Any
    outputs: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.type.rpartition(":")[2]


class RecordingMonitor(mocks.MockMonitor):
    """Remembers every request; `statuses` are what the cluster answers, by kind."""

    def __init__(self, statuses: Mapping[str, Any] | None = None) -> None:
        super().__init__(_Answers(statuses or {}))
        self.registered: dict[str, Registered] = {}

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  the engine's name
        response = super().RegisterResource(request)  # type: ignore[no-untyped-call]
        inputs = rpc.deserialize_properties(request.object, keep_unknowns=True)
        self.registered[response.urn] = Registered(request.type, request.name, inputs, request.parent, request)
        return response

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802
        self.registered[request.urn].outputs = rpc.deserialize_properties(request.outputs)
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]


class _Answers(mocks.Mocks):
    def __init__(self, statuses: Mapping[str, Any]) -> None:
        self.statuses = statuses

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        kind = args.typ.rpartition(":")[2]
        if args.typ == "pulumi:index:Stash":
            return drawn(args.name, args.inputs), args.inputs
        if not args.typ.startswith("kubernetes:"):
            return None, {}
        metadata = args.inputs["metadata"]
        id_ = "/".join(filter(None, [metadata.get("namespace"), metadata.get("name")]))  # as the provider forms it
        return id_, {**args.inputs, "metadata": metadata, "status": self.statuses.get(kind)}

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        return FUNCTIONS[args.token], []


def drawn(name: str, inputs: Mapping[str, Any]) -> str:
    """A stash's id: the engine draws it at random, here the same inputs give the same id."""
    return hashlib.sha256(json.dumps([name, inputs], sort_keys=True).encode()).hexdigest()


@dataclass
class Run:
    """What a program registered."""

    registered: list[Registered]

    def object(self, kind: str) -> Registered:
        """The one Kubernetes object of a kind."""
        return self._only("kubernetes:", kind)

    def component(self, kind: str) -> Registered:
        """The one component of a kind."""
        return self._only("tftrainer:index:", kind)

    def _only(self, package: str, kind: str) -> Registered:
        (found,) = [one for one in self.registered if one.type.startswith(package) and one.kind == kind]
        return found

    @property
    def kinds(self) -> set[str]:
        """The kinds of all Kubernetes objects."""
        return {resource.kind for resource in self.registered if resource.type.startswith("kubernetes:")}

    @property
    def stack_outputs(self) -> dict[str, Any]:
        return self._only("pulumi:pulumi:", "Stack").outputs


def run(
    program: Callable[[], None],
    config: Mapping[str, Any] | None = None,
    secret: list[str] | None = None,
    preview: bool = False,
    statuses: Mapping[str, Any] | None = None,
    monitor: RecordingMonitor | None = None,
) -> Run:
    """Run a program against the mocks; config values are given as Python values.

    A monitor of one's own also tells what a program registered that fails.
    """
    monitor = monitor or RecordingMonitor(statuses)
    with _fresh_event_loop() as loop:
        ROOT.set(None)
        mocks.set_mocks(monitor.mocks, project=PROJECT, stack=STACK, preview=preview, monitor=monitor)
        ROOT.set(None)  # in place of the stack that set_mocks makes, run_in_stack's own records the outputs
        texts = {f"{PROJECT}:{key}": as_config(value) for key, value in (config or {}).items()}
        pulumi.runtime.set_all_config(texts, [f"{PROJECT}:{key}" for key in secret or []])
        loop.run_until_complete(pulumi.runtime.run_in_stack(program))
    return Run(list(monitor.registered.values()))


def as_config(value: Any) -> str:
    """A value in the form in which Pulumi hands config to a program."""
    return value if isinstance(value, str) else json.dumps(value)


@contextmanager
def _fresh_event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        SETTINGS.outputs.clear()  # what a program that failed left waiting
        loop.close()
        asyncio.set_event_loop(None)
