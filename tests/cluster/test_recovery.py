"""Training survives the loss of any worker, and a job that cannot go on says why."""

import random
import signal
import time
from dataclasses import dataclass

import pytest

from tests.cluster.conftest import EPOCHS, NODE, MakeJob
from tests.cluster.figures import EVERY, Gang, assert_finished_as_if_undisturbed, figure, repeated_steps
from tests.cluster.jobs import PATIENCE, SIZE, Job
from tests.cluster.node import drained, signal_worker
from tests.cluster.objects import wait_until
from tests.cluster.recording import Worker

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

MAX_RESTARTS = 3
GRACE = 30.0


def assert_went_on_with_the_next_step(old: list[Worker], new: list[Worker]) -> None:
    """Nothing was done twice, and nothing left out."""
    assert [worker.exit_code for worker in old] == [143, 143]
    assert {worker.last_step for worker in old} == {Gang(new).first_step}


@dataclass(frozen=True)
class Kill:
    """A worker that was killed, and its gang."""

    victim: str
    when: float
    gang: list[Worker]

    def report(self, successors: list[Worker]) -> None:
        """What happened, in seconds after the kill."""
        survivor = next(worker for worker in self.gang if worker.name != self.victim)
        figure(
            "SIGKILL",
            victim=self.victim,
            after_step=Gang(self.gang).last_step,
            other_left_after=round((survivor.ended or 0.0) - self.when),
            other_exit_code=survivor.exit_code,
            next_gang_ran_after=round(max(worker.began or 0.0 for worker in successors) - self.when),
            from_step=Gang(successors).first_step,
        )


def kill_at_random_times(job: Job, kills: int, chance: random.Random) -> list[Kill]:
    """SIGKILL workers in random order, the chief among them, at random times, as long as the job is not over."""
    found: list[Kill] = []
    order = chance.sample(range(SIZE), SIZE)
    for number in range(kills):
        wait_for_gang(job, number)
        wait_for_epochs(job, chance.randrange(7))
        time.sleep(chance.uniform(0, 3))
        gang = job.gang
        if len(gang) < SIZE:
            break
        victim = gang[order[number % SIZE]]
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
    assert job.restarts == (len(killed), len(killed))
    for number, kill in enumerate(killed):
        kill.report(job.attempt(number + 1))
    repeated = repeated_steps([Gang(job.attempt(number)) for number in range(len(killed) + 1)])
    figure("SIGKILL", kills=len(killed), repeated_steps=repeated)
    assert max(repeated, default=0) <= EVERY
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
    assert "EPOCHS='many': expected a whole number" in job.last_gang[0].log


def test_an_evicted_gang_saves_and_goes_on_with_the_next_step(make_job: MakeJob, undisturbed: Worker) -> None:
    job = make_job(EPOCHS=EPOCHS)
    job.apply()
    job.wait_for_training(epoch=5)
    old = job.gang
    began = time.time()
    job.evict(0)
    wait_until("the gang has left", lambda: all(worker.ended for worker in old), GRACE)
    figure("eviction", left_after=[round((worker.ended or 0.0) - began) for worker in old])

    assert_finished_as_if_undisturbed(job, undisturbed)
    assert_went_on_with_the_next_step(old, job.attempt(1))
    assert job.restarts == (1, 0), "the eviction counts towards maxRestarts"


@pytest.mark.soak
def test_a_gang_is_evicted_more_often_than_it_may_fail(make_job: MakeJob, undisturbed: Worker) -> None:
    evictions = MAX_RESTARTS + 1
    job = make_job(EPOCHS=EPOCHS)
    job.apply()
    for number in range(evictions):
        wait_for_gang(job, number)
        job.wait_for_training()
        job.evict(number % SIZE)
    assert_finished_as_if_undisturbed(job, undisturbed)
    assert job.restarts == (evictions, 0)
    for number in range(evictions):
        assert_went_on_with_the_next_step(job.attempt(number), job.attempt(number + 1))


def test_a_drained_gang_is_not_complete_and_goes_on_where_it_finds_a_node(
    make_job: MakeJob, undisturbed: Worker
) -> None:
    job = make_job(EPOCHS=EPOCHS)
    job.apply()
    job.wait_for_training(epoch=5)
    old = job.gang
    began = time.time()
    with drained(NODE, job.name):
        wait_until("the gang has left", lambda: all(worker.ended for worker in old), GRACE)
        figure("drain", left_after=[round((worker.ended or 0.0) - began) for worker in old])
        wait_until("the next gang waits for a node", lambda: len(job.attempt(1)) == SIZE, PATIENCE)
        assert job.running == []
        assert not job.is_over
    assert_finished_as_if_undisturbed(job, undisturbed)
    assert_went_on_with_the_next_step(old, job.attempt(1))
    assert job.restarts == (1, 0), "the drain counts towards maxRestarts"


@pytest.mark.parametrize(
    ("reacts", "exit_code"),
    [
        pytest.param(True, 143, id="a worker leaves only after the job was resumed"),
        pytest.param(False, 137, id="a worker hangs for its whole grace period", marks=pytest.mark.soak),
    ],
)
def test_a_job_that_is_suspended_for_two_seconds_goes_on(
    make_job: MakeJob, undisturbed: Worker, reacts: bool, exit_code: int
) -> None:
    job = make_job(EPOCHS=EPOCHS)
    job.apply()
    job.wait_for_training(epoch=5)
    old = job.gang
    signal_worker(old[1], signal.SIGSTOP)
    began = time.time()
    job.suspend(True)
    time.sleep(2)
    wait_until("the pods are to go", lambda: not job.running, GRACE)
    job.suspend(False)
    figure("suspend", resumed_after=round(time.time() - began, 1), reacts=reacts)
    time.sleep(2)
    assert old[1].ended is None, "the worker left too early to be in the next gang's way"
    if reacts:
        signal_worker(old[1], signal.SIGCONT)
    assert_finished_as_if_undisturbed(job, undisturbed)
    assert [worker.exit_code for worker in old] == [143, exit_code]
    assert max(repeated_steps([Gang(old), Gang(job.workers[SIZE:])])) <= EVERY


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
