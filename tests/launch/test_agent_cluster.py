"""From `wandb launch` to Completed: the real client, agent, API server and Volcano; only W&B's server is a fake."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from components.launch_queue import LaunchQueueProvider, queue_properties
from components.launch_template import workers_variable
from tests.cluster.objects import wait_until
from tests.cluster.program import Program
from tests.launch.agent import HOST, Agent, launch, run_of, wait_for_state
from tests.launch.builders import a_hardened_template
from tests.launch.fake_wandb import ENTITY, KEY, FakeWandb
from tests.launch.program import the_example
from tests.launch.test_launch_queue import a_provider
from tests.launch.volcano import FINAL, Job

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

SLOW = {"STEP_SECONDS": "0.5", "EPOCHS": "50"}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWandb]:
    monkeypatch.setenv("HOME", str(tmp_path))
    with FakeWandb(HOST) as fake:
        yield fake


def make_queue(server: FakeWandb, namespace: str, **settings: object) -> None:
    provider: LaunchQueueProvider = a_provider()
    template = a_hardened_template(replicas="{{workers}}", namespace=namespace, **settings)
    provider.create(
        queue_properties(
            {
                "queue_name": "ddp",
                "entity": ENTITY,
                "base_url": server.url,
                "template": template,
                "variables": workers_variable(1, 3),
            }
        )
    )


def job_of(server: FakeWandb, namespace: str, item: str) -> Job:
    return Job(namespace, f"wandb-job-{run_of(server, item)}")


def test_a_run_goes_from_the_queue_to_completed(server: FakeWandb, namespace: str, tmp_path: Path) -> None:
    make_queue(server, namespace)
    Agent(namespace, server)
    item = launch(server, tmp_path)
    job = job_of(server, namespace, item)
    assert job.wait_for(*FINAL) == "Completed"
    run = run_of(server, item)
    assert server.runs[run]["state"] == "finished"
    assert server.runs[run]["group"] == run
    assert server.runs[run]["files"]["wandb-history.jsonl"]
    assert server.items[item]["messages"] == []
    stray = [name for name in server.runs if name != run and not name.startswith("agent-")]
    assert stray == []


def test_runs_can_be_launched_on_the_queue_of_the_example_stack(
    server: FakeWandb, namespace: str, tmp_path: Path
) -> None:
    program = Program(tmp_path / "stack", the_example(server, namespace, agent={"enabled": False}))
    program.set_secret("wandb:apiKey", KEY)
    program.up()
    try:
        Agent(namespace, server)
        job = job_of(server, namespace, launch(server, tmp_path, "--set-var", "workers=2"))
        assert {world for _, world, _ in job.wait_for_ranks(3).values()} == {3}
        assert job.wait_for(*FINAL) == "Completed"
        assert program.up().changed == {}
    finally:
        program.destroy()
    assert server.queues == {}


def test_the_world_follows_the_replicas(server: FakeWandb, namespace: str, tmp_path: Path) -> None:
    make_queue(server, namespace, env={"STEP_SECONDS": "0.1"})
    Agent(namespace, server)
    three = tmp_path / "three-workers.json"
    template = a_hardened_template(replicas=3, namespace=namespace, env={"STEP_SECONDS": "0.1"})
    three.write_text(json.dumps({"kubernetes": template}))

    def check(item: str, workers: int) -> None:
        job = job_of(server, namespace, item)
        assert {rank[1] for rank in job.wait_for_ranks(workers + 1).values()} == {workers + 1}
        assert job.wait_for(*FINAL) == "Completed"

    with ThreadPoolExecutor() as pool:
        checks = [
            pool.submit(check, launch(server, tmp_path, *options), workers)
            for options, workers in (
                ((), 1),
                (("--set-var", "workers=3"), 3),
                (("--set-var", "workers=1"), 1),
                (("--resource-args", str(three)), 3),
                ((), 1),
            )
        ]
        for each in checks:
            each.result()


def test_a_stopped_run_leaves_the_cluster(server: FakeWandb, namespace: str, tmp_path: Path) -> None:
    make_queue(server, namespace, env=SLOW)
    Agent(namespace, server)
    item = launch(server, tmp_path)
    job = job_of(server, namespace, item)
    wait_until("the run is in W&B", lambda: run_of(server, item) in server.runs)
    server.runs[run_of(server, item)]["stopped"] = True
    wait_until("the job is gone", lambda: job.phase == "gone")
    wait_until("its pods are gone", lambda: job.pods == {})


def test_a_run_that_finds_no_place_fails(server: FakeWandb, namespace: str, tmp_path: Path) -> None:
    make_queue(server, namespace, resources={"requests": {"cpu": "64"}})
    Agent(namespace, server, start_timeout=15)
    item = launch(server, tmp_path)
    wait_for_state(server, item, "FAILED")
    assert "Run failed to start within 15" in server.items[item]["messages"][-1]
    assert job_of(server, namespace, item).phase == "gone"


def test_a_bad_image_leaves_its_pods_waiting_and_other_runs_alone(
    server: FakeWandb, namespace: str, tmp_path: Path
) -> None:
    """The agent may take a container that is being created for running, and then its start timeout never comes."""
    make_queue(server, namespace)
    Agent(namespace, server, start_timeout=15)
    item = launch(server, tmp_path, image="localhost/tftrainer/none:1")
    bad = job_of(server, namespace, item)
    wait_until("the image can't be pulled", lambda: "ImagePullBackOff" in str(bad.pods))
    good = job_of(server, namespace, launch(server, tmp_path))
    assert good.wait_for(*FINAL) == "Completed"
    ends = {("Pending", "CLAIMED"), ("gone", "FAILED")}
    wait_until("it waits, or has failed", lambda: (bad.phase, server.items[item]["state"]) in ends)


def test_a_run_outlives_its_agent_and_the_next_one_takes_the_next_run(
    server: FakeWandb, namespace: str, tmp_path: Path
) -> None:
    make_queue(server, namespace, env={"STEP_SECONDS": "0.3", "EPOCHS": "3"})
    agent = Agent(namespace, server)
    first = job_of(server, namespace, launch(server, tmp_path))
    first.wait_for("Running")
    agent.restart(server)
    second = job_of(server, namespace, launch(server, tmp_path))
    assert [first.wait_for(*FINAL), second.wait_for(*FINAL)] == ["Completed", "Completed"]
