"""The launch components as part of the Pulumi package: what other languages will see of their types."""

import pytest
from pulumi.provider.experimental.analyzer import Analyzer

from components.launch_agent import LaunchAgent
from components.volcano_job import VolcanoJob


@pytest.mark.parametrize(
    ("component", "required", "outputs"),
    [
        pytest.param(VolcanoJob, {"jobName", "namespace", "tasks"}, {"jobName"}, id="VolcanoJob"),
        pytest.param(LaunchAgent, {"apiKey", "entity", "queues"}, {"releaseName"}, id="LaunchAgent"),
    ],
)
def test_inputs_and_outputs(component: type, required: set[str], outputs: set[str]) -> None:
    analyzed = {one.name: one for one in Analyzer("tftrainer").analyze([component])["component_definitions"].values()}
    definition = analyzed[component.__name__]
    assert {name for name, one in definition.inputs.items() if not one.optional} == required
    assert set(definition.outputs) == outputs
    assert [name for name, one in definition.inputs.items() if not one.description] == []
