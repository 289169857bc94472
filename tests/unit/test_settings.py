"""Settings from the stack's config, and the files that declare or use them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from components import settings, settings_table
from components.clashes import longest_job_name
from components.faults import accepted_words, all_keys, fields_by_key, nested_model
from components.field_types import quantity
from tests.unit.recording import as_config

ROOT = Path(__file__).parents[2]


def parsed(**config: Any) -> settings.Settings:
    return settings.parse({key: as_config(value) for key, value in config.items()})


def project() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    return document


def test_pulumi_yaml_declares_exactly_the_settings() -> None:
    declared = project()["config"]
    assert list(declared) == list(fields_by_key(settings.Settings))
    types = {"array": list, "boolean": bool, "integer": int, "object": dict, "string": str}
    for key, entry in declared.items():
        assert isinstance(entry["default"], types[entry["type"]]), key


def test_pulumi_yaml_has_the_same_defaults() -> None:
    defaults = {key: as_config(entry["default"]) for key, entry in project()["config"].items()}
    assert settings.parse(defaults) == settings.Settings()


def test_pulumi_yaml_names_every_nested_key() -> None:
    declared = project()["config"]
    for key in all_keys(settings.Settings):
        top, _, leaf = key.rpartition(".")
        if top and not key.startswith(("tolerations", "launch.queue.", "launch.agent.")):
            assert leaf in declared[top.partition(".")[0]]["description"], key


@pytest.mark.parametrize("stack", ["dev", "infiniband"])
def test_the_stacks_of_the_repository_are_accepted(stack: str) -> None:
    config = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]
    settings.parse({key.removeprefix("tftrainer:"): as_config(value) for key, value in config.items()})


def test_every_setting_says_what_it_means() -> None:
    def undescribed(model: type[BaseModel]) -> Iterator[str]:
        for key, field in fields_by_key(model).items():
            if inner := nested_model(field.annotation):
                yield from ([] if inner.__doc__ else [key])
                yield from undescribed(inner)
            elif not (field.description or "").endswith("."):
                yield key

    assert list(undescribed(settings.Settings)) == []
    assert [key for key, entry in project()["config"].items() if not entry["description"].endswith(".")] == []


def test_every_setting_that_is_no_object_says_what_it_accepts() -> None:
    silent = [
        key
        for key, field in settings_table.every_field(settings.Settings)
        if not nested_model(field.annotation) and not accepted_words(field)
    ]
    assert silent == []


def test_the_schema_is_printed() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "components.settings"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    schema = yaml.safe_load(printed.stdout)
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(fields_by_key(settings.Settings))


def test_the_tables_are_those_that_make_docs_writes() -> None:
    assert settings_table.CONFIG.read_text() == settings_table.config_page()
    assert settings_table.README.read_text() == settings_table.readme_page(settings_table.README.read_text())


def test_every_key_of_the_schema_is_in_the_table() -> None:
    schema = settings.Settings.model_json_schema(by_alias=True)
    in_table = {key.rpartition(".")[2] for key, _ in settings_table.every_field(settings.Settings)}
    models = [schema, *schema["$defs"].values()]
    assert {key for model in models for key in model["properties"]} == in_table


def test_settings_are_read_only() -> None:
    with pytest.raises(ValidationError):
        settings.Settings().num_nodes = 3


@pytest.mark.parametrize(
    ("config", "path", "want"),
    [
        pytest.param({"numNodes": "3"}, "num_nodes", 3, id="as `pulumi config set numNodes 3` stores it"),
        pytest.param({"numNodes": 3}, "num_nodes", 3, id="as a YAML number"),
        pytest.param({"suspend": "true"}, "suspend", True, id="as `pulumi config set suspend true` stores it"),
        pytest.param({"runId": "7"}, "run_id", "7", id="a text that looks like a number"),
        pytest.param({"resources": {"cpu": 2}}, "resources.cpu", "2", id="CPUs as a number"),
        pytest.param({"resources": {"cpu": 0.5}}, "resources.cpu", "0.5", id="half a CPU"),
        pytest.param({"resources": {"memory": "1.5Gi"}}, "resources.memory", "1.5Gi", id="memory"),
        pytest.param({"env": {"EPOCHS": 50}}, "env", {"EPOCHS": "50"}, id="a number in env"),
        pytest.param(
            {"image": "registry:5000/a/b_c:1@sha256:" + "0" * 64}, "image", ..., id="an image with everything"
        ),
        pytest.param({"image": "nvcr.io/nvidia/tensorflow:25.02-tf2-py3"}, "image", ..., id="a vendor's image"),
        pytest.param({"args": ["--lr", 1]}, "args", ("--lr", "1"), id="a number among the arguments"),
        pytest.param({"nodeSelector": {"kubernetes.io/arch": "amd64"}}, "node_selector", ..., id="a qualified label"),
        pytest.param(
            {"infiniband": {"networks": ["ib/net-a", "net-b"]}}, "infiniband.networks", ..., id="two networks"
        ),
        pytest.param({"job": {"name": "x" * 48}}, "job.name", "x" * 48, id="the longest name for two workers"),
        pytest.param({"tolerations": [{"key": "gpu", "operator": "Exists"}]}, "tolerations", ..., id="a toleration"),
        pytest.param({"data": {"pvc": "cifar"}}, "data.host_path", "", id="a claim replaces the default folder"),
    ],
)
def test_accepted(config: dict[str, Any], path: str, want: Any) -> None:
    value: Any = parsed(**config)
    for part in path.split("."):
        value = getattr(value, part)
    assert value == want or want is ...


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0", 0),
        ("1", 1),
        ("1.5", 1.5),
        ("500m", 0.5),
        ("1k", 1e3),
        ("1Ki", 2**10),
        ("1M", 1e6),
        ("2Gi", 2**31),
        ("1e3", 1e3),
    ],
)
def test_quantities(text: str, want: float) -> None:
    assert quantity(text) == want


@pytest.mark.parametrize("text", ["", "-1", "1 Gi", "1GB", "Gi", "1gi", "0x1", "1.", ".5", "+1", "1e", "٣"])
def test_no_quantities(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity(text)


@pytest.mark.parametrize("num_nodes", [1, 2, 10, 11, 100, 101, 1000])
def test_the_longest_name_leaves_room_for_the_pods(num_nodes: int) -> None:
    pod = f"{'x' * longest_job_name(num_nodes)}-node-0-{num_nodes - 1}-abcde"
    assert len(pod) == 63
