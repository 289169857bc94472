"""Every group, kind, label, annotation, environment variable and path that goes over the wire, defined once."""

from collections.abc import Mapping
from typing import Any, Final

# --- Kubeflow Trainer (https://github.com/kubeflow/trainer/blob/v2.3.0/pkg/constants/constants.go) ---
TRAINER_API: Final = "trainer.kubeflow.org/v1alpha1"
RUNTIME_KIND: Final = "ClusterTrainingRuntime"
TRAIN_JOB_KIND: Final = "TrainJob"

FRAMEWORK_LABEL: Final = "trainer.kubeflow.org/framework"
"""What the Kubeflow SDK lists runtimes by."""
FRAMEWORK: Final = "tensorflow"

ANCESTOR_LABEL: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
"""On the job template: which of the runtime's jobs the TrainJob's `trainer` section changes."""
ANCESTOR_TRAINER: Final = "trainer"

NODE: Final = "node"
"""Name of the replicated job and of its container that the Trainer scales to numNodes; no other name works."""

# --- JobSet and Job ---
JOBSET_API: Final = "jobset.x-k8s.io/v1alpha2"
JOBSET_KIND: Final = "JobSet"
JOBSET_NAME_LABEL: Final = "jobset.sigs.k8s.io/jobset-name"
JOBSET_UID_LABEL: Final = "jobset.sigs.k8s.io/jobset-uid"
RESTART_ATTEMPT_LABEL: Final = "jobset.sigs.k8s.io/restart-attempt"
JOB_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
COMPLETION_INDEX_LABEL: Final = "batch.kubernetes.io/job-completion-index"
JOB_NAME_LABEL: Final = "job-name"
DISRUPTION_CONDITION: Final = "DisruptionTarget"
"""Of a pod that the cluster takes away: by eviction, drain, preemption, or since its node is lost."""

# --- Volcano ---
VOLCANO_API: Final = "scheduling.volcano.sh/v1beta1"
QUEUE_KIND: Final = "Queue"
POD_GROUP_KIND: Final = "PodGroup"
VOLCANO_SCHEDULER: Final = "volcano"
QUEUE_ANNOTATION: Final = "scheduling.volcano.sh/queue-name"

# --- InfiniBand ---
NETWORKS_ANNOTATION: Final = "k8s.v1.cni.cncf.io/networks"
"""Read by Multus: the extra networks of a pod, comma-separated."""

# --- Kubernetes ---
CORE_API: Final = "v1"
CONFIG_MAP_KIND: Final = "ConfigMap"
POD_KIND: Final = "Pod"
EVENT_KIND: Final = "Event"
NAMESPACE_KIND: Final = "Namespace"
SECRET_KIND: Final = "Secret"  # noqa: S105  a kind
RBAC_API: Final = "rbac.authorization.k8s.io/v1"
ROLE_KIND: Final = "Role"
ROLE_BINDING_KIND: Final = "RoleBinding"
CLAIM_KIND: Final = "PersistentVolumeClaim"
SERVICE_KIND: Final = "Service"
APPS_API: Final = "apps/v1"
DEPLOYMENT_KIND: Final = "Deployment"
SCHEDULING_API: Final = "scheduling.k8s.io/v1"
PRIORITY_CLASS_KIND: Final = "PriorityClass"
NETWORKING_API: Final = "networking.k8s.io/v1"
NETWORK_POLICY_KIND: Final = "NetworkPolicy"
CPU: Final = "cpu"
MEMORY: Final = "memory"
GPU: Final = "nvidia.com/gpu"

PLURALS: Final[Mapping[str, str]] = {
    CONFIG_MAP_KIND: "configmaps",
    DEPLOYMENT_KIND: "deployments",
    NAMESPACE_KIND: "namespaces",
    SECRET_KIND: "secrets",
    ROLE_KIND: "roles",
    ROLE_BINDING_KIND: "rolebindings",
    POD_KIND: "pods",
    EVENT_KIND: "events",
    PRIORITY_CLASS_KIND: "priorityclasses",
    SERVICE_KIND: "services",
    NETWORK_POLICY_KIND: "networkpolicies",
    RUNTIME_KIND: "clustertrainingruntimes",
    TRAIN_JOB_KIND: "trainjobs",
    JOBSET_KIND: "jobsets",
    QUEUE_KIND: "queues",
    CLAIM_KIND: "persistentvolumeclaims",
    POD_GROUP_KIND: "podgroups",
}
"""Kind → its name in the API server's paths."""

# --- pulumi-kubernetes (https://www.pulumi.com/registry/packages/kubernetes/installation-configuration/) ---
FIELD_MANAGER_ANNOTATION: Final = "pulumi.com/patchFieldManager"
FORCE_ANNOTATION: Final = "pulumi.com/patchForce"
DELETION_PROPAGATION_ANNOTATION: Final = "pulumi.com/deletionPropagationPolicy"
WAIT_FOR_ANNOTATION: Final = "pulumi.com/waitFor"
TIMEOUT_ANNOTATION: Final = "pulumi.com/timeoutSeconds"

# --- This program's own ---
OWNER_ANNOTATION: Final = "tftrainer/owner"
"""Which stack made the object."""
RUN_ANNOTATION: Final = "tftrainer/run"
"""On a TrainJob: what it runs, as a fingerprint."""

# --- Environment of the training container ---
ENV_NUM_WORKERS: Final = "TF_NUM_WORKERS"
ENV_PORT: Final = "TF_WORKER_PORT"
ENV_EPOCHS: Final = "EPOCHS"
ENV_BATCH_SIZE: Final = "BATCH_SIZE"
ENV_DATA_DIR: Final = "DATA_DIR"
ENV_CHECKPOINT_DIR: Final = "CHECKPOINT_DIR"
ENV_CHECKPOINT_EVERY_STEPS: Final = "CHECKPOINT_EVERY_STEPS"
ENV_LOG_DIR: Final = "LOG_DIR"
ENV_NCCL_DEBUG: Final = "NCCL_DEBUG"
ENV_TF_CONFIG: Final = "TF_CONFIG"

POD_FIELDS: Final[Mapping[str, str]] = {
    "POD_NAMESPACE": "metadata.namespace",
    "POD_IP": "status.podIP",
    "POD_UID": "metadata.uid",
    "JOBSET_NAME": f"metadata.labels['{JOBSET_NAME_LABEL}']",
    "JOBSET_UID": f"metadata.labels['{JOBSET_UID_LABEL}']",
    "JOB_UID": f"metadata.labels['{JOB_UID_LABEL}']",
    "JOBSET_RESTART_ATTEMPT": f"metadata.labels['{RESTART_ATTEMPT_LABEL}']",
}
"""Environment variable → the pod's field that fills it: by these, workers tell the pods of one run from another's."""

# --- Paths in the training container ---
SCRIPTS_DIR: Final = "/workspace/trainer"
LAUNCHER: Final = "tfrun.py"
TRAIN_SCRIPT: Final = "train.py"
DATA_DIR: Final = "/workspace/data/cifar-10-batches-py"
CHECKPOINT_DIR: Final = "/workspace/checkpoints"
LOG_DIR: Final = "/workspace/logs"
FOLDER_OF_JOB: Final = "$(POD_NAMESPACE)/$(JOBSET_NAME)"
"""Below a volume that jobs share; the kubelet fills it in
(https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/)."""

EXIT_BAD_INPUT: Final = 2
"""The trainer's exit code for input that no retry can mend."""


def drop_absent(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping without its None values; 0, False and empty values stay."""
    return {key: value for key, value in mapping.items() if value is not None}


def env_list(env: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Name and value pairs in the form a container wants, in the mapping's order."""
    return [{"name": name, "value": value} for name, value in env.items()]
