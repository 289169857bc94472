"""The three operators' Helm charts: where each comes from and the values that it is installed with.

Pure functions from plain values to dicts. One version of each operator is supported, the one that the tests run.
"""

from dataclasses import dataclass, field
from typing import Any

JOBSET_VERSION = "0.12.0"
TRAINER_VERSION = "2.3.0"
VOLCANO_VERSION = "1.15.1"

VOLCANO_SCHEDULER = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware
"""
"""The chart's own configuration but for two plugins, as in Volcano's guide to network topologies.

With network-topology-aware: without it, a gang's networkTopology is ignored without a word. Without overcommit: with
it, jobs waiting in a queue that has its share keep jobs of other queues from being considered, and nodes stay idle.
https://github.com/volcano-sh/volcano/blob/v1.15.1/docs/user-guide/how_to_use_network_topology_aware_scheduling.md
"""

TRAINER_ACCOUNT = {
    "kind": "ServiceAccount",
    "name": "kubeflow-trainer-controller-manager",
    "namespace": "kubeflow-system",
}
TRAINER_ALSO_READS = {
    "apiGroups": ["scheduling.k8s.io"],
    "resources": ["priorityclasses"],
    "verbs": ["get", "list", "watch"],
}
"""What the chart's ClusterRole leaves out. Without it the Trainer's webhook waits for a PriorityClass that it may not
read until the API server gives up, and no TrainJob of a runtime with a priority can be created.
https://github.com/kubeflow/trainer/blob/v2.3.0/pkg/runtime/framework/plugins/volcano/volcano.go (Validate)
"""

PULL_POLICIES = ("Always", "IfNotPresent", "Never")


@dataclass(frozen=True)
class Chart:
    """A chart to release: `location` is an OCI reference, an archive's address or a local path."""

    release: str
    namespace: str
    location: str
    version: str
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def pinned_version(self) -> str | None:
        """The version to ask a registry for. Archives and local folders are already one version."""
        return self.version if self.location.startswith("oci://") else None


def jobset(location: str, registry: str, pull_policy: str) -> Chart:
    """JobSet. Its chart's own default is the staging image of the main branch, so the release is always named."""
    image = {
        "repository": f"{registry or 'registry.k8s.io'}/jobset/jobset",
        "tag": f"v{JOBSET_VERSION}",
        "pullPolicy": pull_policy,
    }
    return Chart("jobset", "jobset-system", location, JOBSET_VERSION, {"image": image})


def trainer(location: str, registry: str, pull_policy: str, feature_gates: dict[str, bool]) -> Chart:
    """Kubeflow Trainer, without the JobSet that its chart can bundle: JobSet is a release of its own here."""
    values: dict[str, Any] = {
        "jobset": {"install": False},
        "image": {"pullPolicy": pull_policy} | ({"registry": registry} if registry else {}),
    }
    if feature_gates:
        # The manager reads its configuration when it starts, and the chart does not start it again for a new one.
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in sorted(feature_gates.items()))
        values["manager"] = {"config": {"featureGates": feature_gates}, "podAnnotations": {"feature-gates": gates}}
    return Chart("kubeflow-trainer", "kubeflow-system", location, TRAINER_VERSION, values)


def volcano(location: str, registry: str, pull_policy: str) -> Chart:
    """Volcano: scheduler, controllers and admission webhooks."""
    basic = {"image_pull_policy": pull_policy} | ({"image_registry": registry} if registry else {})
    values = {"basic": basic, "custom": {"scheduler_config_override": VOLCANO_SCHEDULER}}
    return Chart("volcano", "volcano-system", location, VOLCANO_VERSION, values)
