"""Training survives the loss of any worker, and a job that cannot go on says why."""

import random
import signal
import time
from dataclasses import dataclass
from itertools import pairwise

import pytest
from kubernetes import client

from tests.cluster.conftest import EPOCHS, MakeJob
from tests.cluster.jobs import PATIENCE, SIZE, Job, final_loss
from tests.cluster.node import signal_worker
from tests.cluster.objects import wait_until
from tests.cluster.recording import Worker

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

EVERY = 10
"""Steps between two checkpoints, as the lab's runtime has it."""
STEPS_IN_EPOCH = 12
MAX_RESTARTS = 3
NOISE = 0.01
"""Between the final losses, around 0.01, of runs that nothing has happened to: threads add numbers in another order."""
GRACE = 30.0


def assert_nothing_is_lost(old: list[Worker], new: list[Worker]) -> None:
    """The new gang goes on with the newest checkpoint, and repeats no more than the steps since then."""
    done = max((epoch for worker in old for epoch in worker.epochs), default=0) * STEPS_IN_EPOCH
    [first_step] = {worker.first_step for worker in new}
    assert done - first_step <= EVERY
    assert old[0].first_step <= first_step


def assert_finished_as_if_undisturbed(job: Job, undisturbed: Worker) -> None:
    assert job.wait_for_end() == "Complete"
    assert [worker.exit_code for worker in job.last_gang] == [0, 0]
    assert final_loss(job.last_gang[0]) == pytest.approx(final_loss(undisturbed), abs=NOISE)
    assert job.lab.recording.overlaps(job.name) == []


@dataclass(frozen=True)
class Kill:
    """A worker that was killed, and its gang."""

    victim: str
    when: float
    gang: list[Worker]

    def story(self, successors: list[Worker]) -> str:
        """What happened, in seconds after the kill."""
        survivor = next(worker for worker in self.gang if worker.name != self.victim)
        left = (survivor.ended or 0.0) - self.when
        started = max(worker.began or 0.0 for worker in successors) - self.when
        first = next((when for when, text in successors[0].lines if "images/s" in text), None)
        trained = f"had an epoch after {first - self.when:.0f} s" if first else "had no whole epoch"
        return (
            f"{self.victim} killed {self.when - (survivor.began or 0.0):.0f} s after its start, in epoch "
            f"{max((epoch for worker in self.gang for epoch in worker.epochs), default=0) + 1}; "
            f"the other left after {left:.0f} s with {survivor.exit_code}; the next gang ran after {started:.0f} s, "
            f"from step {successors[0].first_step}, and {trained}"
        )


def kill_at_random_times(job: Job, kills: int, chance: random.Random) -> list[Kill]:
    """SIGKILL a random worker of each gang at a random time, as long as the job is not over."""
    found: list[Kill] = []
    for number in range(kills):
        wait_for_gang(job, number)
        wait_for_epochs(job, chance.randrange(7))
        time.sleep(chance.uniform(0, 3))
        gang = job.gang
        if len(gang) < SIZE:
            break
        victim = chance.choice(gang)
        kill = Kill(victim.name, time.time(), gang)
        signal_worker(victim, signal.SIGKILL)
        wait_for_exit(victim)
        if victim.exit_code == 0:  # it was too late
            break
        found.append(kill)
    return found


def wait_for_gang(job: Job, number: int) -> None:
    """Until all workers of this attempt run, or there is no need for one."""

    def runs() -> bool:
        gang = job.gang
        return job.is_over or (len(gang) == SIZE and all(worker.attempt == number for worker in gang))

    wait_until(f"attempt {number} runs", runs, PATIENCE)


def wait_for_epochs(job: Job, count: int) -> None:
    """Until the gang has finished so many epochs: with 0 it is killed on its way to the first one."""
    wait_until(
        f"{count} epochs", lambda: job.is_over or all(len(worker.epochs) >= count for worker in job.gang), PATIENCE
    )


def wait_for_exit(worker: Worker) -> None:
    wait_until(f"{worker} has ended", lambda: worker.exit_code is not None, PATIENCE)


def survive_kills(make_job: MakeJob, undisturbed: Worker, kills: int) -> int:
    """One run with kills; how many there were."""
    seed = int(time.time())
    print(f"random seed {seed}")  # pytest shows it when the test fails
    job = make_job(EPOCHS=EPOCHS)
    job.apply()
    killed = kill_at_random_times(job, kills, random.Random(seed))  # noqa: S311
    assert_finished_as_if_undisturbed(job, undisturbed)
    assert {worker.attempt for worker in job.workers} == set(range(len(killed) + 1))
    for number, kill in enumerate(killed):
        print(kill.story(job.attempt(number + 1)))
    trained = [gang for gang in map(job.attempt, range(len(killed) + 1)) if all(worker.trained for worker in gang)]
    for old, new in pairwise(trained):
        assert_nothing_is_lost(old, new)
    job.remove()
    return len(killed)


def test_killed_workers_cost_no_more_than_a_checkpoint_interval(make_job: MakeJob, undisturbed: Worker) -> None:
    assert survive_kills(make_job, undisturbed, kills=2) > 0


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_twenty_killed_workers(make_job: MakeJob, undisturbed: Worker) -> None:
    killed = 0
    while killed < 20:
        killed += survive_kills(make_job, undisturbed, kills=MAX_RESTARTS)


def test_a_worker_that_always_fails_makes_the_job_fail_with_the_reason_in_its_log(make_job: MakeJob) -> None:
    script = """if True:
        import os, signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        if os.environ["JOB_COMPLETION_INDEX"] == "1":
            sys.exit("no disk left")
        time.sleep(99)
    """
    job = make_job(command=["python3", "-c", script])
    job.apply()
    assert job.wait_for_end() == "Failed"
    assert {worker.attempt for worker in job.workers} == set(range(MAX_RESTARTS + 1))
    assert "no disk left" in job.attempt(MAX_RESTARTS)[1].log
    # And whoever comes later can still read it.
    failed = next(pod for pod in job.pods if pod["status"]["phase"] == "Failed")
    assert failed["metadata"]["uid"] in {worker.uid for worker in job.attempt(MAX_RESTARTS)}


def test_bad_input_fails_the_job_at_once_without_a_restart(make_job: MakeJob) -> None:
    job = make_job(EPOCHS="many")
    job.apply()
    assert job.wait_for_end() == "Failed"
    assert {worker.attempt for worker in job.workers} == {0}
    assert 2 in {worker.exit_code for worker in job.workers}
    assert "EPOCHS='many': expected a whole number" in job.workers[0].log


def test_an_evicted_gang_saves_and_goes_on_with_the_next_step(make_job: MakeJob, undisturbed: Worker) -> None:
    job = make_job(EPOCHS=EPOCHS)
    job.apply()
    job.wait_for_training(epoch=5)
    old = job.gang
    evicted = job.running[0]["metadata"]
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name=evicted["name"], namespace=evicted["namespace"]))
    client.CoreV1Api().create_namespaced_pod_eviction(evicted["name"], evicted["namespace"], eviction)
    began = time.time()
    wait_until("the gang has left", lambda: all(worker.ended for worker in old), GRACE)
    assert [worker.exit_code for worker in old] == [143, 143]
    assert max(worker.ended or 0 for worker in old) - began < GRACE

    assert_finished_as_if_undisturbed(job, undisturbed)
    assert f"stopped by SIGTERM after step {job.attempt(1)[0].first_step} " in old[0].log


# Frozen, a worker leaves only when its grace period is over, and the other one has to leave without it.
@pytest.mark.parametrize(
    "frozen",
    [
        pytest.param(False, id="all workers react"),
        pytest.param(True, id="a worker hangs for its whole grace period", marks=pytest.mark.soak),
    ],
)
def test_a_job_that_is_suspended_for_two_seconds_goes_on(make_job: MakeJob, undisturbed: Worker, frozen: bool) -> None:
    job = make_job(EPOCHS=EPOCHS)
    job.apply()
    job.wait_for_training(epoch=5)
    old = job.gang
    if frozen:
        signal_worker(old[1], signal.SIGSTOP)
    job.suspend(True)
    time.sleep(2)
    wait_until("the pods are to go", lambda: not job.running, GRACE)
    job.suspend(False)
    assert_finished_as_if_undisturbed(job, undisturbed)
    assert [worker.exit_code for worker in old] == [143, 137 if frozen else 143]
    assert_nothing_is_lost(old, job.workers[SIZE:])


def test_a_suspended_job_waits_without_pods(make_job: MakeJob) -> None:
    job = make_job(EPOCHS=EPOCHS)
    job.apply()
    job.wait_for_training()
    job.suspend(True)
    wait_until("the pods are gone", lambda: not job.pods, GRACE)
    assert {worker.exit_code for worker in job.workers} == {143}
    assert "Suspended" in job.conditions
    assert "Complete" not in job.conditions
    assert job.saved > 0
