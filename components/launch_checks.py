"""What can be known about a queue's template before anything is sent: what W&B's server only warns of, what the launch
agent would refuse, and what would leave a job hanging.

The agent's rules are those of wandb 0.31.0
(https://github.com/wandb/wandb/blob/v0.31.0/wandb/sdk/launch/utils.py, validate_kubernetes_resource_args).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from components.faults import shown
from components.volcano_checks import volcano_faults
from components.volcano_job import VOLCANO_JOB_API

MACROS: Final = ("image_uri", "run_id", "run_name", "entity_name", "project_name", "author")
MACRO: Final = re.compile(r"\$\{(\w+)\}")
PLACEHOLDER: Final = re.compile(r"\{\{(.*?)\}\}")

REFUSED_ALWAYS: Final = ("securityContext", "hostPath", "serviceAccountToken", "serviceAccountName", "serviceAccount")
REFUSED_WHEN_ON: Final = (
    "hostPID", "hostIPC", "hostNetwork", "hostPort", "hostUsers",
    "shareProcessNamespace", "automountServiceAccountToken",
)  # fmt: skip
OFF: Final = (None, False, 0, "", "0", "false", "no")

AGENT_ENV: Final = (
    "WANDB_API_KEY", "WANDB_ARTIFACTS", "WANDB_BASE_URL", "WANDB_CONFIG", "WANDB_DOCKER", "WANDB_ENTITY",
    "WANDB_LAUNCH", "WANDB_LAUNCH_QUEUE_ENTITY", "WANDB_LAUNCH_QUEUE_NAME", "WANDB_LAUNCH_TRACE_ID", "WANDB_NAME",
    "WANDB_PROJECT", "WANDB_RESUME", "WANDB_RUN_ID", "WANDB_SWEEP_ID", "WANDB_USERNAME",
)  # fmt: skip
"""What the agent adds to every container. A Volcano Job with a variable given twice is refused by the API server
(https://github.com/wandb/wandb/blob/v0.31.0/wandb/sdk/launch/_project_spec.py, get_env_vars_dict)."""

VARIABLE_TYPES: Final[Mapping[str, tuple[type, ...]]] = {"integer": (int,), "number": (int, float), "string": (str,)}
SCHEMA_KEYS: Final = ("type", "minimum", "maximum", "enum", "default")
VARIABLE_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def template_faults(template: Mapping[str, Any], variables: Mapping[str, Any]) -> Iterator[str]:
    """One line per fault of a template and its template variables, each starting with where it is."""
    yield from _kind(template)
    yield from _name(template)
    volcano = template.get("apiVersion") == VOLCANO_JOB_API
    used: set[str] = set()
    for path, key, value in _walk(template, ""):
        yield from _refused(path, key, value)
        if volcano and key == "env":
            yield from _environment(path, value)
        if isinstance(value, str):
            yield from _macros(path, value)
            used |= set(PLACEHOLDER.findall(value))
    for name in sorted(used - variables.keys()):
        declared = ", ".join(sorted(variables)) or "none"
        yield f'"{{{{{name}}}}}" stands in the template; accepted: a declared template variable ({declared})'
    for name in sorted(variables.keys() - used):
        yield f'variables.{name} is declared; accepted: only variables that stand in the template, as "{{{{{name}}}}}"'
    for name, variable in variables.items():
        yield from _variable(name, variable)
    if volcano and isinstance(template.get("spec"), Mapping):
        integers = {name for name in variables if _schema(variables[name]).get("type") == "integer"}
        yield from volcano_faults(template["spec"], integers)


def _kind(template: Mapping[str, Any]) -> Iterator[str]:
    """The agent takes a template without apiVersion for a batch/v1 Job, and one without a kind for nonsense."""
    version, kind = template.get("apiVersion", "batch/v1"), template.get("kind")
    if not isinstance(version, str) or version.count("/") != 1:
        yield f"apiVersion is {shown(version)}; accepted: group/version, such as batch/v1 or {VOLCANO_JOB_API}"
    if not isinstance(kind, str) and ("apiVersion" in template or kind is not None):
        yield f"kind is {shown(kind)}; accepted: the kind of {version}, such as Job"
    if not isinstance(template.get("spec"), Mapping):
        yield f"spec is {shown(template.get('spec'))}; accepted: an object"


def _name(template: Mapping[str, Any]) -> Iterator[str]:
    metadata = template.get("metadata", {})
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = metadata.get("name")
    if isinstance(name, str) and "${run_id}" not in name:
        yield f'metadata.name is {shown(name)}; accepted: a name with "${{run_id}}", for each run needs its own'
    elif name is None and "generateName" not in metadata and template.get("apiVersion", "batch/v1") != "batch/v1":
        yield 'metadata.name is missing; accepted: a name with "${run_id}"'


def _walk(node: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """Every value inside, with its path and its key, parents first."""
    items: Iterator[tuple[str, str, Any]] = iter(())
    if isinstance(node, Mapping):
        items = ((f"{path}.{key}" if path else str(key), str(key), value) for key, value in node.items())
    elif isinstance(node, list | tuple):
        items = ((f"{path}[{index}]", "", value) for index, value in enumerate(node))
    for below, key, value in items:
        yield below, key, value
        yield from _walk(value, below)


def _macros(path: str, text: str) -> Iterator[str]:
    for name in MACRO.findall(text):
        if name not in MACROS:
            # The agent fills in any variable of its own environment, its secrets included.
            known = ", ".join(f"${{{macro}}}" for macro in MACROS)
            yield f"{path} contains ${{{name}}}, which the agent's own environment would fill in; accepted: {known}"


def _environment(path: str, env: Any) -> Iterator[str]:
    for index, variable in enumerate(env if isinstance(env, list) else ()):
        name = variable.get("name") if isinstance(variable, Mapping) else None
        if name in AGENT_ENV:
            yield f"{path}[{index}] sets {name}; accepted: any other variable, for the agent sets this one itself"


def _refused(path: str, key: str, value: Any) -> Iterator[str]:
    unconfined = any(word in key.lower() for word in ("apparmor", "seccomp")) and "unconfined" in str(value).lower()
    if (
        (key in REFUSED_ALWAYS and value is not None)
        or (key in REFUSED_WHEN_ON and value not in OFF)
        or (key == "mountPropagation" and value == "Bidirectional")
        or unconfined
    ):
        yield f"{path} is set; accepted: templates without it, for the agent refuses it"


def _schema(variable: Any) -> Mapping[str, Any]:
    schema = variable.get("schema") if isinstance(variable, Mapping) else None
    return schema if isinstance(schema, Mapping) else {}


def _variable(name: str, variable: Any) -> Iterator[str]:
    schema, where = _schema(variable), f"variables.{name}"
    kinds = VARIABLE_TYPES.get(str(schema.get("type")))
    if VARIABLE_NAME.fullmatch(name) is None:
        yield f"{where} is a variable's name; accepted: letters, digits and _, not starting with a digit"
    if kinds is None:
        yield f"{where}.type is {shown(schema.get('type'))}; accepted: {', '.join(VARIABLE_TYPES)}"
        return
    for key in schema.keys() - set(SCHEMA_KEYS):
        yield f"{where}.{key} is not a setting; accepted: {', '.join(SCHEMA_KEYS)}"
    for key in ("minimum", "maximum"):
        if key in schema and (kinds == (str,) or not _is(schema[key], kinds)):
            yield f"{where}.{key} is {shown(schema[key])}; accepted: a bound of a number, of the variable's type"
            return
    for key, value in (
        *((f"enum[{i}]", v) for i, v in enumerate(schema.get("enum", ()))),
        ("default", schema.get("default")),
    ):
        if value is not None and not _is(value, kinds):
            yield f"{where}.{key} is {shown(value)}; accepted: values of type {schema['type']}"
            return
    least, most, default = schema.get("minimum"), schema.get("maximum"), schema.get("default")
    if least is not None and most is not None and least > most:
        yield f"{where}.minimum is {least}; accepted: at most the maximum, {most}"
    elif default is not None:
        if (least is not None and default < least) or (most is not None and default > most):
            yield f"{where}.default is {default}; accepted: from the minimum to the maximum"
        if "enum" in schema and default not in schema["enum"]:
            yield f"{where}.default is {shown(default)}; accepted: one of {shown(list(schema['enum']))}"


def _is(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)
