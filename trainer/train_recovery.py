"""Going on where an earlier attempt ended.

A gang that restarts goes on from its last checkpoint. So does a TrainJob that replaces one which failed, was deleted or
was scaled while it was training. One that replaces a finished run starts afresh.
"""

import os
from typing import TYPE_CHECKING

from env_settings import make_folder
from train_checkpoints import Checkpoints
from train_progress import say
from train_settings import Settings

if TYPE_CHECKING:
    from train_engine import Engine
    from train_input import Schedule


class Recovery:
    """Saves the run from time to time and resumes it, in step with all other workers."""

    def __init__(self, engine: "Engine", settings: Settings, schedule: "Schedule") -> None:
        self._engine = engine
        self._steps_per_epoch = schedule.steps_per_epoch
        self._every = settings.checkpoint_every_steps
        self._enabled = bool(settings.checkpoint_dir)
        self._files: Checkpoints | None = None
        if self._enabled and engine.worker == 0:
            self._files = Checkpoints(make_folder("CHECKPOINT_DIR"), engine.state)

    def resume(self) -> int:
        """The steps that are done already; 0 at the first start.

        After a change of the gang's size or the batch size an epoch has other steps: the last one begun starts anew.
        """
        if not self._enabled:
            return 0
        if self._files:
            # New for each TrainJob; the same after restarts of its gang, and after suspend and resume.
            run = os.environ.get("JOBSET_UID", "")
            if run and self._files.drop_finished(run):
                say("the run that left its checkpoints here has finished: starting afresh")
            for warning in self._files.restore():
                say(f"WARNING: {warning}")
        self._engine.copy_from_worker_0()
        done, steps_per_epoch = self._engine.position
        if done and steps_per_epoch != self._steps_per_epoch:
            epochs = done // steps_per_epoch
            self._engine.totals()  # forget the examples counted in the epoch that starts anew
            say(f"resuming with other batches: after epoch {epochs} in place of step {done}")
            return epochs * self._steps_per_epoch
        if done:
            say(f"resuming after step {done}")
        return done

    def finish(self) -> None:
        """The last step is done and saved."""
        if self._files and (run := os.environ.get("JOBSET_UID")):
            try:
                self._files.mark_finished(run)
            except OSError as error:  # the result is worth more than the mark
                say(f"WARNING: the end of this run is not noted: {error}")

    def save_after(self, step: int, *, at_once: bool) -> None:
        """Save when it is time to, or `at_once`; each worker calls it after every step."""
        if self._enabled and (at_once or step % self._every == 0):
            self._engine.note_position(step, self._steps_per_epoch)
            if self._files and (warning := self._files.save(step)):
                say(f"WARNING: {warning}")
