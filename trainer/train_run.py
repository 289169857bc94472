"""One training run, from the first step, or the last checkpoint, to the result."""

import time
from dataclasses import dataclass

import tensorflow as tf  # type: ignore[import-untyped]
from cifar10 import Images, Labels
from env_settings import EXIT_FAILURE, EXIT_SIGTERM
from stop_ballot import StopBallot
from stop_signal import StopSignal
from train_engine import Engine, Totals, make_strategy
from train_progress import Progress, say
from train_recovery import Recovery
from train_settings import Settings

LINGER = 1.0
"""Seconds between the last collective and the end: a worker that leaves while its peers still fetch their part of it
makes them fail (https://github.com/tensorflow/tensorflow/issues/58434)."""
LAST = 3.0
"""Seconds that a worker which has lost another one waits before it fails too: the Job's policy on exit codes has to see
the one that failed first."""
TOLD = 10.0
"""Seconds that a worker which stops for another one waits to be told itself: it is, once the Job's policy has seen the
other one's eviction, which would not count if this one were the first to fail."""

Examples = tuple[Images, Labels]


@dataclass
class Reached:
    """How far this process has come."""

    step: int | None = None
    """The last step that all workers have done; None before it is known where to begin."""

    def __str__(self) -> str:
        return "" if self.step is None else f" after step {self.step}"


def run(settings: Settings, training: Examples, test: Examples, stop: StopSignal) -> int:
    """Train, evaluate, report; returns the exit code."""
    reached = Reached()
    try:
        engine = Engine(make_strategy(), settings)
        code = _run(engine, settings, training, test, stop, reached)
    except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError) as error:
        # All see it at once when a worker dies. The reason is in the log of the one that died.
        say(f"lost another worker{reached}: {str(error).splitlines()[0]}")
        stop.wait(LAST)
        return EXIT_SIGTERM if stop.requested else EXIT_FAILURE
    time.sleep(LINGER)
    return code


def _run(
    engine: Engine, settings: Settings, training: Examples, test: Examples, stop: StopSignal, reached: Reached
) -> int:
    schedule = engine.schedule(len(training[0]), shuffled=True)
    total = settings.epochs * schedule.steps_per_epoch
    say(
        f"worker {engine.worker} of {engine.workers}: {schedule.examples} examples, {settings.epochs} epochs, "
        f"{total} steps of {schedule.global_batch}"
    )
    recovery = Recovery(engine, settings, schedule)
    done = reached.step = recovery.resume()
    started = time.monotonic()
    progress = Progress(settings, schedule, worker=engine.worker, workers=engine.workers, done=done)
    ballot = StopBallot(engine, stop, first_step=done + 1)
    batches = engine.batches(*training, schedule, range(done, total))
    for step in range(done + 1, total + 1):
        engine.train(batches)
        reached.step = step
        if step % schedule.steps_per_epoch == 0:
            progress.epoch(step, engine.totals())
        stopping = step < total and ballot.stop_after(step)
        recovery.save_after(step, at_once=stopping or step == total)
        if stopping:
            say(f"stopped by SIGTERM after step {step} of {total}")
            engine.barrier()  # nobody leaves before worker 0 has saved
            stop.wait(TOLD)
            return EXIT_SIGTERM
    recovery.finish()
    seconds, totals = time.monotonic() - started, engine.last_totals
    progress.result(totals, _evaluate(engine, *test), seconds=seconds)
    engine.barrier()  # nobody leaves before worker 0 has reported: it would take that for a crash
    return 0


def _evaluate(engine: Engine, images: Images, labels: Labels) -> Totals:
    """The totals over the test examples, each worker taking its share."""
    schedule = engine.schedule(len(images), shuffled=False)
    steps = range(schedule.steps_per_epoch)
    batches = engine.batches(images, labels, schedule, steps)
    for _ in steps:
        engine.test(batches)
    return engine.totals()
