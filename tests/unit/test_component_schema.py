"""The components as a Pulumi package: what other languages will see of their types."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pulumi
import pytest
import yaml

import components
from tests.unit.goldens import assert_golden
from tests.unit.package_schema import PACKAGE, generated_schema, interface, name

SCHEMA = generated_schema()
EXAMPLE = yaml.safe_load((PACKAGE.parent / "examples" / "yaml" / "Pulumi.yaml").read_text())


def test_inputs_and_outputs() -> None:
    assert_golden("package", interface(SCHEMA))


@pytest.mark.parametrize(
    ("component", "required"),
    [
        pytest.param("TrainerScripts", {"namespace"}, id="TrainerScripts"),
        pytest.param("VolcanoQueue", {"queueName"}, id="VolcanoQueue"),
        pytest.param("TensorFlowRuntime", {"runtimeName", "scriptsConfigMap"}, id="TensorFlowRuntime"),
        pytest.param("TrainJob", {"jobName", "namespace", "runtimeName", "numNodes"}, id="TrainJob"),
        pytest.param("TensorBoard", {"tensorboardName", "namespace", "logs"}, id="TensorBoard"),
        pytest.param("GangNetworkPolicy", {"namespace", "jobName"}, id="GangNetworkPolicy"),
        pytest.param("VolcanoJob", {"jobName", "namespace", "tasks"}, id="VolcanoJob"),
        pytest.param("LaunchAgent", {"apiKey", "entity", "queues"}, id="LaunchAgent"),
    ],
)
def test_nothing_else_must_be_given(component: str, required: set[str]) -> None:
    assert set(SCHEMA["resources"][f"tftrainer:index:{component}"]["requiredInputs"]) == required


def test_every_component_is_in_it() -> None:
    modules = [importlib.import_module(f"components.{one.name}") for one in pkgutil.iter_modules(components.__path__)]
    defined = {
        one.__name__
        for module in modules
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, pulumi.ComponentResource) and one.__module__ == module.__name__
    }
    assert {name(token) for token in SCHEMA["resources"]} == defined


def described() -> Iterator[tuple[str, dict[str, Any]]]:
    """Whatever a reader of the package's documentation comes across."""
    for token, resource in SCHEMA["resources"].items():
        yield name(token), resource
        for group in ("inputProperties", "properties"):
            yield from ((f"{name(token)}.{key}", one) for key, one in resource.get(group, {}).items())
    for token, type_ in SCHEMA["types"].items():
        yield from ((f"{name(token)}.{key}", one) for key, one in type_["properties"].items())


def test_everything_is_described() -> None:
    assert [key for key, one in described() if not one.get("description")] == []


def test_descriptions_are_not_indented_which_markdown_would_take_for_code() -> None:
    assert [key for key, one in described() if "\n    " in one["description"]] == []


@pytest.mark.parametrize("resource", EXAMPLE["resources"].values(), ids=EXAMPLE["resources"])
def test_the_yaml_example_gives_what_a_component_asks_for(resource: dict[str, Any]) -> None:
    asked = SCHEMA["resources"][resource["type"].replace(":", ":index:")]
    given = resource["properties"].keys()
    assert set(asked["requiredInputs"]) <= given <= asked["inputProperties"].keys()
