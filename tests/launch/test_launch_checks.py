"""What a queue's template may hold, and the line that tells what it may not."""

from typing import Any

import pytest

from components.launch_checks import template_faults
from components.launch_template import workers_variable
from components.volcano_checks import EVENTS
from tests.launch.builders import REMOVED, a_hardened_template, a_plain_job, a_template

WORKER_REPLICAS = "spec.tasks.1.replicas"
CONTAINER = "spec.tasks.0.template.spec.containers.0"
POD = "spec.tasks.0.template.spec"


NOT_WITH_AGENT = "accepted: templates without it, for the agent refuses it"
ARGUMENTS = "a list of its arguments"
POLICIES = "accepted: a list of objects with event and action"
A_NUMBER = 'accepted: a whole number of at least 0, or "{{name}}" for an integer variable'


def integer(**schema: Any) -> dict[str, Any]:
    return {"schema": {"type": "integer", **schema}}


@pytest.mark.parametrize(
    ("template", "variables"),
    [
        pytest.param(a_template(), {}, id="the tutorial's template"),
        pytest.param(a_hardened_template(), {}, id="the hardened template"),
        pytest.param(a_hardened_template(replicas="{{workers}}"), workers_variable(1, 8), id="workers by variable"),
        pytest.param(a_plain_job(), {}, id="a plain Kubernetes Job"),
        pytest.param({"spec": {"template": {}}}, {}, id="a Job without apiVersion, which the agent fills in"),
        pytest.param(
            {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "j-${run_id}"}, "spec": {}},
            {},
            id="any other custom resource",
        ),
        pytest.param(
            a_template((f"{CONTAINER}.command", ["sh", "-c", "echo $HOME $(RANK)"])), {}, id="shell variables"
        ),
        pytest.param(a_template((f"{POD}.automountServiceAccountToken", False)), {}, id="a token switched off"),
        pytest.param(a_template(("spec.tasks", a_template()["spec"]["tasks"][:1])), {}, id="a master without workers"),
        pytest.param(a_template((WORKER_REPLICAS, 0)), {}, id="no worker"),
    ],
)
def test_is_accepted(template: dict[str, Any], variables: dict[str, Any]) -> None:
    assert list(template_faults(template, variables)) == []


@pytest.mark.parametrize(
    ("template", "want"),
    [
        pytest.param(
            a_template((f"{CONTAINER}.image", "${AWS_SECRET_ACCESS_KEY}")),
            "spec.tasks[0].template.spec.containers[0].image contains ${AWS_SECRET_ACCESS_KEY}, "
            "which the agent's own environment would fill in; accepted: ${image_uri}, ${run_id}, "
            "${run_name}, ${entity_name}, ${project_name}, ${author}",
            id="a macro that would read the agent's environment",
        ),
        *(
            pytest.param(
                a_template((f"{POD}.{field}", value)),
                f"spec.tasks[0].template.spec.{field} is set; {NOT_WITH_AGENT}",
                id=f"{field}, which the agent refuses",
            )
            for field, value in (
                ("securityContext", {}),
                ("serviceAccountName", "trainer"),
                ("automountServiceAccountToken", True),
                ("hostNetwork", True),
                ("hostPID", "true"),
                ("hostIPC", 1),
                ("shareProcessNamespace", True),
            )
        ),
        pytest.param(
            a_template((f"{POD}.volumes", [{"name": "data", "hostPath": {"path": "/data"}}])),
            f"spec.tasks[0].template.spec.volumes[0].hostPath is set; {NOT_WITH_AGENT}",
            id="a hostPath",
        ),
        pytest.param(
            a_template((f"{CONTAINER}.ports", [{"containerPort": 80, "hostPort": 80}])),
            f"spec.tasks[0].template.spec.containers[0].ports[0].hostPort is set; {NOT_WITH_AGENT}",
            id="a host's port",
        ),
        pytest.param(
            a_template(("metadata.name", "wandb-job")),
            'metadata.name is "wandb-job"; accepted: a name with "${run_id}", for each run needs its own',
            id="a name that every run would share",
        ),
        pytest.param(
            a_template(("metadata.name", REMOVED)),
            'metadata.name is missing; accepted: a name with "${run_id}"',
            id="no name",
        ),
        pytest.param(
            a_template(("kind", REMOVED)),
            "kind is null; accepted: the kind of batch.volcano.sh/v1alpha1, such as Job",
            id="no kind",
        ),
        pytest.param(
            a_template(("apiVersion", "volcano")),
            'apiVersion is "volcano"; accepted: group/version, such as batch/v1 or batch.volcano.sh/v1alpha1',
            id="no API group",
        ),
        pytest.param(a_template(("spec", [])), "spec is []; accepted: an object", id="a spec that is none"),
        pytest.param(
            a_template(("spec.tasks", [])), "spec.tasks is []; accepted: a list of at least one task", id="no task"
        ),
        pytest.param(
            a_template((WORKER_REPLICAS, "${run_id}")),
            'spec.tasks[1].replicas is "${run_id}"; ' + A_NUMBER,
            id="replicas by macro, which makes a text",
        ),
        pytest.param(
            a_template((WORKER_REPLICAS, -1)),
            "spec.tasks[1].replicas is -1; " + A_NUMBER,
            id="replicas below 0",
        ),
        pytest.param(
            a_template(("spec.tasks.0.replicas", 2)),
            "spec.tasks[0].replicas is 2; accepted: 1, for all its pods are rank 0",
            id="two masters",
        ),
        pytest.param(
            a_template(("spec.tasks", a_template()["spec"]["tasks"][::-1])),
            'spec.tasks[0].name is "worker"; accepted: the pytorch plugin\'s master, master',
            id="the master not first",
        ),
        pytest.param(
            a_template(("spec.tasks.0.name", "chief")),
            'spec.plugins.pytorch has master "master"; accepted: the name of a task (chief, worker)',
            id="a plugin's task that is none",
        ),
        *(
            pytest.param(a_template((path, value)), want, id=f"{path} of another shape: {value}")
            for path, value, want in (
                ("spec.plugins", ["pytorch"], 'spec.plugins is ["pytorch"]; accepted: plugins, each with ' + ARGUMENTS),
                ("spec.plugins.svc", True, "spec.plugins.svc is true; accepted: " + ARGUMENTS),
                ("spec.policies", {"event": "*"}, 'spec.policies is {"event": "*"}; ' + POLICIES),
                ("spec.policies", ["*"], 'spec.policies is ["*"]; ' + POLICIES),
                ("spec.tasks.0.policies", 5, "spec.tasks[0].policies is 5; " + POLICIES),
                (
                    "spec.policies",
                    [{"events": "PodFailed", "action": "RestartJob"}],
                    'spec.policies[0].events is "PodFailed"; accepted: a list of ' + ", ".join(EVENTS),
                ),
            )
        ),
        pytest.param(
            a_template(("spec.tasks.1.name", "master")),
            'spec.tasks[1].name is "master"; accepted: a name of its own',
            id="two tasks of one name",
        ),
        pytest.param(
            a_template(("spec.plugins.pytorch.0", "-master master")),
            'spec.plugins.pytorch has "-master master"; accepted: --master=..., --worker=..., '
            "--port=..., --wait-master-enabled=..., --wait-master-timeout=..., "
            "--wait-master-image=...",
            id="a plugin's argument that Volcano would only log",
        ),
        pytest.param(
            a_template(("spec.plugins.pytorch.2", "--port=0")),
            'spec.plugins.pytorch has port "0"; accepted: 1 to 65535',
            id="no port",
        ),
        pytest.param(
            a_template(("spec.plugins.torch", [])),
            "spec.plugins.torch is no plugin of Volcano; accepted: env, hcclrank, mpi, pytorch, ray, "
            "ssh, svc, tensorflow",
            id="an unknown plugin",
        ),
        pytest.param(
            a_template(("spec.minAvailable", 3)),
            "spec.minAvailable is 3; accepted: at most the replicas of all tasks together, 2",
            id="a gang larger than the job",
        ),
        pytest.param(
            a_template(("spec.policies", [{"event": "PodFail", "action": "RestartJob"}])),
            'spec.policies[0].event is "PodFail"; accepted: *, PodFailed, PodEvicted, PodPending, '
            "Unknown, TaskCompleted, TaskFailed, JobUpdated",
            id="an unknown event",
        ),
        pytest.param(
            a_template(("spec.tasks.0.policies.0.action", "Complete")),
            'spec.tasks[0].policies[0].action is "Complete"; accepted: AbortJob, RestartJob, '
            "RestartTask, RestartPod, RestartPartition, TerminateJob, CompleteJob, ResumeJob",
            id="an unknown action",
        ),
        pytest.param(
            a_template((f"{CONTAINER}.env", [{"name": "A", "value": "1"}, {"name": "WANDB_RESUME", "value": "allow"}])),
            "spec.tasks[0].template.spec.containers[0].env[1] sets WANDB_RESUME; accepted: any other variable, for the "
            "agent sets this one itself",
            id="a variable that the agent sets, too",
        ),
        pytest.param(
            a_plain_job(("metadata.annotations", {"container.seccomp.security.alpha.kubernetes.io/x": "unconfined"})),
            f"metadata.annotations.container.seccomp.security.alpha.kubernetes.io/x is set; {NOT_WITH_AGENT}",
            id="a plain Job without seccomp",
        ),
    ],
)
def test_is_refused_in_one_line(template: dict[str, Any], want: str) -> None:
    assert list(template_faults(template, {})) == [want]


@pytest.mark.parametrize(
    ("replicas", "variables", "want"),
    [
        pytest.param(
            "{{workers}}",
            {},
            [
                '"{{workers}}" stands in the template; accepted: a declared template variable (none)',
                'spec.tasks[1].replicas is "{{workers}}"; ' + A_NUMBER,
            ],
            id="not declared",
        ),
        pytest.param(
            1,
            {"workers": integer()},
            ['variables.workers is declared; accepted: only variables that stand in the template, as "{{workers}}"'],
            id="not used",
        ),
        pytest.param(
            "{{workers}}",
            {"workers": {"schema": {"type": "string"}}},
            ['spec.tasks[1].replicas is "{{workers}}"; ' + A_NUMBER],
            id="a text for a number",
        ),
        pytest.param(
            "{{workers}}",
            {"workers": integer(minimum=4, maximum=2)},
            ["variables.workers.minimum is 4; accepted: at most the maximum, 2"],
            id="an empty range",
        ),
        pytest.param(
            "{{workers}}",
            {"workers": integer(minimum=1, maximum=2, default=3)},
            ["variables.workers.default is 3; accepted: from the minimum to the maximum"],
            id="a default out of range",
        ),
        pytest.param(
            "{{workers}}",
            {"workers": integer(enum=[1, 3], default=2)},
            ["variables.workers.default is 2; accepted: one of [1, 3]"],
            id="a default that is no choice",
        ),
        pytest.param(
            "{{workers}}",
            {"workers": integer(default="2")},
            ['variables.workers.default is "2"; accepted: values of type integer'],
            id="a default of another type",
        ),
        pytest.param(
            "{{workers}}",
            {"workers": integer(min=1)},
            ["variables.workers.min is not a setting; accepted: type, minimum, maximum, enum, default"],
            id="an unknown key",
        ),
    ],
)
def test_a_template_variable_is_refused(replicas: Any, variables: dict[str, Any], want: list[str]) -> None:
    assert list(template_faults(a_template((WORKER_REPLICAS, replicas)), variables)) == want
