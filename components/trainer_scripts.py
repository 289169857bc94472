"""The ConfigMap with what runs in the pods: the launcher, the built-in training and the user's own script."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import pulumi

from components import api, cluster
from components.faults import ConfigError
from components.kubernetes_object import KubernetesObject

SOURCES = Path(__file__).resolve().parent.parent / "trainer"
CONFIG_MAP_MAX_BYTES = 2**20
"""Kubernetes' bound on a ConfigMap's data (https://kubernetes.io/docs/concepts/configuration/configmap/)."""

IF_IT_EXISTS = "choose another runtime.name"


class TrainerScriptsArgs(TypedDict):
    namespace: pulumi.Input[str]
    """Namespace of the ConfigMap: that of the jobs which mount it."""
    runtime_name: str
    """Runtime that mounts the scripts: the start of the ConfigMap's name, so that no two stacks share one."""
    script: NotRequired[str | None]
    """Path of a training script of your own, added to the built-in ones. Default: none."""


class TrainerScripts(pulumi.ComponentResource):
    """An immutable ConfigMap whose name tells its content.

    Every content has a ConfigMap of its own, so a running or a resumed job never meets scripts that it did not start
    with: a changed script is a new name, which the runtime and then the job take up before the old one is removed.

    Raises ConfigError when the script cannot be read, or all of them exceed what a ConfigMap holds (1 MiB).
    """

    config_map_name: pulumi.Output[str]
    """Name of the ConfigMap, to mount at /workspace/trainer."""

    def __init__(self, name: str, args: TrainerScriptsArgs, opts: pulumi.ResourceOptions | None = None):
        data = read_scripts(args.get("script"))
        super().__init__("tftrainer:index:TrainerScripts", name, {}, opts)
        config_map_name = content_name(f"{args['runtime_name']}-scripts", data)
        config_map = KubernetesObject(
            name,
            scripts_manifest(config_map_name, args["namespace"], data),
            pulumi.ResourceOptions(
                parent=self, hooks=pulumi.ResourceHookBinding(before_create=[cluster.refuse_existing(IF_IT_EXISTS)])
            ),
        )
        # Through the object's own output, so that whatever mounts it also waits for it.
        self.config_map_name = config_map.metadata.apply(lambda metadata: str(metadata["name"]))
        self.register_outputs({"config_map_name": self.config_map_name})


def read_scripts(script: str | None, sources: Path = SOURCES) -> dict[str, str]:
    """File name → text: the built-in scripts and the user's own, which may take the place of train.py only."""
    data = {path.name: path.read_text() for path in sorted(sources.glob("*.py")) if path.name != "__init__.py"}
    if script:
        path = Path(script)
        if path.name in data.keys() - {api.TRAIN_SCRIPT}:
            raise ConfigError(
                [f"script is {script!r}; accepted: another file name, for the launcher has a {path.name} too"]
            )
        try:
            data[path.name] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise ConfigError(
                [f"script is {script!r}; accepted: a readable Python file ({reason}: {path.absolute()})"]
            ) from error
    size = sum(len(key) + len(text.encode()) for key, text in data.items())
    if size > CONFIG_MAP_MAX_BYTES:
        raise ConfigError(
            [f"script is {script!r}; accepted: at most {CONFIG_MAP_MAX_BYTES} bytes with the launcher, not {size}"]
        )
    return data


def content_name(prefix: str, data: Mapping[str, str]) -> str:
    """A name that changes when, and only when, the content does."""
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    return f"{prefix}-{digest[:10]}"


def scripts_manifest(name: str, namespace: pulumi.Input[str], data: Mapping[str, str]) -> dict[str, Any]:
    """The ConfigMap's manifest."""
    return {
        "apiVersion": api.CORE_API,
        "kind": api.CONFIG_MAP_KIND,
        "metadata": {"name": name, "namespace": namespace},
        "immutable": True,
        "data": dict(data),
    }
