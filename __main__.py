"""Distributed TensorFlow on Kubeflow Trainer v2: scripts, queue, runtime and job, from the stack's settings."""

import asyncio
import signal

import pulumi

from components import preflight, stack
from components import settings as config
from components.faults import ConfigError, stop
from components.kubeconfig import Kubeconfig, require_reachable
from components.kubernetes_object import start_provider
from components.network import GangNetworkPolicy
from components.tensorboard import TensorBoard
from components.train_job import TrainJob
from components.trainer_scripts import TrainerScripts
from components.training_runtime import TensorFlowRuntime
from components.volcano_queue import VolcanoQueue


async def main() -> None:
    try:
        settings, secret = config.load()
        await require_ready(settings)
        declare(settings, secret)
    except ConfigError as error:
        stop(error.lines)


async def require_ready(settings: config.Settings) -> None:
    """Ask the cluster whether it has what the stack needs; meanwhile the provider starts."""
    kubeconfig = Kubeconfig.of_stack()
    require_reachable(kubeconfig)
    asks = asyncio.to_thread(preflight.require_ready, kubeconfig, settings, f"{pulumi.get_project()}:")
    await asyncio.gather(start_provider(), asks)


def declare(settings: config.Settings, secret: frozenset[str]) -> None:
    """Register what the settings ask for, and export where to look."""
    if settings.launch.enabled:
        from components import launch  # what it imports takes a second

        launch_key = launch.ready_key()
    runtime: pulumi.Input[str] = stack.runtime_name(settings)
    scripts: pulumi.Input[str] | None = None
    # A stack without a job is there for the jobs of others, and `pulumi destroy` would not ask them.
    for_others = pulumi.ResourceOptions(protect=not settings.job.enabled)

    if settings.runtime.create:
        scripts = TrainerScripts(
            "trainer-scripts", {"namespace": settings.namespace, "script": settings.script}
        ).config_map_name
        queue: pulumi.Input[str] | None = settings.volcano.queue.name if settings.volcano.enabled else None
        if queue and settings.volcano.queue.create:
            queue = VolcanoQueue("queue", stack.queue_args(settings), for_others).queue_name
        runtime = TensorFlowRuntime(
            "runtime", stack.runtime_args(settings, secret, scripts, queue), for_others
        ).runtime_name

    if settings.job.enabled:
        policy = GangNetworkPolicy("policy", {"namespace": settings.namespace, "job_name": settings.job.name})
        job = TrainJob(
            "job", stack.job_args(settings, secret, runtime, scripts), pulumi.ResourceOptions(depends_on=[policy])
        )
        pulumi.export("job", job.job_name)

    if settings.tensorboard.enabled:
        TensorBoard("tensorboard", stack.tensorboard_args(settings))

    if settings.launch.enabled:
        for name, value in launch.deploy(settings.launch, launch_key).items():
            pulumi.export(name, value)

    if settings.trains:
        pulumi.export("runtime", runtime)
        pulumi.export("namespace", settings.namespace)
    for name, command in stack.verification_commands(settings).items():
        pulumi.export(name, command)


# When an update fails, the engine interrupts a program that still waits; Python would print tracebacks about it.
signal.signal(signal.SIGINT, signal.SIG_DFL)
pulumi.run(main)
