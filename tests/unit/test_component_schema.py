"""The components as a Pulumi package: what other languages will see of their types."""

import pytest
from pulumi.provider.experimental.analyzer import Analyzer

from components.network import GangNetworkPolicy
from components.tensorboard import TensorBoard
from components.train_job import TrainJob
from components.trainer_scripts import TrainerScripts
from components.training_runtime import TensorFlowRuntime
from components.volcano_queue import VolcanoQueue

COMPONENTS = [TrainerScripts, VolcanoQueue, TensorFlowRuntime, TrainJob, GangNetworkPolicy, TensorBoard]


@pytest.mark.parametrize(
    ("component", "required", "outputs"),
    [
        pytest.param(TrainerScripts, {"namespace"}, {"configMapName"}, id="TrainerScripts"),
        pytest.param(VolcanoQueue, {"queueName"}, {"queueName"}, id="VolcanoQueue"),
        pytest.param(TensorFlowRuntime, {"runtimeName", "scriptsConfigMap"}, {"runtimeName"}, id="TensorFlowRuntime"),
        pytest.param(TrainJob, {"jobName", "namespace", "runtimeName", "numNodes"}, {"jobName"}, id="TrainJob"),
        pytest.param(TensorBoard, {"tensorboardName", "namespace", "logs"}, {"serviceName"}, id="TensorBoard"),
        pytest.param(GangNetworkPolicy, {"namespace", "jobName"}, set(), id="GangNetworkPolicy"),
    ],
)
def test_inputs_and_outputs(component: type, required: set[str], outputs: set[str]) -> None:
    analyzed = {one.name: one for one in Analyzer("tftrainer").analyze(COMPONENTS)["component_definitions"].values()}
    definition = analyzed[component.__name__]
    assert {name for name, one in definition.inputs.items() if not one.optional} == required
    assert set(definition.outputs) == outputs
    assert [name for name, one in definition.inputs.items() if not one.description] == []
