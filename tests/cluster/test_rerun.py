"""A job that is deleted and made anew under the same name, while the pods of the run before are still there."""

import signal

import pytest

from tests.cluster.conftest import MakeJob
from tests.cluster.figures import figure
from tests.cluster.jobs import PATIENCE, Job
from tests.cluster.node import peers, signal_worker
from tests.cluster.objects import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

PORT = 12345
LONG = 1000  # epochs: training that no test waits for
# Two ways for the old pods to be there: they leave as they should, or one of them does not react and is killed after
# its grace period.
LEAVES, HANGS = "old workers leave", "an old worker hangs"


def rerun(job: Job, old_worker: str) -> None:
    """`kubectl delete` and `kubectl apply`, with the gang in the middle of its training."""
    job.wait_for_training(epoch=3)
    before = job.gang
    old = {worker.uid for worker in before}
    if old_worker == HANGS:
        signal_worker(before[1], signal.SIGSTOP)
    job.delete()
    job.apply()
    wait_until("a new pod runs", lambda: bool({worker.uid for worker in job.gang} - old), PATIENCE)
    still_there = len({pod["metadata"]["uid"] for pod in job.pods} & old)
    figure("delete and apply", old_worker=old_worker, old_pods_when_a_new_one_ran=still_there)
    assert still_there or old_worker == LEAVES, "the old pods were gone before they could be in the way"
    wait_until("the old pods are to go", lambda: not {worker.uid for worker in job.gang} & old)
    job.wait_for_training()
    after = job.gang

    assert {worker.run for worker in after}.isdisjoint(worker.run for worker in before)
    own = {str(pod["status"]["podIP"]) for pod in job.running}
    assert [peers(worker, PORT) - own for worker in after] == [set(), set()]
    assert 0 not in [worker.exit_code for worker in before]
    for worker in after:
        assert "2 workers agreed" in worker.log
        assert worker.epochs[0] == 1


@pytest.mark.parametrize("old_worker", [LEAVES, HANGS])
def test_every_run_trains_with_its_own_pods_only(make_job: MakeJob, old_worker: str) -> None:
    job = make_job(EPOCHS=LONG, CHECKPOINT_DIR="")
    job.apply()
    rerun(job, old_worker)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_ten_runs_in_a_row_train_with_their_own_pods_only(make_job: MakeJob) -> None:
    job = make_job(EPOCHS=LONG, CHECKPOINT_DIR="")
    job.apply()
    for number in range(10):
        rerun(job, HANGS if number % 3 == 2 else LEAVES)
