"""How far a run is: in the log, in the TrainJob's status, and as event files for TensorBoard."""

import json
import time
from datetime import timedelta

import tensorflow as tf  # type: ignore[import-untyped]
from env_settings import make_folder
from train_engine import Totals
from train_input import Schedule
from train_settings import Settings
from trainjob_status import TrainJobStatus


def say(message: str) -> None:
    """One line of log."""
    print(f"[Training] {message}", flush=True)


class Progress:
    """Reports after each epoch and at the end. Every worker logs; worker 0 passes it on."""

    def __init__(self, settings: Settings, schedule: Schedule, *, worker: int, workers: int, done: int) -> None:
        """`done`: the steps that an earlier attempt of this run did."""
        self._epochs = settings.epochs
        self._schedule = schedule
        self._workers = workers
        self._total = settings.epochs * schedule.steps_per_epoch
        self._first_step = self._last_step = done
        self._started = self._last_time = time.monotonic()
        self._is_reporter = worker == 0
        self._status = TrainJobStatus(say)
        writes_events = self._is_reporter and settings.log_dir
        self._events = tf.summary.create_file_writer(make_folder("LOG_DIR")) if writes_events else None

    def epoch(self, step: int, totals: Totals) -> None:
        """An epoch is over with this step."""
        now = time.monotonic()
        epoch = step // self._schedule.steps_per_epoch
        speed = self._examples(self._last_step, step) / (now - self._last_time)
        left = (now - self._started) / (step - self._first_step) * (self._total - step)
        self._last_step, self._last_time = step, now
        say(
            f"epoch {epoch}/{self._epochs}: loss {totals.loss:.6f}, accuracy {totals.accuracy:.4f}, "
            f"{speed:.0f} images/s, {timedelta(seconds=round(left))} left"
        )
        if self._is_reporter:
            metrics = {"loss": totals.loss, "accuracy": totals.accuracy}
            self._record(epoch, metrics | {"images_per_second": speed})
            self._status.report(100 * step / self._total, left, metrics)

    def result(self, totals: Totals, test: Totals, *, seconds: float) -> None:
        """The run is over: the last epoch's totals and those of the test, and how long the training took."""
        say(f"test loss {test.loss:.6f}, test accuracy {test.accuracy:.4f}")
        if not self._is_reporter:
            return
        results = {
            "loss": round(totals.loss, 6),
            "accuracy": round(totals.accuracy, 4),
            "test_loss": round(test.loss, 6),
            "test_accuracy": round(test.accuracy, 4),
        }
        speed = self._examples(self._first_step, self._total) / seconds
        summary = {"workers": self._workers, "epochs": self._epochs, "steps": self._total, **results}
        print(json.dumps(summary | {"images_per_second": round(speed, 1), "seconds": round(seconds, 1)}), flush=True)
        self._record(self._epochs, {"test_loss": test.loss, "test_accuracy": test.accuracy})
        self._status.report(100, 0, results)
        self._status.close()

    def _examples(self, begin: int, end: int) -> int:
        """Examples in the steps after `begin`, up to `end`."""
        return self._schedule.examples_done(end) - self._schedule.examples_done(begin)

    def _record(self, epoch: int, values: dict[str, float]) -> None:
        if self._events:
            # tf.summary.scalar does the same, but needs the tensorboard package in the pod.
            scalar = tf.compat.v1.SummaryMetadata(
                plugin_data={"plugin_name": "scalars"}, data_class="DATA_CLASS_SCALAR"
            )
            with self._events.as_default(step=epoch):
                for name, value in values.items():
                    tf.summary.write(name, tf.constant(value, tf.float32), metadata=scalar)
            self._events.flush()
