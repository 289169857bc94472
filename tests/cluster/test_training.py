"""The main job on a real cluster: `pulumi up` trains TensorFlow, config edits do what was asked, nothing is left."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import ApiClient

from tests.cluster.conftest import Deploy
from tests.cluster.objects import (
    JOBSET,
    SCHEDULING,
    TRAINER,
    conditions,
    kind_of,
    listed,
    log,
    named,
    pods,
    wait_until,
    worker_log,
)
from tests.cluster.test_updates import QUICK
from tests.cluster.watching import watching_pods

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

LONG = 1000  # epochs: training that no test waits for


def summary(text: str) -> dict[str, Any]:
    """The JSON line that worker 0 ends with."""
    found: dict[str, Any] = json.loads([line for line in text.splitlines() if line.startswith("{")][-1])
    return found


def losses(text: str) -> list[str]:
    """The loss of every epoch as it was logged."""
    return re.findall(r"epoch .*?loss[ =]([\d.]+)", text)


def training_pods(namespace: str) -> int:
    """How many pods have finished an epoch."""
    return sum(bool(losses(log(pod))) for pod in pods(namespace) if pod["status"]["phase"] == "Running")


def left_behind(namespace: str) -> list[str]:
    """Every object of the stack that is still in the cluster, the Trainer's own included."""
    inside = [
        *listed(TRAINER, "TrainJob", namespace),
        *listed(JOBSET, "JobSet", namespace),
        *listed(SCHEDULING, "PodGroup", namespace),
        *listed("networking.k8s.io/v1", "NetworkPolicy", namespace),
        *listed("v1", "ConfigMap", namespace),
        *listed("v1", "Service", namespace),
        *listed("v1", "Pod", namespace),
    ]
    outside = [*listed(TRAINER, "ClusterTrainingRuntime"), *listed(SCHEDULING, "Queue")]
    names = [str(item["metadata"]["name"]) for item in inside if item["metadata"]["name"] != "kube-root-ca.crt"]
    return names + [str(item["metadata"]["name"]) for item in outside if namespace in item["metadata"]["name"]]


def test_two_workers_train_as_one_gang_and_a_second_up_changes_nothing(deploy: Deploy, namespace: str) -> None:
    program = deploy(epochs=2)
    program.up()

    assert "Complete" in conditions(named(TRAINER, "TrainJob", "digits", namespace))
    group = named(SCHEDULING, "PodGroup", "digits", namespace)
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (2, f"{namespace}-queue")
    result = summary(worker_log(namespace, 0))
    assert result["workers"] == 2
    assert len(losses(worker_log(namespace, 0))) == 2
    assert losses(worker_log(namespace, 0)) == losses(worker_log(namespace, 1))
    for worker in (0, 1):
        assert "coordination" not in worker_log(namespace, worker).lower()

    assert program.up().changed == {}
    program.destroy()
    wait_until("everything is gone", lambda: left_behind(namespace) == [])


def test_more_nodes_replace_only_the_job_while_it_is_still_training(deploy: Deploy, namespace: str) -> None:
    program = deploy(epochs=LONG, awaitCompletion=False)
    with watching_pods(namespace) as gangs:
        program.up()
        wait_until("two workers train", lambda: training_pods(namespace) == 2)
        program.set("numNodes", "3")
        change = program.up()
        wait_until("three workers train", lambda: training_pods(namespace) == 3)

    assert set(change.changed) == {"TrainJob"}
    assert gangs.overlaps == []
    assert gangs.sizes == [2, 3]


def test_the_runtime_without_volcano_trains_too(deploy: Deploy, namespace: str) -> None:
    deploy(volcano={"enabled": False}).up()
    assert "Complete" in conditions(named(TRAINER, "TrainJob", "digits", namespace))
    assert listed(SCHEDULING, "PodGroup", namespace) == []
    assert {pod["spec"]["schedulerName"] for pod in pods(namespace)} == {"default-scheduler"}


def test_a_stack_can_hold_a_runtime_alone_with_infiniband(deploy: Deploy, namespace: str) -> None:
    deploy(job={"enabled": False}, infiniband={"enabled": True}).up()
    assert listed(TRAINER, "TrainJob", namespace) == []
    runtime = named(TRAINER, "ClusterTrainingRuntime", f"{namespace}-runtime")
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert job["template"]["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "hostdevice-net"}
    resources = job["template"]["spec"]["containers"][0]["resources"]
    assert resources["requests"]["nvidia.com/hostdev"] == resources["limits"]["nvidia.com/hostdev"] == "2"
    assert runtime["spec"]["template"]["spec"]["network"]["publishNotReadyAddresses"] is True


def test_destroying_a_training_job_takes_less_than_a_minute(deploy: Deploy, namespace: str) -> None:
    program = deploy(epochs=LONG, awaitCompletion=False)
    program.up()
    wait_until("two workers train", lambda: training_pods(namespace) == 2)
    start = time.monotonic()
    program.destroy()
    assert time.monotonic() - start < 60
    wait_until("everything is gone", lambda: left_behind(namespace) == [])


def test_bad_input_is_refused_with_one_line_and_nothing_is_created(deploy: Deploy, namespace: str) -> None:
    program = deploy(numNodes=0)
    output = program.failing_up().output
    assert "tftrainer:numNodes" in output
    assert "Traceback" not in output
    assert left_behind(namespace) == []


@pytest.mark.parametrize(
    ("server", "settings", "want"),
    [
        pytest.param("https://127.0.0.1:1", {}, "https://127.0.0.1:1", id="a cluster out of reach"),
        pytest.param(None, {"numNodes": 0}, "tftrainer:numNodes", id="wrong settings, and no credentials"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_one_understandable_line(
    deploy: Deploy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: str | None,
    settings: dict[str, Any],
    want: str,
) -> None:
    server = server or ApiClient().configuration.host
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: gone,"
        f" clusters: [{{name: gone, cluster: {{server: '{server}', insecure-skip-tls-verify: true}}}}],"
        " contexts: [{name: gone, context: {cluster: gone, user: gone}}], users: [{name: gone, user: {}}]}"
    )
    program = deploy(**settings)
    with monkeypatch.context() as patch:
        patch.setenv("KUBECONFIG", str(kubeconfig))
        output = program.failing_up().output
    assert want in output
    assert "Traceback" not in output


def test_a_gang_has_the_priority_of_its_class(deploy: Deploy, namespace: str) -> None:
    classes = kind_of("scheduling.k8s.io/v1", "PriorityClass")
    name = f"{namespace}-urgent"
    classes.create(body={"metadata": {"name": name}, "value": 7})
    try:
        queue = {"name": f"{namespace}-queue"}
        deploy(script=str(QUICK), volcano={"queue": queue, "priorityClass": name}).up()
        assert named(SCHEDULING, "PodGroup", "digits", namespace)["spec"]["priorityClassName"] == name
        assert {pod["spec"]["priority"] for pod in pods(namespace)} == {7}
    finally:
        classes.delete(name=name)
