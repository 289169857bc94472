"""`kubectl get trainjob -o yaml` shows how far a run is, and how good its model."""

import subprocess
from typing import Any

import pytest
import yaml

from tests.cluster.conftest import EPOCHS, MakeJob
from tests.cluster.jobs import Job, final_loss
from tests.cluster.objects import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def reported(job: Job) -> dict[str, Any]:
    """What kubectl shows of the training; empty before the first report."""
    command = ["kubectl", "get", "trainjob", job.name, "--namespace", job.lab.namespace, "--output=yaml"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    found: dict[str, Any] = yaml.safe_load(shown)["status"].get("trainerStatus", {})
    return found


def metrics(status: dict[str, Any]) -> dict[str, float]:
    return {metric["name"]: float(metric["value"]) for metric in status["metrics"]}


def test_percent_time_left_and_metrics_of_a_run(make_job: MakeJob) -> None:
    job = make_job(EPOCHS=EPOCHS)
    job.apply()
    job.wait_for_training()
    wait_until("it has been reported", lambda: bool(reported(job)), 20)
    status = reported(job)
    assert 0 < status["progressPercentage"] < 100
    assert status["estimatedRemainingSeconds"] > 0
    assert set(metrics(status)) == {"loss", "accuracy"}

    assert job.wait_for_end() == "Complete"
    wait_until("the last report is in", lambda: reported(job)["progressPercentage"] == 100, 10)
    status = reported(job)
    assert status["estimatedRemainingSeconds"] == 0
    assert set(metrics(status)) == {"loss", "accuracy", "test_loss", "test_accuracy"}
    assert metrics(status)["loss"] == pytest.approx(final_loss(job.last_gang[0]), abs=1e-6)
