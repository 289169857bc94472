"""Checkpoints of a run, written and read by worker 0 alone: a volume that only it can reach is enough."""

from pathlib import Path
from typing import Any

import tensorflow as tf  # type: ignore[import-untyped]
from env_settings import InputError

KEEP = 3
"""Checkpoints kept, so that a broken one leaves others to go back to."""
_PREFIX = "step"
_FINISHED = "finished"
_LIST = "checkpoint"


class Checkpoints:
    """A folder of checkpoints, each named by the number of steps done."""

    def __init__(self, folder: str, state: dict[str, Any]) -> None:
        """`state` are the trackable objects to save, by name."""
        self._folder = Path(folder)
        self._checkpoint = tf.train.Checkpoint(**state)
        try:
            self._manager = self._new_manager()
        except UnicodeDecodeError:  # TensorFlow's list of the checkpoints is a file too, and may be broken
            (self._folder / _LIST).unlink()
            self._manager = self._new_manager()

    def _new_manager(self) -> Any:
        return tf.train.CheckpointManager(
            self._checkpoint, str(self._folder), max_to_keep=KEEP, checkpoint_name=_PREFIX, checkpoint_interval=None
        )

    def drop_finished(self, run: str) -> bool:
        """Remove the checkpoints of another run that has finished; whether there were any.

        What another run left unfinished stays: this run takes it up.
        """
        mark = self._folder / _FINISHED
        if not mark.exists() or mark.read_text(errors="replace") == run:
            return False
        for path in self._folder.glob(f"{_PREFIX}-*"):
            path.unlink()
        mark.unlink()  # last: an interrupted removal is finished by the next attempt
        return True

    def mark_finished(self, run: str) -> None:
        """Note that the run is over: the next one starts afresh."""
        draft = self._folder / f"{_FINISHED}.tmp"
        draft.write_text(run)
        draft.replace(self._folder / _FINISHED)

    def restore(self) -> list[str]:
        """Read the newest checkpoint that is whole; returns a warning for each one that is not.

        Raises InputError when it is whole, but not of this model.
        """
        warnings = []
        # The folder itself, not TensorFlow's list of it: the list is a file as well, and may be the broken one.
        for path in sorted(self._folder.glob(f"{_PREFIX}-*.index"), key=_step, reverse=True):
            prefix = str(path.with_suffix(""))
            if problem := _problem(prefix):
                warnings.append(f"{prefix} cannot be used, going back to the one before: {problem}")
                continue
            try:
                self._checkpoint.restore(prefix).assert_existing_objects_matched()
            except (AssertionError, ValueError) as error:
                reason = str(error).strip().splitlines()[0]
                raise InputError(
                    f"{prefix} is a checkpoint of another model ({reason}); expected an empty CHECKPOINT_DIR, or one "
                    "with checkpoints of the same training"
                ) from error
            break
        return warnings

    def save(self, step: int) -> str:
        """Write the state; returns a warning when that fails: the training is worth more than its checkpoint.

        TensorFlow writes to temporary files and renames them, the index last: half a checkpoint is never found.
        """
        try:
            self._manager.save(checkpoint_number=step)
        except (tf.errors.OpError, OSError) as error:
            return f"checkpoint of step {step} not written: {str(error).splitlines()[0]}"
        return ""


def _step(index_file: Path) -> int:
    number = index_file.stem.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _problem(prefix: str) -> str:
    """What is wrong with a checkpoint; reading all of it verifies its checksums, before any variable is touched."""
    try:
        reader = tf.train.load_checkpoint(prefix)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except Exception as error:  # whatever half a file leads to
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""
