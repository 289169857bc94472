"""The program: what a stack consists of, from its settings."""

import pulumi

from components import kubeconfig, preflight, stack
from components import settings as config
from components.network import GangNetworkPolicy
from components.tensorboard import TensorBoard
from components.train_job import TrainJob
from components.trainer_scripts import TrainerScripts
from components.training_runtime import TensorFlowRuntime
from components.volcano_queue import VolcanoQueue


def checked_settings() -> tuple[config.Settings, frozenset[str]]:
    """The stack's settings, and the keys among them that are secret, when the cluster has what they need.

    Raises ConfigError naming every fault of the settings, or else everything that the cluster lacks.
    """
    settings, secret = config.load()
    cluster = kubeconfig.Kubeconfig.of_stack()
    kubeconfig.require_reachable(cluster)
    preflight.require_ready(cluster, settings, f"{pulumi.get_project()}:")
    return settings, secret


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
        for name, value in launch.deploy(settings.launch, launch_key, "launch" in secret).items():
            pulumi.export(name, value)

    if settings.trains:
        pulumi.export("runtime", runtime)
        pulumi.export("namespace", settings.namespace)
    for name, command in stack.verification_commands(settings).items():
        pulumi.export(name, command)
