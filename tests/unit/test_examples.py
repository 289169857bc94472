"""The examples, run against Pulumi's mocks."""

import runpy
from pathlib import Path

import pytest
import yaml

from components.kubeconfig import Kubeconfig
from tests.unit.recording import Run, run

SWEEP = Path(__file__).parents[2] / "examples" / "sweep"


def the_sweep(*rates: str) -> Run:
    project = yaml.safe_load((SWEEP / "Pulumi.yaml").read_text())
    defaults = {key: entry["default"] for key, entry in project["config"].items() if "default" in entry}

    def program() -> None:
        runpy.run_path(str(SWEEP / "__main__.py"))

    return run(program, defaults | {"learningRates": list(rates)})


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kubeconfig, "of_stack", classmethod(lambda cls: cls()))


def test_a_sweep_is_many_jobs_of_one_runtime_that_differ_in_their_environment() -> None:
    jobs = {one.name: one.inputs for one in the_sweep("0.001", "0.002").registered if one.kind == "TrainJob"}
    specs = [inputs["spec"] for inputs in jobs.values() if inputs]
    assert {spec["runtimeRef"]["name"] for spec in specs} == {"tensorflow-sweep"}
    # Sorted, because the engine is told of independent resources in any order.
    assert sorted(spec["trainer"]["env"][1]["value"] for spec in specs) == ["0.001", "0.002"]
    assert {spec["trainer"]["env"][1]["name"] for spec in specs} == {"LEARNING_RATE"}


def test_one_more_rate_leaves_the_other_jobs_as_they_are() -> None:
    before, after = the_sweep("0.001"), the_sweep("0.001", "0.002")
    inputs = {(one.type, one.name): one.inputs for one in after.registered}
    assert [one.name for one in before.registered if inputs[one.type, one.name] != one.inputs] == []
