"""Install JobSet, Kubeflow Trainer and Volcano, and wait until their webhooks answer."""

import sys
from pathlib import Path

import pulumi
from charts import PULL_POLICIES, TRAINER_ACCOUNT, TRAINER_ALSO_READS, Chart, jobset, trainer, volcano
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs
from pulumi_kubernetes.rbac.v1 import ClusterRole, ClusterRoleBinding
from readiness import wait_for_webhook

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where `components` is

from components.kubeconfig import Kubeconfig

config = pulumi.Config()
registry = config.get("imageRegistry") or ""
pull_policy = config.require("imagePullPolicy")
if pull_policy not in PULL_POLICIES:
    raise pulumi.RunError(f"imagePullPolicy: {pull_policy!r}: accepted are {', '.join(PULL_POLICIES)}")
cluster = Kubeconfig.of_stack()


def answers(args: pulumi.ResourceHookArgs) -> None:
    wait_for_webhook(args.name, cluster.api_client())


webhook_answers = pulumi.ResourceHook("webhook-answers", answers)


def install(chart: Chart, after: list[pulumi.Resource]) -> Release:
    """A v3 Release, since v4 Chart runs no Helm hooks and Volcano's admission certificate comes from one."""
    return Release(
        chart.release,
        ReleaseArgs(
            name=chart.release,
            namespace=chart.namespace,
            create_namespace=True,
            chart=chart.location,
            version=chart.pinned_version,
            values=chart.values,
            timeout=300,
        ),
        opts=pulumi.ResourceOptions(
            depends_on=after,
            hooks=pulumi.ResourceHookBinding(after_create=[webhook_answers], after_update=[webhook_answers]),
        ),
    )


gates = config.get_object("trainerFeatureGates") or {}
jobset_release = install(jobset(config.require("jobsetChart"), registry, pull_policy), after=[])
volcano_release = install(volcano(config.require("volcanoChart"), registry, pull_policy), after=[])
trainer_release = install(trainer(config.require("trainerChart"), registry, pull_policy, gates), after=[jobset_release])

priorities = {"name": "kubeflow-trainer-priority-classes"}
role = ClusterRole("trainer-priority-classes", metadata=priorities, rules=[TRAINER_ALSO_READS])
ClusterRoleBinding(
    "trainer-priority-classes",
    metadata=priorities,
    role_ref={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role.metadata.name},
    subjects=[TRAINER_ACCOUNT],
)

for release in (jobset_release, volcano_release, trainer_release):
    pulumi.export(release._name, release.status.version)
