"""The whole program against Pulumi's mocks: what it registers for which settings, how, and what it says at the end."""

import runpy
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import diagnosis, kubeconfig, launch, preflight
from tests.unit.recording import RecordingMonitor, Registered, Run, run

ROOT = Path(__file__).parents[2]
COMPLETE = {"TrainJob": {"conditions": [{"type": "Complete", "status": "True"}]}}
FAILED = {
    "TrainJob": {"conditions": [{"type": "Failed", "status": "True", "reason": "JobsFailed", "message": "job failed"}]}
}


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconfig, "require_reachable", lambda _: None)
    monkeypatch.setattr(preflight, "require_ready", lambda *_: None)
    monkeypatch.setattr(diagnosis, "first_failure", lambda *_: "")
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # Ctrl-C is the test runner's


def program() -> None:
    runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")


def a_run(preview: bool = False, statuses: Any = None, secret: list[str] | None = None, **config: Any) -> Run:
    return run(program, config, secret, preview, statuses)


def container(runtime: Registered) -> dict[str, Any]:
    found: dict[str, Any] = pod_template(runtime)["spec"]["containers"][0]
    return found


def pod_template(runtime: Registered) -> dict[str, Any]:
    (job,) = runtime.inputs["spec"]["template"]["spec"]["replicatedJobs"]
    found: dict[str, Any] = job["template"]["spec"]["template"]
    return found


@pytest.mark.parametrize("num_nodes", [1, 2, 4])
@pytest.mark.parametrize("volcano", [True, False], ids=["Volcano", "no Volcano"])
@pytest.mark.parametrize("infiniband", [True, False], ids=["InfiniBand", "no InfiniBand"])
def test_every_combination_of_the_main_switches(num_nodes: int, volcano: bool, infiniband: bool) -> None:
    ran = a_run(numNodes=num_nodes, volcano={"enabled": volcano}, infiniband={"enabled": infiniband})

    assert ran.kinds == {"ConfigMap", "ClusterTrainingRuntime", "NetworkPolicy", "TrainJob"} | (
        {"Queue"} if volcano else set()
    )
    job, runtime = ran.object("TrainJob"), ran.object("ClusterTrainingRuntime")
    assert job.inputs["spec"]["trainer"]["numNodes"] == num_nodes
    name = "tensorflow-distributed-volcano" if volcano else "tensorflow-distributed"
    assert runtime.inputs["metadata"]["name"] == job.inputs["spec"]["runtimeRef"]["name"] == name
    assert ("podGroupPolicy" in runtime.inputs["spec"]) is volcano
    assert pod_template(runtime)["spec"].get("schedulerName") == ("volcano" if volcano else None)
    assert ("metadata" in pod_template(runtime)) is infiniband
    assert ("resources" in container(runtime)) is infiniband


def test_a_preview_registers_the_same_as_an_update() -> None:
    preview, update = a_run(preview=True), a_run()
    assert [one.type for one in preview.registered] != []
    assert {(one.type, one.name) for one in preview.registered} == {(one.type, one.name) for one in update.registered}


def test_the_infiniband_example_is_the_whole_of_it() -> None:
    stack = yaml.safe_load((ROOT / "Pulumi.infiniband.yaml").read_text())["config"]
    ran = a_run(**{key.removeprefix("tftrainer:"): value for key, value in stack.items()})
    runtime, job = ran.object("ClusterTrainingRuntime"), ran.object("TrainJob").inputs["spec"]["trainer"]
    assert pod_template(runtime)["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "hostdevice-net"}
    assert container(runtime)["resources"] == {
        "requests": {"nvidia.com/hostdev": "2"},
        "limits": {"nvidia.com/hostdev": "2"},
    }
    assert runtime.inputs["spec"]["podGroupPolicy"]["volcano"]["networkTopology"]["mode"] == "soft"
    assert (job["numNodes"], job["resourcesPerNode"]["limits"]["nvidia.com/gpu"]) == (4, "8")
    assert {"name": "NCCL_DEBUG", "value": "WARN"} in job["env"]


def test_the_job_is_replaced_before_anything_of_its_name_exists_again() -> None:
    request = a_run().object("TrainJob").request
    assert request.deleteBeforeReplace
    assert list(request.replaceOnChanges) == ["spec.runtimeRef", "spec.trainer", "spec.activeDeadlineSeconds"]
    assert len(request.hooks.before_create) == 1


def trigger(**config: Any) -> str:
    return str(a_run(**config).object("TrainJob").request.replacement_trigger)


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"runId": "again"}, id="runId"),
        pytest.param({"script": str(ROOT / "tests/unit/builders.py")}, id="script"),
        pytest.param({"data": {"hostPath": "/other"}}, id="data"),
        pytest.param({"checkpoints": {"pvc": "c"}}, id="checkpoints"),
        pytest.param({"logs": {"pvc": "c"}}, id="logs"),
        pytest.param({"shmSize": "1Gi"}, id="shared memory"),
        pytest.param({"infiniband": {"enabled": True}}, id="InfiniBand"),
        pytest.param({"volcano": {"queue": {"name": "other"}}}, id="the queue"),
    ],
)
def test_what_a_run_depends_on_runs_the_job_again(config: dict[str, Any]) -> None:
    assert trigger(**config) != trigger()


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"tolerations": [{"key": "gpu"}]}, id="tolerations"),
        pytest.param({"affinity": {"podAntiAffinity": {}}}, id="affinity"),
        pytest.param({"imagePullPolicy": "Always"}, id="pull policy"),
        pytest.param({"volcano": {"queue": {"weight": 5}}}, id="the queue's weight"),
        pytest.param({"suspend": True}, id="suspend"),
    ],
)
def test_what_a_finished_run_would_not_notice_leaves_the_job_alone(config: dict[str, Any]) -> None:
    assert trigger(**config) == trigger()


def test_more_nodes_change_the_job_and_nothing_else() -> None:
    before, after = a_run(numNodes=2), a_run(numNodes=3)
    changed = [
        new.kind
        for old in before.registered
        for new in after.registered
        if (old.type, old.name) == (new.type, new.name) and old.inputs != new.inputs
    ]
    assert changed == ["TrainJob"]


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"env": {"EPOCHS": "3"}}, id="env"),
        pytest.param({"image": "registry/tf:2"}, id="image"),
        pytest.param({"resources": {"cpu": "4", "gpu": 1}}, id="resources"),
        pytest.param({"epochs": 3}, id="epochs"),
        pytest.param({"port": 23456}, id="port"),
        pytest.param({"args": ["--lr", "1"]}, id="args"),
        pytest.param({"suspend": True}, id="suspend"),
        pytest.param({"deadline": 60}, id="deadline"),
    ],
)
def test_what_belongs_to_a_run_leaves_the_runtime_alone(config: dict[str, Any]) -> None:
    plain, changed = a_run(), a_run(**config)
    assert changed.object("ClusterTrainingRuntime").inputs == plain.object("ClusterTrainingRuntime").inputs
    assert changed.object("TrainJob").inputs["spec"] != plain.object("TrainJob").inputs["spec"]


def test_a_runtime_alone_takes_the_jobs_settings_as_its_defaults() -> None:
    ran = a_run(
        job={"enabled": False},
        image="registry/tf:2",
        resources={"cpu": "4"},
        epochs=3,
        script=str(ROOT / "tests/unit/builders.py"),
        args=["--fast"],
    )
    assert ran.kinds == {"ConfigMap", "Queue", "ClusterTrainingRuntime"}
    trainer = container(ran.object("ClusterTrainingRuntime"))
    assert trainer["image"] == "registry/tf:2"
    assert trainer["resources"] == {"requests": {"cpu": "4"}}
    assert {"name": "EPOCHS", "value": "3"} in trainer["env"]
    assert trainer["command"][-1] == "/workspace/trainer/builders.py"
    assert trainer["args"] == ["--fast"]
    assert "workerLogs" not in ran.stack_outputs


@pytest.mark.parametrize(
    ("job", "protected"),
    [
        pytest.param({"enabled": False}, {"Queue", "ClusterTrainingRuntime"}, id="a stack for others"),
        pytest.param({}, set(), id="a stack with a job"),
    ],
)
def test_what_a_stack_holds_for_others_is_protected(job: dict[str, Any], protected: set[str]) -> None:
    objects = [one for one in a_run(job=job).registered if one.type.startswith("kubernetes:")]
    assert {one.kind for one in objects if one.request.protect} == protected


def test_a_foreign_runtime_is_used_and_not_touched() -> None:
    ran = a_run(runtime={"create": False, "name": "theirs"})
    assert ran.kinds == {"NetworkPolicy", "TrainJob"}
    trainer = ran.object("TrainJob").inputs["spec"]
    assert trainer["runtimeRef"]["name"] == "theirs"
    assert "image" not in trainer["trainer"]


def test_a_foreign_queue_is_used_and_not_touched() -> None:
    ran = a_run(volcano={"queue": {"create": False, "name": "theirs"}})
    assert "Queue" not in ran.kinds
    template = ran.object("ClusterTrainingRuntime").inputs["spec"]["template"]
    assert template["metadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": "theirs"}


def test_gpus_choose_the_gpu_image() -> None:
    assert a_run(resources={"gpu": 1}).object("TrainJob").inputs["spec"]["trainer"]["image"].endswith("-gpu")


def test_a_secret_environment_stays_secret_and_nothing_else_becomes_one() -> None:
    ran = a_run(secret=["env"], env={"WANDB_API_KEY": "hush"})
    assert "hush" in str(ran.object("TrainJob").request.object)
    assert "4dabf18193072939515e22adb298388d" in str(ran.object("TrainJob").request.object)  # Pulumi's mark of a secret
    assert "4dabf18193072939515e22adb298388d" not in str(ran.object("ClusterTrainingRuntime").request.object)


def test_secret_arguments_stay_secret() -> None:
    request = a_run(secret=["args"], args=["--token=hush"]).object("TrainJob").request.object
    assert "4dabf18193072939515e22adb298388d" in str(request["spec"]["trainer"]["args"])


def test_each_job_has_a_folder_of_its_own_for_checkpoints_and_logs_whoever_makes_the_job() -> None:
    for job in (True, False):
        ran = a_run(checkpoints={"pvc": "c", "everySteps": 5}, logs={"hostPath": "/logs"}, job={"enabled": job})
        env = container(ran.object("ClusterTrainingRuntime"))["env"]
        position = {one["name"]: index for index, one in enumerate(env)}
        assert {"name": "CHECKPOINT_DIR", "value": "/workspace/checkpoints/$(POD_NAMESPACE)/$(JOBSET_NAME)"} in env
        assert {"name": "CHECKPOINT_EVERY_STEPS", "value": "5"} in env
        assert {"name": "LOG_DIR", "value": "/workspace/logs/$(POD_NAMESPACE)/$(JOBSET_NAME)"} in env
        # What it refers to stands above it, or Kubernetes would leave the text as it is.
        assert max(position["POD_NAMESPACE"], position["JOBSET_NAME"]) < position["CHECKPOINT_DIR"]


def test_a_tensorboard_shows_the_namespaces_logs() -> None:
    ran = a_run(namespace="ml", job={"name": "digits"}, logs={"pvc": "logs"}, tensorboard={"enabled": True})
    assert {"Deployment", "Service"} <= ran.kinds
    assert ran.stack_outputs["tensorboard"] == "kubectl port-forward service/digits-tensorboard 6006:80 -n ml"
    assert {"Deployment", "Service"} & a_run(logs={"pvc": "logs"}).kinds == set()


def test_launch_is_a_part_of_the_stack_when_it_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "ready_key", lambda: "key")
    monkeypatch.setattr(launch, "deploy", lambda section, key, secret: {"launchQueue": section.queue.name})
    assert "launchQueue" not in a_run().stack_outputs
    section = {"enabled": True, "entity": "team"}
    assert a_run(launch=section).stack_outputs["launchQueue"] == "volcano-ddp"
    alone = a_run(launch=section, runtime={"create": False}, job={"enabled": False})
    assert alone.stack_outputs == {"launchQueue": "volcano-ddp"}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"launch": {"enabled": True, "entity": "team"}}, id="W&B Launch without a key"),
        pytest.param({"script": "nowhere.py"}, id="a script that is not there"),
        pytest.param({"numNodes": 0}, id="a wrong setting"),
    ],
)
def test_a_fault_is_found_before_anything_is_registered(config: dict[str, Any]) -> None:
    monitor = RecordingMonitor()
    with pytest.raises(SystemExit):
        run(program, config, monitor=monitor)
    assert [one.kind for one in monitor.registered.values()] == ["Stack"]


def test_what_costs_a_preview_time_is_imported_only_when_it_is_used() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", "import sys, components.stack; print(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"kubernetes", "wandb", "pulumi_kubernetes"} & set(printed.stdout.split()) == set()


def test_the_outputs_are_commands_ready_to_paste() -> None:
    outputs = a_run(namespace="ml", job={"name": "digits"}).stack_outputs
    assert outputs["showRuntime"] == "kubectl get clustertrainingruntime tensorflow-distributed-volcano"
    assert outputs["showJob"] == "kubectl get trainjob digits -n ml"
    assert outputs["showPods"] == "kubectl get pods -l jobset.sigs.k8s.io/jobset-name=digits -n ml"
    assert outputs["showPodGroup"] == "kubectl get podgroup digits -n ml"
    assert outputs["workerLogs"] == (
        "kubectl logs -l job-name=digits-node-0,batch.kubernetes.io/job-completion-index=0 -n ml --tail=-1 -f"
    )
    assert "showPodGroup" not in a_run(volcano={"enabled": False}).stack_outputs


def test_waiting_is_asked_for_only_of_a_job_that_runs() -> None:
    def waits(**config: Any) -> bool:
        return "pulumi.com/waitFor" in a_run(**config).object("TrainJob").inputs["metadata"]["annotations"]

    assert not waits()
    assert waits(awaitCompletion=True)
    assert not waits(awaitCompletion=True, suspend=True)


@pytest.mark.parametrize(
    ("config", "want"),
    [
        pytest.param({}, "86400", id="a day"),
        pytest.param({"deadline": 60}, "120", id="a minute longer than the deadline"),
        pytest.param({"deadline": 60, "awaitTimeout": 30}, "30", id="its own bound"),
    ],
)
def test_how_long_it_waits(config: dict[str, Any], want: str) -> None:
    job = a_run(awaitCompletion=True, **config).object("TrainJob")
    assert job.inputs["metadata"]["annotations"]["pulumi.com/timeoutSeconds"] == want


def test_a_job_that_completed_is_the_components_result() -> None:
    assert a_run(awaitCompletion=True, statuses=COMPLETE).component("TrainJob").outputs["result"] == "Complete"


def test_a_job_that_had_failed_fails_every_later_update() -> None:
    with pytest.raises(Exception, match=r"the TrainJob Failed \(JobsFailed\): job failed; change runId to retry"):
        a_run(awaitCompletion=True, statuses=FAILED)


def test_a_preview_of_a_failed_job_goes_through_so_that_it_can_be_mended() -> None:
    assert "TrainJob" in a_run(awaitCompletion=True, statuses=FAILED, preview=True).kinds


@pytest.mark.parametrize("preview", [True, False], ids=["preview", "update"])
def test_a_wrong_config_is_told_in_lines_and_nothing_is_registered(
    preview: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    registered: list[Registered] = []
    with pytest.raises(SystemExit) as stopped:
        registered = a_run(preview=preview, numNodes=0, epoch=3).registered
    assert stopped.value.code == 32
    assert registered == []
