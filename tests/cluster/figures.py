"""What a disturbance cost, as one line of JSON that `pytest -rP` shows: docs/reliability.md is written from these."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from tests.cluster.jobs import Job, final_loss
from tests.cluster.recording import Worker

EVERY = 10
"""Steps between two checkpoints, as the lab's runtime has it."""
STEPS_IN_EPOCH = 12
"""Of the digits, for two workers with 64 examples each."""
NOISE = 0.001
"""Between the final losses, around 0.01, of runs that nothing has happened to: threads add numbers in another order."""


def figure(disturbance: str, **values: Any) -> None:
    """Print one line."""
    print(json.dumps({"disturbance": disturbance, **values}))


@dataclass(frozen=True)
class Gang:
    """The workers of one attempt, and the steps that they did together."""

    workers: Sequence[Worker]

    @property
    def trained(self) -> bool:
        """Whether it came as far as to know with which step to begin."""
        return any(worker.last_step is not None or worker.first_step or worker.epochs for worker in self.workers)

    @property
    def first_step(self) -> int:
        """The step after which it began: that of its checkpoint. A worker may be killed before it can tell."""
        told = {worker.first_step for worker in self.workers if worker.first_step}
        assert len(told) <= 1, f"the workers began after different steps: {told}"
        return max(told, default=0)

    @property
    def last_step(self) -> int:
        """The last step of all workers. Whoever loses another one says it, and so does who stops; the whole gang may
        also go without a word, and then it is the last one of a finished epoch."""
        told = [worker.last_step or 0 for worker in self.workers]
        epochs = [worker.epochs[-1] for worker in self.workers if worker.epochs]
        return max(*told, STEPS_IN_EPOCH * max(epochs, default=0), self.first_step)


def repeated_steps(gangs: Sequence[Gang]) -> list[int]:
    """For each gang but the first, how many steps it did that an earlier one had done.

    -1 when the victim alone saw the end of a step and saved it. Gangs that did not come to train are left out.
    """
    trained = [gang for gang in gangs if gang.trained]
    for old, new in pairwise(trained):
        assert old.first_step <= new.first_step, "went back behind a checkpoint"
    return [old.last_step - new.first_step for old, new in pairwise(trained)]


def assert_finished_as_if_undisturbed(job: Job, undisturbed: Worker) -> None:
    assert job.wait_for_end() == "Complete"
    gang = job.last_gang
    assert [worker.exit_code for worker in gang] == [0, 0]
    loss, usual = final_loss(gang[0]), final_loss(undisturbed)
    figure("over", final_loss=loss, undisturbed_loss=usual, restarts=job.restarts[0])
    assert loss == pytest.approx(usual, abs=NOISE)
    assert job.lab.recording.overlaps(job.name) == []
