"""The Volcano Job's manifest: the tutorial's to the letter, the hardened one, and what each setting adds."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.launch_template import tutorial
from components.volcano_job import VolcanoJobArgs, as_json, as_yaml, volcano_job
from tests.launch.builders import a_hardened_template

GOLDEN = Path(__file__).parent / "golden"
INFINIBAND = {
    "networks": ["hostdevice-net"],
    "resource": "nvidia.com/hostdev",
    "count": 2,
    "nccl_env": {"NCCL_IB_DISABLE": "0", "NCCL_SOCKET_IFNAME": "net", "NCCL_DEBUG": "INFO"},
}
EVERYTHING: dict[str, Any] = {
    "namespace": "research",
    "replicas": "{{workers}}",
    "image_pull_policy": "Always",
    "command": ["python3", "/opt/train.py"],
    "env": {"NCCL_DEBUG": "WARN"},
    "resources": {"requests": {"cpu": "4"}, "limits": {"nvidia.com/gpu": "8"}},
    "shared_memory": "16Gi",
    "infiniband": INFINIBAND,
    "on_failure": "terminate",
    "max_retry": 5,
    "ttl_seconds_after_finished": 60,
    "queue": "research",
    "priority_class_name": "high",
}


def assert_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("form", [pytest.param("yaml", id="as YAML"), pytest.param("json", id="as JSON")])
def test_the_tutorials_template_is_the_one_on_wandbs_page(form: str) -> None:
    render = {"yaml": as_yaml, "json": as_json}[form]
    assert render(volcano_job(tutorial())) == (GOLDEN / f"tutorial.{form}").read_text()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param("hardened.yaml", {}, id="with its defaults"),
        pytest.param("hardened_everything.yaml", EVERYTHING, id="with everything set"),
    ],
)
def test_the_hardened_template(name: str, settings: dict[str, Any]) -> None:
    assert_golden(name, as_yaml(a_hardened_template(**settings)))


@pytest.mark.parametrize("settings", [pytest.param({}, id="defaults"), pytest.param(EVERYTHING, id="everything")])
def test_both_forms_hold_the_same(settings: dict[str, Any]) -> None:
    template = a_hardened_template(**settings)
    assert yaml.safe_load(as_yaml(template)) == json.loads(as_json(template)) == template


def test_the_hardened_template_leaves_the_gangs_size_to_volcano() -> None:
    assert "minAvailable" not in a_hardened_template()["spec"]


@pytest.mark.parametrize(
    ("task", "want"),
    [
        pytest.param(0, {"WANDB_RUN_GROUP": "${run_id}"}, id="the master logs"),
        pytest.param(1, {"WANDB_RUN_GROUP": "${run_id}", "WANDB_MODE": "disabled"}, id="a worker logs nothing"),
    ],
)
def test_only_rank_0_is_a_run_in_wandb(task: int, want: dict[str, str]) -> None:
    env = a_hardened_template()["spec"]["tasks"][task]["template"]["spec"]["containers"][0]["env"]
    assert {variable["name"]: variable["value"] for variable in env} == want


def test_without_infiniband_nothing_of_it_remains() -> None:
    text = as_json(a_hardened_template(infiniband=None))
    assert not [word for word in ("networks", "hostdev", "NCCL", "resources") if word in text]


def test_infiniband_asks_for_no_capability_because_the_agent_refuses_it() -> None:
    assert "securityContext" not in as_json(a_hardened_template(infiniband=INFINIBAND))


def test_numbers_from_other_languages_become_whole() -> None:
    args: VolcanoJobArgs = {
        "job_name": "a",
        "namespace": "b",
        "tasks": [{"name": "master", "replicas": 2.0, "image": "c"}],
        "max_retry": 1.0,  # type: ignore[typeddict-item]
    }
    spec = volcano_job(args)["spec"]
    assert (repr(spec["tasks"][0]["replicas"]), repr(spec["maxRetry"])) == ("2", "1")
