"""The agent: what its chart is told, and what stands around the chart. No chart is needed: docs/launch.md tells what
was seen with the real one."""

import json
from typing import Any

import pytest
import yaml
from pulumi.runtime import rpc

from components.launch_agent import (
    LaunchAgent,
    LaunchAgentArgs,
    agent_values,
    api_key_hash,
    custom_resource,
    launch_config,
)
from tests.launch.builders import a_plain_job, a_template
from tests.launch.fake_wandb import KEY
from tests.launch.recording import run
from tests.unit.recording import Run

OWN_SETTINGS: dict[str, Any] = {
    "image": "registry.example/agent:1",
    "image_pull_policy": "Always",
    "resources": {"limits": {"memory": "2Gi"}},
    "node_selector": {"disk": "ssd"},
    "tolerations": [{"operator": "Exists"}],
    "max_jobs": -1,
    "start_timeout": 60,
    "base_url": "https://wandb.example",
}


def args(**changes: Any) -> LaunchAgentArgs:
    return {"api_key": KEY, "entity": "team", "queues": ["ddp"], **changes}  # type: ignore[typeddict-item]


def values(**changes: Any) -> dict[str, Any]:
    return agent_values(args(**changes), "config", "hash")


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        pytest.param(
            {},
            {
                "useExternalWandbSecret": True,
                "podAnnotations": {"tftrainer/api-key-hash": "hash"},
                "imagePullPolicy": "IfNotPresent",
                "startTimeout": 1800,
            },
            id="by default the chart's own image and resources",
        ),
        pytest.param(
            OWN_SETTINGS,
            {
                "useExternalWandbSecret": True,
                "podAnnotations": {"tftrainer/api-key-hash": "hash"},
                "image": "registry.example/agent:1",
                "imagePullPolicy": "Always",
                "resources": {"limits": {"memory": "2Gi"}},
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"operator": "Exists"}],
                "startTimeout": 60,
            },
            id="everything set",
        ),
    ],
)
def test_the_agents_values(settings: dict[str, Any], want: dict[str, Any]) -> None:
    assert values(**settings)["agent"] == want


def test_jobs_go_to_the_namespaces_that_were_named_and_not_to_the_charts_default_ones() -> None:
    got = values(namespace="launch", target_namespaces=["research", "launch"])
    assert (got["namespace"], got["additionalTargetNamespaces"]) == ("launch", ["launch", "research"])


def test_the_server_is_wandbs_own_or_the_one_that_was_named() -> None:
    assert values()["baseUrl"] == "https://api.wandb.ai"
    assert values(**OWN_SETTINGS)["baseUrl"] == "https://wandb.example"


def test_environment_survives_the_charts_bare_templates() -> None:
    listed = values(env={"RETRIES": "8", "DEBUG": "true"})["additionalEnvVars"]
    rendered = "".join(f"- name: {variable['name']}\n  value: {variable['value']}\n" for variable in listed)
    assert yaml.safe_load(rendered) == [{"name": "RETRIES", "value": "8"}, {"name": "DEBUG", "value": "true"}]


def test_the_configuration_file_names_the_queues_and_builds_no_images() -> None:
    assert yaml.safe_load(launch_config(args(max_jobs=3), ["ddp", "other"])) == {
        "entity": "team",
        "queues": ["ddp", "other"],
        "max_jobs": 3,
        "builder": {"type": "noop"},
    }


def test_no_value_holds_the_key() -> None:
    assert KEY not in json.dumps(values()) + launch_config(args(), ["ddp"]) + api_key_hash(KEY)


@pytest.mark.parametrize(
    ("template", "want"),
    [
        pytest.param(a_template(), None, id="a Volcano Job"),
        pytest.param(a_plain_job(), None, id="a Job"),
        pytest.param({"spec": {}}, None, id="a Job that says nothing"),
        pytest.param(
            {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"},
            {"group": "kubeflow.org", "plural": "pytorchjobs"},
            id="another custom resource, which the chart's role leaves out",
        ),
    ],
)
def test_the_rights_that_a_template_needs_beyond_the_charts(template: dict[str, Any], want: Any) -> None:
    assert custom_resource(template) == want


def deployed(**changes: Any) -> Run:
    def program() -> None:
        LaunchAgent("agent", args(**changes))

    return run(program)


def test_a_namespace_the_key_and_the_release_are_made() -> None:
    assert sorted(one.kind for one in deployed().registered if one.type.startswith("kubernetes:")) == [
        "Namespace",
        "Release",
        "Secret",
    ]


def test_a_namespace_that_exists_is_not_taken_over() -> None:
    made = next(one for one in deployed().registered if one.kind == "Namespace")
    assert len(made.request.hooks.before_create) == 1


def test_an_existing_namespace_can_be_used() -> None:
    assert deployed(create_namespace=False).kinds == {"Secret", "Release"}


def test_every_target_namespace_gets_the_key_as_a_secret() -> None:
    secrets = [one for one in deployed(target_namespaces=["research"]).registered if one.kind == "Secret"]
    assert {one.inputs["metadata"]["namespace"] for one in secrets} == {"wandb", "research"}
    for one in secrets:
        assert one.inputs["metadata"]["name"] == "wandb-api-key-wandb-launch"
        assert rpc._special_secret_sig in str(one.request.object.fields["stringData"])


def test_the_release_is_the_official_chart_in_the_agents_namespace() -> None:
    inputs = deployed(namespace="launch").object("Release").inputs
    assert (inputs["chart"], inputs["version"], inputs["namespace"]) == ("launch-agent", "0.13.12", "launch")
    assert inputs["repositoryOpts"] == {"repo": "https://wandb.github.io/helm-charts"}


def test_a_local_chart_needs_no_repository() -> None:
    inputs = deployed(chart="/charts/launch-agent").object("Release").inputs
    assert (inputs["chart"], "version" in inputs, "repositoryOpts" in inputs) == ("/charts/launch-agent", False, False)


def test_other_custom_resources_get_a_role_in_every_target_namespace() -> None:
    kinds = [{"group": "kubeflow.org", "plural": "pytorchjobs"}]
    made = deployed(custom_resources=kinds, target_namespaces=["research"]).registered
    roles = [one for one in made if one.kind == "Role"]
    bindings = [one for one in made if one.kind == "RoleBinding"]
    assert {one.inputs["metadata"]["namespace"] for one in roles} == {"wandb", "research"}
    assert roles[0].inputs["rules"][0]["resources"] == ["pytorchjobs", "pytorchjobs/status"]
    assert {one.inputs["subjects"][0]["name"] for one in bindings} == {"wandb-launch-serviceaccount-wandb-launch"}
