"""One training run, from the first step, or the last checkpoint, to the result."""

import time

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


class Training:
    """One run, and all that TensorFlow makes for it.

    To be kept until the process has ended: some of TensorFlow's destructors wait, for up to 30 s, and a worker that has
    left meanwhile is taken for crashed by the others, who say so in the log of a good run.
    """

    def __init__(self, settings: Settings, training: Examples, test: Examples, stop: StopSignal) -> None:
        self._settings = settings
        self._training, self._test = training, test
        self._stop = stop
        self._step: int | None = None
        """The last step that all workers have done; None before it is known where to begin."""

    def run(self) -> int:
        """Train, evaluate, report; returns the exit code."""
        try:
            self._engine = Engine(make_strategy(), self._settings)
            code = self._train()
        except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError) as error:
            # All see it at once when a worker dies. The reason is in the log of the one that died.
            after = "" if self._step is None else f" after step {self._step}"
            say(f"lost another worker{after}: {str(error).splitlines()[0]}")
            self._stop.wait(LAST)
            return EXIT_SIGTERM if self._stop.requested else EXIT_FAILURE
        time.sleep(LINGER)
        return code

    def _train(self) -> int:
        engine, settings = self._engine, self._settings
        schedule = engine.schedule(len(self._training[0]), shuffled=True)
        total = settings.epochs * schedule.steps_per_epoch
        say(
            f"worker {engine.worker} of {engine.workers}: {schedule.examples} examples, {settings.epochs} epochs, "
            f"{total} steps of {schedule.global_batch}"
        )
        self._recovery = recovery = Recovery(engine, settings, schedule)
        done = self._step = recovery.resume()
        started = time.monotonic()
        self._progress = progress = Progress(
            settings, schedule, worker=engine.worker, workers=engine.workers, done=done
        )
        ballot = StopBallot(engine, self._stop, first_step=done + 1)
        self._batches = engine.batches(*self._training, schedule, range(done, total))
        for step in range(done + 1, total + 1):
            engine.train(self._batches)
            self._step = step
            if step % schedule.steps_per_epoch == 0:
                progress.epoch(step, engine.totals())
            stopping = step < total and ballot.stop_after(step)
            recovery.save_after(step, at_once=stopping or step == total)
            if stopping:
                say(f"stopped by SIGTERM after step {step} of {total}")
                engine.barrier()  # nobody leaves before worker 0 has saved
                self._stop.wait(TOLD)
                return EXIT_SIGTERM
        recovery.finish()
        seconds, totals = time.monotonic() - started, engine.last_totals
        progress.result(totals, self._evaluate(), seconds=seconds)
        engine.barrier()  # nobody leaves before worker 0 has reported: it would take that for a crash
        return 0

    def _evaluate(self) -> Totals:
        """The totals over the test examples, each worker taking its share."""
        schedule = self._engine.schedule(len(self._test[0]), shuffled=False)
        steps = range(schedule.steps_per_epoch)
        self._test_batches = self._engine.batches(*self._test, schedule, steps)
        for _ in steps:
            self._engine.test(self._test_batches)
        return self._engine.totals()
