"""Trains a small network on CIFAR-10, alone or as one of the workers that TF_CONFIG names.

All workers print the same loss after each epoch; worker 0 prints the result as one line of JSON at the end. Exit codes:
0 done, 2 bad input, 143 after SIGTERM, 1 for anything else. The settings are in train_settings.
"""

import json
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from env_settings import EXIT_BAD_INPUT, EXIT_SIGTERM, InputError
from stop_signal import StopSignal
from train_settings import Settings

if TYPE_CHECKING:
    from cifar10 import Images, Labels
    from train_engine import Engine, Totals

LINGER = 1.0
"""Seconds between the last collective and the end: a worker that leaves while its peers still fetch their part of it
makes them fail (https://github.com/tensorflow/tensorflow/issues/58434)."""
BALLOT_EVERY = 1.0
"""Seconds of training between two ballots about stopping."""


def main() -> int:
    """Run the training; returns the exit code."""
    stop = StopSignal()  # before numpy is loaded
    from cifar10 import load_cifar10_local

    try:
        settings = Settings.from_environment()
        (images, labels), (test_images, test_labels) = load_cifar10_local(settings.data_dir)
        from train_engine import Engine, make_strategy  # TensorFlow takes seconds to load: only once the input is good

        engine = Engine(make_strategy(), settings)
    except InputError as error:
        print(f"train: {error}", file=sys.stderr, flush=True)
        return EXIT_BAD_INPUT
    started = time.monotonic()
    totals = train(engine, settings, images, labels, stop)
    if totals is None:
        time.sleep(LINGER)
        return EXIT_SIGTERM
    seconds = time.monotonic() - started
    test = evaluate(engine, test_images, test_labels)
    say(f"test loss {test.loss:.6f}, test accuracy {test.accuracy:.4f}")
    if engine.worker == 0:
        summary = {
            "workers": engine.workers,
            "epochs": settings.epochs,
            "steps": settings.epochs * engine.schedule(len(images), shuffled=True).steps_per_epoch,
            "loss": round(totals.loss, 6),
            "accuracy": round(totals.accuracy, 4),
            "test_loss": round(test.loss, 6),
            "test_accuracy": round(test.accuracy, 4),
            "images_per_second": round(settings.epochs * len(images) / seconds, 1),
            "seconds": round(seconds, 1),
        }
        print(json.dumps(summary), flush=True)
    time.sleep(LINGER)
    return 0


def train(
    engine: "Engine", settings: Settings, images: "Images", labels: "Labels", stop: StopSignal
) -> "Totals | None":
    """All epochs; the last one's totals, or None when the workers have agreed to stop before."""
    schedule = engine.schedule(len(images), shuffled=True)
    total = settings.epochs * schedule.steps_per_epoch
    say(f"worker {engine.worker} of {engine.workers}: {len(images)} examples, {total} steps of {schedule.global_batch}")
    batches = engine.batches(images, labels, schedule, range(total))
    ballot = StopBallot(engine, stop)
    progress = Progress(total)
    totals = None
    for step in range(1, total + 1):
        engine.train(next(batches))
        if step % schedule.steps_per_epoch == 0:
            totals = engine.totals()
            epoch = f"epoch {step // schedule.steps_per_epoch}/{settings.epochs}"
            say(
                f"{epoch}: loss {totals.loss:.6f}, accuracy {totals.accuracy:.4f}, {progress.report(step, len(images))}"
            )
        if step < total and ballot.stop_after(step):
            say(f"stopped by SIGTERM after step {step} of {total}")
            return None
    return totals


def evaluate(engine: "Engine", images: "Images", labels: "Labels") -> "Totals":
    """The totals over the test examples, each worker taking its share."""
    schedule = engine.schedule(len(images), shuffled=False)
    batches = engine.batches(images, labels, schedule, range(schedule.steps_per_epoch))
    for _ in range(schedule.steps_per_epoch):
        engine.test(next(batches))
    return engine.totals()


class StopBallot:
    """Lets all workers stop after the same step, though SIGTERM may have reached only one of them, or reach them apart.

    From time to time they add up who wants to stop. They also add up how long it took since the last time, and choose
    the next time from the sum: so all choose the same step, and a ballot costs next to nothing however short the steps.
    """

    def __init__(self, engine: "Engine", stop: StopSignal) -> None:
        stop.defer()
        self._engine = engine
        self._stop = stop
        self._last_step = 0
        self._last_time = time.monotonic()
        self._next_step = 1

    def stop_after(self, step: int) -> bool:
        """Whether all workers stop after this step; each asks after every step."""
        if step < self._next_step:
            return False
        now = time.monotonic()
        wanting, seconds = self._engine.mean_over_workers(float(self._stop.requested), now - self._last_time)
        pace = BALLOT_EVERY / max(seconds, 1e-6) * (step - self._last_step)
        self._last_step, self._last_time, self._next_step = step, now, step + max(1, int(pace))
        return wanting > 0


class Progress:
    """Speed since the last report, and the time left."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._started = self._last_time = time.monotonic()

    def report(self, step: int, examples: int) -> str:
        """After `step` steps in all, and `examples` examples since the last report."""
        now = time.monotonic()
        speed = examples / (now - self._last_time)
        left = round((now - self._started) / step * (self._total - step))
        self._last_time = now
        return f"{speed:.0f} images/s, {timedelta(seconds=left)} left"


def say(message: str) -> None:
    """One line of log."""
    print(f"[Training] {message}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
