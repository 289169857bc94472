"""The ConfigMap with what runs in the pods: the launcher, the built-in training and the user's own script."""

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import pulumi

from components import api
from components.errors import ConfigError
from components.kubernetes_object import KubernetesObject

SOURCES = Path(__file__).resolve().parent.parent / "trainer"
IN_THE_PODS = {"numpy", "tensorflow", "keras"}
CONFIG_MAP_MAX_BYTES = 2**20
"""Kubernetes' bound on a ConfigMap's data (https://kubernetes.io/docs/concepts/configuration/configmap/)."""


class TrainerScriptsArgs(TypedDict):
    namespace: pulumi.Input[str]
    """Namespace of the ConfigMap: that of the jobs which mount it."""
    script: NotRequired[str | None]
    """Path of a training script of your own, added to the built-in ones. Default: none."""


class TrainerScripts(pulumi.ComponentResource):
    """An immutable ConfigMap; new content is a new one, under a new name.

    So a running or a resumed job never meets scripts that it did not start with: the runtime and then the job take up
    the new name before the old ConfigMap is removed. The name has eight random characters, new ones for new content,
    and nothing of the content itself: after an update that failed half-way, going back to the old content would create
    the very object that the next update is still to delete. They are in the stack's state before the ConfigMap is in
    the cluster, so that an update that was killed in between is finished under the same name.

    Raises ConfigError when the script cannot be read or would hide a module of Python's, or when all of them exceed
    what a ConfigMap holds (1 MiB).
    """

    config_map_name: pulumi.Output[str]
    """Name of the ConfigMap, to mount at /workspace/trainer."""

    def __init__(self, name: str, args: TrainerScriptsArgs, opts: pulumi.ResourceOptions | None = None):
        data = read_scripts(args.get("script"))
        super().__init__("tftrainer:index:TrainerScripts", name, {}, opts)
        content = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
        drawn = pulumi.Stash(
            name, input=content, opts=pulumi.ResourceOptions(parent=self, replace_on_changes=["input"])
        )
        config_map = KubernetesObject(
            name,
            scripts_manifest(drawn.id.apply(lambda id_: f"{name}-{id_[:8]}"), args["namespace"], data),
            pulumi.ResourceOptions(parent=self, replace_on_changes=["data"]),
        )
        # Through the object's own output, so that whatever mounts it also waits for it.
        self.config_map_name = config_map.metadata.apply(lambda metadata: str(metadata["name"]))
        self.register_outputs({"config_map_name": self.config_map_name})


def read_scripts(script: str | None, sources: Path = SOURCES) -> dict[str, str]:
    """File name → text: the built-in scripts and the user's own, which may take the place of train.py only."""
    data = {path.name: path.read_text() for path in sorted(sources.glob("*.py")) if path.name != "__init__.py"}
    if script:
        path = Path(script)
        if not re.fullmatch("[-._a-zA-Z0-9]+", path.name):
            raise ConfigError([f"script is {script!r}; accepted: a file name of letters, digits, -, _ and ."])
        if path.stem in sys.stdlib_module_names | IN_THE_PODS:
            raise ConfigError(
                [f"script is {script!r}; accepted: another file name, for `import {path.stem}` would find this one"]
            )
        if path.exists() and not path.is_file():
            raise ConfigError([f"script is {script!r}; accepted: a readable Python file (no file: {path.absolute()})"])
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


def scripts_manifest(name: pulumi.Input[str], namespace: pulumi.Input[str], data: Mapping[str, str]) -> dict[str, Any]:
    """The ConfigMap's manifest."""
    return {
        "apiVersion": api.CORE_API,
        "kind": api.CONFIG_MAP_KIND,
        "metadata": {"name": name, "namespace": namespace},
        "immutable": True,
        "data": dict(data),
    }
