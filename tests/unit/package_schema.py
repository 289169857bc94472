"""The Pulumi package's schema, and its interface at a glance."""

import json
import runpy
from pathlib import Path
from typing import Any

from pulumi.provider.experimental.component import ComponentProvider

PACKAGE = Path(__file__).parents[2] / "package"


def generated_schema() -> dict[str, Any]:
    """The schema as the SDK makes it from the components' annotations, without an engine."""
    package = runpy.run_path(str(PACKAGE / "__main__.py"))
    schema: dict[str, Any] = json.loads(ComponentProvider(package["COMPONENTS"], package["NAME"]).schema or "")
    return schema


def interface(schema: dict[str, Any]) -> dict[str, Any]:
    """Components and types, each property as its type, with `?` where it may be left out."""
    components = {
        name(token): {
            "inputs": _properties(one["inputProperties"], one.get("requiredInputs", [])),
            "outputs": _properties(one.get("properties", {}), one.get("required", [])),
        }
        for token, one in sorted(schema["resources"].items())
    }
    types = {
        name(token): _properties(one["properties"], one.get("required", []))
        for token, one in sorted(schema["types"].items())
    }
    return {"components": components, "types": types}


def name(token: str) -> str:
    return token.rpartition(":")[2]


def _properties(properties: dict[str, Any], required: list[str]) -> dict[str, str]:
    return {key: _type(one) + ("" if key in required else "?") for key, one in sorted(properties.items())}


def _type(prop: dict[str, Any]) -> str:
    """`Input` is what a resource that is yet to be made may give."""
    if "items" in prop:
        text = f"list of {_type(prop['items'])}"
    elif "additionalProperties" in prop:
        text = f"map of {_type(prop['additionalProperties'])}"
    else:
        text = name(prop["$ref"]).rpartition("/")[2] if "$ref" in prop else str(prop["type"])
    return text if prop.get("plain") else f"Input {text}"
