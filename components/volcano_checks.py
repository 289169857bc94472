"""What Volcano wants of a Job template, beyond its schema.

A mistake in the pytorch plugin's arguments is only logged by Volcano's controller; the pods then start without their
variables (https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/plugins/distributed-framework/pytorch/pytorch.go).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from components.faults import shown

PLUGINS: Final = ("env", "hcclrank", "mpi", "pytorch", "ray", "ssh", "svc", "tensorflow")
EVENTS: Final = ("*", "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated")
ACTIONS: Final = (
    "AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob",
    "ResumeJob",
)  # fmt: skip
WHOLE_PLACEHOLDER: Final = re.compile(r"\{\{(.*)\}\}")
PYTORCH_DEFAULTS: Final = {"master": "master", "worker": "worker", "port": "23456"}
PYTORCH_FLAGS: Final = (*PYTORCH_DEFAULTS, "wait-master-enabled", "wait-master-timeout", "wait-master-image")


def volcano_faults(spec: Mapping[str, Any], integers: Collection[str]) -> Iterator[str]:
    """One line per fault of a Job's spec; `integers` are the template variables of type integer."""
    tasks = spec.get("tasks")
    if not isinstance(tasks, Sequence) or not tasks or not all(isinstance(task, Mapping) for task in tasks):
        yield f"spec.tasks is {shown(tasks)}; accepted: a list of at least one task"
        return
    names = [str(task.get("name")) for task in tasks]
    for index, task in enumerate(tasks):
        path = f"spec.tasks[{index}]"
        if names.index(names[index]) != index:
            yield f"{path}.name is {shown(names[index])}; accepted: a name of its own"
        if "replicas" not in task:
            yield f"{path}.replicas is missing; accepted: {_NUMBER}"
        yield from _number(f"{path}.replicas", task.get("replicas"), integers)
        yield from _policies(f"{path}.policies", task.get("policies"))
    yield from _policies("spec.policies", spec.get("policies"))
    for key in ("minAvailable", "maxRetry", "ttlSecondsAfterFinished"):
        yield from _number(f"spec.{key}", spec.get(key), integers)
    yield from _min_available(spec.get("minAvailable"), [task.get("replicas") for task in tasks])
    plugins = spec.get("plugins") or {}
    if not isinstance(plugins, Mapping):
        yield f"spec.plugins is {shown(plugins)}; accepted: plugins, each with a list of its arguments"
        return
    for name in plugins:
        if name not in PLUGINS:
            yield f"spec.plugins.{name} is no plugin of Volcano; accepted: {', '.join(PLUGINS)}"
    for name, arguments in plugins.items():
        if not isinstance(arguments, list | None):
            yield f"spec.plugins.{name} is {shown(arguments)}; accepted: a list of its arguments"
            return
    if "pytorch" in plugins and len(set(names)) == len(names):
        yield from _pytorch(plugins["pytorch"] or [], names, tasks)


_NUMBER: Final = 'a whole number of at least 0, or "{{name}}" for an integer variable'


def _number(path: str, value: Any, integers: Collection[str]) -> Iterator[str]:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return
    placeholder = WHOLE_PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None
    if placeholder is None or placeholder[1] not in integers:
        yield f"{path} is {shown(value)}; accepted: {_NUMBER}"  # a macro would make it a text


def _min_available(least: Any, replicas: Sequence[Any]) -> Iterator[str]:
    known = all(isinstance(number, int) and number >= 0 for number in replicas)
    if isinstance(least, int) and known and least > sum(replicas):
        yield f"spec.minAvailable is {least}; accepted: at most the replicas of all tasks together, {sum(replicas)}"


def _policies(path: str, policies: Any) -> Iterator[str]:
    policies = policies or []
    if not isinstance(policies, list) or not all(isinstance(policy, Mapping) for policy in policies):
        yield f"{path} is {shown(policies)}; accepted: a list of objects with event and action"
        return
    for index, policy in enumerate(policies):
        events = policy.get("events") or ([policy["event"]] if "event" in policy else [])
        if not isinstance(events, list):
            yield f"{path}[{index}].events is {shown(events)}; accepted: a list of {', '.join(EVENTS)}"
            return
        for event in events:
            if event not in EVENTS:
                yield f"{path}[{index}].event is {shown(event)}; accepted: {', '.join(EVENTS)}"
        if policy.get("action") not in ACTIONS:
            yield f"{path}[{index}].action is {shown(policy.get('action'))}; accepted: {', '.join(ACTIONS)}"


def _pytorch(arguments: Sequence[Any], names: Sequence[str], tasks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    path = "spec.plugins.pytorch"
    flags = dict(PYTORCH_DEFAULTS)
    for argument in arguments:
        match = re.fullmatch(r"--?([a-z-]+)=(.+)", str(argument))
        if match is None or match[1] not in PYTORCH_FLAGS:
            yield f"{path} has {shown(argument)}; accepted: {', '.join(f'--{flag}=...' for flag in PYTORCH_FLAGS)}"
            return
        flags[match[1]] = match[2]
    if not flags["port"].isdecimal() or not 1 <= int(flags["port"]) <= 65535:
        yield f"{path} has port {shown(flags['port'])}; accepted: 1 to 65535"
    for role in ("master", "worker"):
        if flags[role] not in names and not (role == "worker" and len(names) == 1):
            yield f"{path} has {role} {shown(flags[role])}; accepted: the name of a task ({', '.join(names)})"
            return
    if names[0] != flags["master"]:
        # The launch agent gives the run's id to the first container only, and rank 0 must be the one that has it.
        yield f"spec.tasks[0].name is {shown(names[0])}; accepted: the pytorch plugin's master, {flags['master']}"
    elif tasks[0].get("replicas") != 1:
        yield f"spec.tasks[0].replicas is {shown(tasks[0].get('replicas'))}; accepted: 1, for all its pods are rank 0"
