"""What the cluster must have before a stack can work in it: looked at in every preview and before every update."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from components import api, live_objects
from components.clashes import over_capability
from components.errors import ConfigError
from components.faults import shown
from components.kubeconfig import Kubeconfig
from components.settings import Settings
from components.stack import runtime_name

OPEN: Final = "Open"
"""State of a queue that takes jobs."""
HOW_TO_INSTALL: Final = "install it with `cd operators && pulumi up`"
NEW_IN_TRAINER: Final = (
    (api.RUNTIME_KIND, "spec.podGroupPolicy.volcano"),  # 2.1
    (api.TRAIN_JOB_KIND, "spec.activeDeadlineSeconds"),  # 2.2
    (api.TRAIN_JOB_KIND, "spec.runtimePatches"),  # 2.2
    (api.TRAIN_JOB_KIND, "status.trainerStatus"),  # 2.2
    (api.RUNTIME_KIND, "spec.mlPolicy.torch.envInjection"),  # 2.3
)
"""Fields that came with the Trainer's releases, the last one with the oldest that is supported
(https://github.com/kubeflow/trainer/blob/v2.3.0/CHANGELOG/CHANGELOG-2.3.md)."""


def require_ready(kubeconfig: Kubeconfig, settings: Settings, prefix: str) -> None:
    """Raise ConfigError, one line for each thing that the stack needs and the cluster lacks.

    `prefix` is the config namespace with its colon. What this user may not read is taken to be there.
    """
    look = _Look(kubeconfig, settings, prefix)
    checks: list[Callable[[], Iterator[str]]] = []
    if settings.trains or settings.tensorboard.enabled:
        checks += [look.namespace, look.claims]
    if settings.trains:
        checks += [look.trainer, look.jobset]
    if settings.job.enabled and not settings.runtime.create:
        checks.append(look.foreign_runtime)
    if settings.runtime.create and settings.volcano.enabled:
        checks += [look.volcano, look.other_queue, look.priority_class]
    if settings.launch.enabled:
        checks.append(look.launch)
    with ThreadPoolExecutor(len(checks) or 1) as pool:
        lines = [line for found in pool.map(_answered, checks) for line in found]
    if lines:
        raise ConfigError(lines)


def _answered(check: Callable[[], Iterator[str]]) -> list[str]:
    """What the check finds, as far as it comes."""
    lines: list[str] = []
    try:
        lines.extend(check())
    except live_objects.ForbiddenError:
        pass
    except RuntimeError as error:
        raise ConfigError([str(error)]) from error
    return lines


@dataclass(frozen=True)
class _Look:
    """One look at the cluster; each method yields a line for what it lacks."""

    kubeconfig: Kubeconfig
    settings: Settings
    prefix: str

    def trainer(self) -> Iterator[str]:
        # Not the CRDs themselves, which ordinary users may not read; everybody may read what the API server publishes.
        published = live_objects.get(self.kubeconfig, f"/openapi/v3/apis/{api.TRAINER_API}")
        if published is None:
            kinds = f"{api.TRAIN_JOB_KIND} and {api.RUNTIME_KIND} of {api.TRAINER_API}"
            yield f"Kubeflow Trainer is missing in the cluster ({kinds}); {HOW_TO_INSTALL}"
            return
        schemas = {name.rpartition(".")[2]: schema for name, schema in published["components"]["schemas"].items()}
        lacking = [f"{kind} {path}" for kind, path in NEW_IN_TRAINER if not _declares(schemas.get(kind, {}), path)]
        if lacking:
            yield f"Kubeflow Trainer in the cluster is older than 2.3: it lacks {', '.join(lacking)}; {HOW_TO_INSTALL}"

    def jobset(self) -> Iterator[str]:
        if not self._knows(api.JOBSET_API):
            yield f"JobSet is missing in the cluster ({api.JOBSET_KIND} of {api.JOBSET_API}); {HOW_TO_INSTALL}"

    def volcano(self) -> Iterator[str]:
        if not self._knows(api.VOLCANO_API):
            kinds = f"{api.QUEUE_KIND} and {api.POD_GROUP_KIND} of {api.VOLCANO_API}"
            yield f"Volcano is missing in the cluster ({kinds}); {HOW_TO_INSTALL}, or set volcano.enabled to false"

    def namespace(self) -> Iterator[str]:
        name = self.settings.namespace
        key = f"{self.prefix}namespace is {shown(name)}"
        found = live_objects.find(self.kubeconfig, api.CORE_API, api.NAMESPACE_KIND, name)
        if found is None:
            yield f"{key}, which the cluster lacks; make it with `kubectl create namespace {name}`"
        elif found.get("status", {}).get("phase") == "Terminating":
            yield f"{key}, which is being deleted; wait until it is gone, or choose another"

    def claims(self) -> Iterator[str]:
        namespace = self.settings.namespace
        for setting in ("data", "checkpoints", "logs"):
            name = getattr(self.settings, setting).pvc
            if name and not self._has(api.CORE_API, api.CLAIM_KIND, name, namespace):
                key = f"{self.prefix}{setting}.pvc is {shown(name)}"
                yield f"{key}, a PersistentVolumeClaim that namespace {namespace} lacks; accepted: one that exists"

    def other_queue(self) -> Iterator[str]:
        """A queue of somebody else's: the one in use, or the one above the stack's own."""
        queue = self.settings.volcano.queue
        setting, name = ("parent", queue.parent) if queue.create else ("name", queue.name)
        if not name or not self._knows(api.VOLCANO_API):
            return
        key = f"{self.prefix}volcano.queue.{setting} is {shown(name)}"
        found = live_objects.find(self.kubeconfig, api.VOLCANO_API, api.QUEUE_KIND, name)
        if found is None:
            remedy = "one that exists" if queue.create else "one that exists, or volcano.queue.create true"
            yield f"{key}, a queue that the cluster lacks; accepted: {remedy}"
            return
        state = found.get("status", {}).get("state", OPEN)
        if state != OPEN:
            yield f"{key}, a queue that is {state}; accepted: one that is {OPEN}"
        if self.settings.job.enabled:
            yield from over_capability(
                self.settings, f"{key}, whose capability is too small", found["spec"].get("capability") or {}
            )

    def priority_class(self) -> Iterator[str]:
        yield from self._missing_priority_class("volcano.priorityClass", self.settings.volcano.priority_class)

    def launch(self) -> Iterator[str]:
        """What the runs of a Launch queue need."""
        queue, agent = self.settings.launch.queue, self.settings.launch.agent
        yield from self._missing_priority_class("launch.queue.priorityClass", queue.priority_class)
        if not queue.template and not self._knows(api.VOLCANO_API):
            yield f"Volcano is missing in the cluster ({api.QUEUE_KIND} of {api.VOLCANO_API}); {HOW_TO_INSTALL}"
        elif queue.volcano_queue and not self._has(api.VOLCANO_API, api.QUEUE_KIND, queue.volcano_queue):
            key = f"{self.prefix}launch.queue.volcanoQueue is {shown(queue.volcano_queue)}"
            yield f"{key}, a queue that the cluster lacks; accepted: one that exists"
        if not agent.enabled:
            return
        wanted = [("targetNamespaces", name) for name in agent.target_namespaces]
        if not agent.create_namespace:
            wanted.append(("namespace", agent.namespace))
        for setting, name in wanted:
            if not self._has(api.CORE_API, api.NAMESPACE_KIND, name):
                key = f"{self.prefix}launch.agent.{setting}: {name}"
                yield f"{key} is a namespace that the cluster lacks; make it with `kubectl create namespace {name}`"

    def _missing_priority_class(self, setting: str, name: str) -> Iterator[str]:
        if name and not self._has(api.SCHEDULING_API, api.PRIORITY_CLASS_KIND, name):
            key = f"{self.prefix}{setting} is {shown(name)}"
            yield f"{key}, a PriorityClass that the cluster lacks; accepted: one that exists"

    def foreign_runtime(self) -> Iterator[str]:
        name, namespace = runtime_name(self.settings), self.settings.namespace
        found = live_objects.find(self.kubeconfig, api.TRAINER_API, api.RUNTIME_KIND, name)
        if found is None:
            yield (
                f"{self.prefix}runtime.name is {shown(name)}, a {api.RUNTIME_KIND} that the cluster lacks; accepted: "
                "one that exists, or runtime.create true"
            )
            return
        # The runtime belongs to the whole cluster, its scripts to one namespace: pods in another would wait for them.
        for config_map in _config_maps(found):
            if not self._has(api.CORE_API, api.CONFIG_MAP_KIND, config_map, namespace):
                yield (
                    f"{self.prefix}namespace is {shown(namespace)}, which lacks the ConfigMap {config_map} that "
                    f"runtime {name} mounts; accepted: the namespace of the stack that made the runtime"
                )

    def _has(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> bool:
        return live_objects.find(self.kubeconfig, api_version, kind, name, namespace) is not None

    def _knows(self, api_version: str) -> bool:
        return live_objects.get(self.kubeconfig, f"/apis/{api_version}") is not None


def _declares(schema: Mapping[str, Any], path: str) -> bool:
    for part in path.split("."):
        schema = schema.get("properties", {}).get(part)
        if schema is None:
            return False
    return True


def _config_maps(runtime: Mapping[str, Any]) -> Iterator[str]:
    for job in runtime["spec"]["template"]["spec"].get("replicatedJobs", []):
        for volume in job["template"]["spec"]["template"]["spec"].get("volumes", []):
            if name := volume.get("configMap", {}).get("name"):
                yield name
