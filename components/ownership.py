"""The mark by which a stack knows its own objects, even those that a killed update made and never recorded.

The mark is the id of a Stash, which the engine draws at random and saves in the stack's state before the object that
carries it is made. So an object with our mark that the state does not know is ours to finish, and one without it is
somebody else's.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pulumi

from components import api

FIELD_MANAGER = "tftrainer"
"""One name in every update, so that what an update took up stays the stack's to change and to remove
(https://kubernetes.io/docs/reference/using-api/server-side-apply/)."""


def marked(name: str, manifest: Mapping[str, Any], parent: pulumi.Resource) -> dict[str, Any]:
    """The manifest with the mark of the stack, kept in a Stash of this name below `parent`.

    It also makes the stack's word the last one: a field that somebody edited by hand is set back, not argued about.
    """
    mark = pulumi.Stash(name, input="owner", opts=pulumi.ResourceOptions(parent=parent)).id
    metadata = manifest["metadata"]
    annotations = {
        **metadata.get("annotations", {}),
        api.OWNER_ANNOTATION: mark,
        api.FIELD_MANAGER_ANNOTATION: FIELD_MANAGER,
        api.FORCE_ANNOTATION: "true",
    }
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def is_ours(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether the live object carries the mark of the one that is to be made."""
    mark = _annotation(wanted, api.OWNER_ANNOTATION)
    return mark != "" and _annotation(live, api.OWNER_ANNOTATION) == mark


def is_same_run(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether the live TrainJob runs what the one that is to be made would run."""
    return _annotation(live, api.RUN_ANNOTATION) == _annotation(wanted, api.RUN_ANNOTATION)


def fingerprint(*parts: Any) -> pulumi.Output[str]:
    """A short text that differs when any of the parts does."""

    def digest(values: list[Any]) -> str:
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]

    return pulumi.Output.all(*parts).apply(digest)


def _annotation(manifest: Mapping[str, Any], name: str) -> str:
    return str((manifest["metadata"].get("annotations") or {}).get(name, ""))
