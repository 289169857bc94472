"""The components as a Pulumi package, for programs in any of Pulumi's languages (docs/design.md shows one).

A folder of its own, because Pulumi takes the `__main__.py` beside a PulumiPlugin.yaml for the plugin, and the
project's root has the program there. W&B Launch's queue is missing: no package can hold a dynamic resource.
"""

import inspect
import sys
from pathlib import Path

import pulumi
from pulumi.provider.experimental import component_provider_host

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # where `components` is

from components.launch_agent import LaunchAgent
from components.network import GangNetworkPolicy
from components.tensorboard import TensorBoard
from components.train_job import TrainJob
from components.trainer_scripts import TrainerScripts
from components.training_runtime import TensorFlowRuntime
from components.volcano_job import VolcanoJob
from components.volcano_queue import VolcanoQueue

NAME = "tftrainer"
COMPONENTS: list[type[pulumi.ComponentResource]] = [
    GangNetworkPolicy,
    LaunchAgent,
    TensorBoard,
    TensorFlowRuntime,
    TrainJob,
    TrainerScripts,
    VolcanoJob,
    VolcanoQueue,
]

for component in COMPONENTS:
    component.__doc__ = inspect.getdoc(component)  # Markdown would take the indentation for code

if __name__ == "__main__":
    component_provider_host(COMPONENTS, NAME)
