"""Where each operator's chart comes from, and the values that it is installed with."""

import charts
import pytest
import yaml

OCI = "oci://registry.example/charts/chart"


def test_jobset_runs_the_released_image_and_not_its_charts_default_of_the_main_branch() -> None:
    image = charts.jobset(OCI, "", "IfNotPresent").values["image"]
    assert image == {"repository": "registry.k8s.io/jobset/jobset", "tag": "v0.12.0", "pullPolicy": "IfNotPresent"}


def test_trainer_does_not_bring_a_second_jobset() -> None:
    assert charts.trainer(OCI, "", "IfNotPresent", {}).values["jobset"] == {"install": False}


def test_trainers_feature_gates_reach_its_configuration() -> None:
    values = charts.trainer(OCI, "", "IfNotPresent", {"TrainJobStatus": True}).values
    assert values["manager"]["config"] == {"featureGates": {"TrainJobStatus": True}}


def test_the_trainer_starts_anew_when_its_feature_gates_change() -> None:
    on, off = (charts.trainer(OCI, "", "IfNotPresent", {"TrainJobStatus": value}).values for value in (True, False))
    assert on["manager"]["podAnnotations"] != off["manager"]["podAnnotations"]


def test_every_image_comes_from_the_mirror_when_one_is_configured() -> None:
    mirror = "mirror.example:5000"
    assert charts.jobset(OCI, mirror, "Always").values["image"]["repository"] == f"{mirror}/jobset/jobset"
    assert charts.trainer(OCI, mirror, "Always", {}).values["image"]["registry"] == mirror
    assert charts.volcano(OCI, mirror, "Always").values["basic"]["image_registry"] == mirror


def test_volcano_heeds_networks_and_lets_no_queue_keep_others_waiting() -> None:
    text = charts.volcano(OCI, "", "IfNotPresent").values["custom"]["scheduler_config_override"]
    plugins = [plugin["name"] for tier in yaml.safe_load(text)["tiers"] for plugin in tier["plugins"]]
    assert plugins == [
        *["priority", "gang", "conformance", "drf", "predicates", "proportion", "nodeorder", "binpack"],
        "network-topology-aware",
    ]


@pytest.mark.parametrize(
    ("location", "want"),
    [
        pytest.param(OCI, "0.12.0", id="a registry is asked for the tested version"),
        pytest.param("https://charts.example/jobset-0.12.0.tgz", None, id="an archive is one version already"),
        pytest.param("/charts/jobset", None, id="a local folder is one version already"),
    ],
)
def test_the_chart_version(location: str, want: str | None) -> None:
    assert charts.jobset(location, "", "IfNotPresent").pinned_version == want
