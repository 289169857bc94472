"""The official launch-agent chart with the real agent on the embedded cluster: one run, from the queue to Completed.

    python -m tests.launch.chart_check CHART

CHART is a folder with W&B's chart (https://github.com/wandb/helm-charts, charts/launch-agent), which no test can fetch.
The program deploys queue and agent from the stack config of examples/wandb-launch. Only W&B's server is a fake.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubernetes import config

from components.launch_agent import RELEASE
from tests.cluster.objects import listed, log, pods, wait_until
from tests.cluster.program import Program
from tests.launch import images
from tests.launch.agent import HOST, launch, run_of
from tests.launch.fake_wandb import KEY, FakeWandb
from tests.launch.program import the_example
from tests.launch.volcano import FINAL, Job

NAMESPACE = "launch-chart-check"


@contextmanager
def deployed(chart: Path, server: FakeWandb, folder: Path) -> Iterator[None]:
    agent = {"namespace": NAMESPACE, "chart": str(chart), "image": images.AGENT_IMAGE, "cpu": "100m"}
    program = Program(folder, the_example(server, NAMESPACE, agent | {"env": {"WANDB_DEBUG": "false"}}))
    program.set_secret("wandb:apiKey", KEY)
    try:
        program.up()
        yield
    finally:
        program.destroy()


def check(chart: Path) -> None:
    """Raises AssertionError when a step does not happen."""
    config.load_kube_config(os.environ.get("KUBECONFIG"))
    images.ensure()
    with tempfile.TemporaryDirectory() as scratch, FakeWandb(HOST) as server:
        with deployed(chart, server, Path(scratch)):
            print("deployed: queue, namespace, key, chart")
            wait_until("the agent polls", lambda: bool(server.agents))
            print(f"the agent polls: {next(iter(server.agents.values()))['name']}")
            item = launch(server, Path(scratch))
            job = Job(NAMESPACE, f"wandb-job-{run_of(server, item)}")
            ranks = sorted(job.wait_for_ranks(2).values())
            assert job.wait_for(*FINAL) == "Completed", job.phase
            print(f"{job.name}: {job.phase}, ranks {ranks}, losses {job.losses}")
            wait_until("the run is finished in W&B", lambda: server.runs[run_of(server, item)]["state"] == "finished")
            agent = next(
                pod for pod in pods(NAMESPACE) if pod["metadata"]["name"].startswith(f"launch-agent-{RELEASE}")
            )
            assert KEY not in log(agent)
            print("the run is finished in W&B; the agent's log does not hold the key")
        wait_until(
            "nothing is left", lambda: NAMESPACE not in [n["metadata"]["name"] for n in listed("v1", "Namespace")]
        )
        assert server.queues == {}
        print("destroyed: nothing is left")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chart", type=Path)
    chart = parser.parse_args().chart.resolve()
    if not (chart / "Chart.yaml").exists():
        parser.error(f"{chart} is no chart: it has no Chart.yaml")
    check(chart)
