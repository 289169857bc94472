"""A sweep: one runtime in one queue, and a TrainJob for each learning rate.

The queue decides how many of them run at a time. A new learning rate is a new job; the others stay as they are.
"""

import asyncio
import gc
import sys
from pathlib import Path

import pulumi

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # where `components` is

from components.network import GangNetworkPolicy
from components.train_job import TrainJob
from components.trainer_scripts import TrainerScripts
from components.training_runtime import TensorFlowRuntime, worker_resources
from components.volcano_queue import VolcanoQueue
from components.volumes import data_volume

# What is registered stays in use to the end: of hundreds of jobs, looking for garbage would take half of the time.
gc.disable()


async def main() -> None:
    config = pulumi.Config()
    namespace = config.require("namespace")

    queue = VolcanoQueue("queue", {"queue_name": "sweep", "capability": {"cpu": "16"}})
    scripts = TrainerScripts("scripts", {"namespace": namespace})
    runtime = TensorFlowRuntime(
        "runtime",
        {
            "runtime_name": "tensorflow-sweep",
            "scripts_config_map": scripts.config_map_name,
            "image": config.require("image"),
            "volumes": [data_volume(host_path=config.require("data"))],
            "volcano": {"queue_name": queue.queue_name},
        },
    )

    def sweep_job(rate: str) -> TrainJob:
        name = f"sweep-{rate.replace('.', '-')}"
        policy = GangNetworkPolicy(name, {"namespace": namespace, "job_name": name})
        return TrainJob(
            name,
            {
                "job_name": name,
                "namespace": namespace,
                "runtime_name": runtime.runtime_name,
                "num_nodes": 2,
                "resources": worker_resources(cpu="2", memory="4Gi", gpu=0),
                "env": {"LEARNING_RATE": rate},
                "run_trigger": [scripts.config_map_name],
            },
            pulumi.ResourceOptions(depends_on=[policy]),
        )

    jobs = [sweep_job(rate) for rate in config.require_object("learningRates")]
    # The SDK's wait at the end looks at all that is outstanding whenever something of it ends. It tells what failed.
    await asyncio.gather(*(job.job_name.future() for job in jobs), return_exceptions=True)


pulumi.run(main)
