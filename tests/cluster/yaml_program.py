"""Runs a Pulumi YAML program, for the embedded cluster's engine lacks that language.

As much of the language as examples/yaml has. Each component is registered by its token and with the schema's names, as
the SDK of any language does it; nothing is known of the components themselves.
"""

import re
from pathlib import Path
from typing import Any

import pulumi
import yaml

REFERENCE = re.compile(r"\$\{(\w+)(?:\.(\w+))?\}")


class Remote(pulumi.ComponentResource):
    """A component that a package makes."""

    def __init__(self, type_: str, name: str, properties: dict[str, Any], opts: pulumi.ResourceOptions) -> None:
        package, _, kind = type_.partition(":")
        super().__init__(f"{package}:index:{kind}", name, properties, opts, remote=True)


def main(program: dict[str, Any]) -> None:
    """Register the resources, which stand in the order of their references, and export the outputs."""
    config = pulumi.Config()
    known: dict[str, Any] = {
        key: config.get(key) or entry.get("default") for key, entry in program.get("config", {}).items()
    }

    def evaluated(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: evaluated(one) for key, one in value.items()}
        if isinstance(value, list):
            return [evaluated(one) for one in value]
        if not isinstance(value, str):
            return value
        if whole := REFERENCE.fullmatch(value):
            found = known[whole[1]]
            return getattr(found, whole[2]) if whole[2] else found
        return REFERENCE.sub(lambda part: known[part[1]], value)

    referred = dict.fromkeys(output for _, output in REFERENCE.findall(str(program)) if output)
    for name, resource in program["resources"].items():
        after = evaluated(resource.get("options", {}).get("dependsOn", []))
        properties = {**referred, **evaluated(resource["properties"])}
        known[name] = Remote(resource["type"], name, properties, pulumi.ResourceOptions(depends_on=after))
    for name, value in program["outputs"].items():
        pulumi.export(name, evaluated(value))


if __name__ == "__main__":
    main(yaml.safe_load((Path(__file__).parent / "program.yaml").read_text()))
