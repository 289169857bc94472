"""How workers stop together."""

import time
from typing import TYPE_CHECKING

from stop_signal import StopSignal

if TYPE_CHECKING:
    from train_engine import Engine

EVERY = 1.0
"""Seconds of training between two ballots."""


class StopBallot:
    """Lets all workers stop after the same step, though SIGTERM may have reached only one of them, or reach them apart.

    From time to time they add up who wants to stop. They also add up how long it took since the last time, and choose
    the next time from the sum: so all choose the same step, and a ballot costs next to nothing however short the steps.
    """

    def __init__(self, engine: "Engine", stop: StopSignal, first_step: int) -> None:
        stop.defer()
        self._engine = engine
        self._stop = stop
        self._last_step = first_step - 1
        self._last_time = time.monotonic()
        self._next_step = first_step

    def stop_after(self, step: int) -> bool:
        """Whether all workers stop after this step; each asks after every step."""
        if step < self._next_step:
            return False
        now = time.monotonic()
        wanting, seconds = self._engine.mean_over_workers(float(self._stop.requested), now - self._last_time)
        pace = EVERY / max(seconds, 1e-6) * (step - self._last_step)
        self._last_step, self._last_time, self._next_step = step, now, step + max(1, int(pace))
        return wanting > 0
