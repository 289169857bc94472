"""The `launch:` section: what it accepts, and what a stack with it registers."""

import json
from typing import Any

import pulumi
import pytest
from pulumi.runtime import rpc

from components import launch
from components.errors import ConfigError
from components.launch import deploy, ready_key
from components.launch_settings import LaunchSettings, launch_clashes, queue_template
from components.volcano_job import as_json
from tests.launch.builders import a_hardened_template, a_plain_job, a_template
from tests.launch.fake_wandb import KEY
from tests.launch.recording import run
from tests.unit.recording import Run


def settings(**section: Any) -> LaunchSettings:
    return LaunchSettings.model_validate_json(json.dumps({"enabled": True, "entity": "team"} | section))


def test_it_is_off_by_default_and_needs_nothing_then() -> None:
    assert LaunchSettings().enabled is False
    assert list(launch_clashes(LaunchSettings())) == []


@pytest.mark.parametrize(
    ("queue", "want"),
    [
        pytest.param({}, a_hardened_template(replicas="{{workers}}", command=()), id="hardened by default"),
        pytest.param({"preset": "tutorial"}, a_template(("spec.tasks.1.replicas", "{{workers}}")), id="the tutorial's"),
        pytest.param({"template": a_plain_job()}, a_plain_job(), id="one's own"),
        pytest.param(
            {
                "resources": {"cpu": 4, "memory": "8Gi", "gpu": 1},
                "shmSize": "2Gi",
                "volcanoQueue": "q",
                "priorityClass": "p",
            },
            a_hardened_template(
                replicas="{{workers}}",
                resources={
                    "requests": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"},
                    "limits": {"memory": "8Gi", "nvidia.com/gpu": "1"},
                },
                shared_memory="2Gi",
                queue="q",
                priority_class_name="p",
            ),
            id="hardened, with settings",
        ),
    ],
)
def test_the_queues_template(queue: dict[str, Any], want: dict[str, Any]) -> None:
    launch = settings(queue=queue)
    assert queue_template(launch.queue)[0] == want
    assert list(launch_clashes(launch)) == []


def test_infiniband_is_annotation_devices_and_environment() -> None:
    pod = queue_template(settings(queue={"infiniband": {"enabled": True}}).queue)[0]["spec"]["tasks"][1]["template"]
    container = pod["spec"]["containers"][0]
    assert pod["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "hostdevice-net"}
    assert container["resources"] == {"requests": {"nvidia.com/hostdev": "2"}, "limits": {"nvidia.com/hostdev": "2"}}
    assert {"name": "NCCL_IB_DISABLE", "value": "0"} in container["env"]


@pytest.mark.parametrize(
    ("section", "want"),
    [
        pytest.param(
            {"entity": ""},
            "launch.entity is missing; accepted with launch.enabled true: the W&B team or user that owns the queue",
            id="no entity",
        ),
        pytest.param(
            {"queue": {"workers": {"default": 9}}},
            "launch.queue.workers.default is 9; accepted: at most the maximum, 8",
            id="more workers by default than allowed",
        ),
        pytest.param(
            {"queue": {"preset": "tutorial", "env": {"SEED": "1"}}},
            'launch.queue.env is set; accepted with preset "tutorial": only name, prioritization, workers, namespace',
            id="more than the tutorial's template can be told",
        ),
        pytest.param(
            {"queue": {"variables": {"gpus": {"type": "integer"}}}},
            "launch.queue.variables is set; accepted: only with launch.queue.template",
            id="variables without a template of one's own",
        ),
        pytest.param(
            {"queue": {"template": a_plain_job(), "env": {"A": "1"}}},
            "launch.queue.env is set; accepted with launch.queue.template: only name, prioritization, variables",
            id="settings that a template of one's own does not know",
        ),
        pytest.param(
            {"queue": {"template": a_plain_job(("metadata.name", "job"))}},
            'launch.queue.template: metadata.name is "job"; accepted: a name with "${run_id}", for each run needs '
            "its own",
            id="a bad template",
        ),
        pytest.param(
            {"queue": {"namespace": "research"}},
            "launch.agent.targetNamespaces lacks research, the namespace of the queue's runs; accepted: a list that "
            "has it",
            id="runs where the agent has no rights",
        ),
    ],
)
def test_a_contradiction_is_told_in_one_line(section: dict[str, Any], want: str) -> None:
    assert next(iter(launch_clashes(settings(**section)))) == want


def deployed(
    key: str | None, preview: bool = False, secret: bool = True, secret_section: bool = False, **section: Any
) -> Run:
    def program() -> None:
        if key:
            pulumi.runtime.set_all_config({"wandb:apiKey": key}, ["wandb:apiKey"] if secret else [])
        for name, value in deploy(settings(**section), ready_key(), secret_section).items():
            pulumi.export(name, value)

    return run(program, preview=preview)


def test_queue_agent_and_the_command_to_launch_with() -> None:
    made = deployed(KEY)
    assert {one.kind for one in made.registered} >= {"LaunchQueue", "LaunchAgent", "Secret", "Release"}
    assert made.stack_outputs == {
        "launchQueue": "volcano-ddp",
        "launchTemplate": as_json({"kubernetes": a_hardened_template(replicas="{{workers}}")}),
        "launchCommand": "wandb launch -e team -q 'volcano-ddp' -d IMAGE -p PROJECT",
    }


def test_what_the_config_keeps_encrypted_stays_so_in_the_state() -> None:
    token = {"env": {"TOKEN": "hush"}}
    made = deployed(KEY, secret_section=True, queue=token, agent=token)
    texts = [str(one.request.object) for one in made.registered]
    assert sum("hush" in text for text in texts) == 2
    for kind, property_ in (("LaunchQueue", "template"), ("Release", "values")):
        request = next(one.request for one in made.registered if one.kind == kind)
        assert rpc._special_secret_sig in str(request.object.fields[property_])


def test_the_agent_can_run_elsewhere() -> None:
    assert deployed(KEY, agent={"enabled": False}).kinds == set()


def test_a_new_key_is_tried_on_the_queue_before_the_agent_gets_it() -> None:
    one, other = (
        next(each.inputs for each in deployed(key).registered if each.kind == "LaunchQueue") for key in (KEY, "f" * 40)
    )
    assert {name for name in one if one[name] != other[name]} == {"api_key_hash"}


def test_without_wandbs_client_everything_can_be_previewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "find_spec", lambda name: None)
    assert "Release" in deployed(KEY, preview=True).kinds


def test_up_needs_wandbs_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"W&B Launch needs W&B's client: pip install wandb==0\.31\.0"):
        deployed(KEY)


def test_without_a_key_everything_can_be_previewed() -> None:
    assert "Release" in deployed(None, preview=True).kinds


@pytest.mark.parametrize(
    ("key", "secret", "want"),
    [
        pytest.param(
            None,
            True,
            "wandb:apiKey is missing; accepted: a W&B API key, pulumi config set --secret wandb:apiKey",
            id="without a key",
        ),
        pytest.param(
            KEY,
            False,
            "wandb:apiKey is not encrypted; accepted: pulumi config set --secret wandb:apiKey",
            id="with a key in clear",
        ),
    ],
)
def test_up_needs_an_encrypted_key(key: str | None, secret: bool, want: str) -> None:
    with pytest.raises(ConfigError) as failure:
        deployed(key, secret=secret)
    assert failure.value.lines == [want]
