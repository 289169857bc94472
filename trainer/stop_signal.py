"""SIGTERM for a process whose main thread is inside TensorFlow most of the time.

A handler will not do. Python runs it between two bytecodes of the main thread, which may be in a collective that never
ends once a peer is gone; and in a cluster TensorFlow replaces it by its own (the preemption notifier). So the signal is
blocked in all threads, and one of ours waits for it.
"""

import os
import signal
import sys
import threading
import time

from env_settings import EXIT_SIGTERM

SAVE_TIME = 25.0
"""Seconds to finish after SIGTERM: Kubernetes kills the pod after a grace period of 30 s, by default."""


class StopSignal:
    """SIGTERM ends the process with code 143: at once, or, when deferred, as soon as the training can be left.

    Create it before numpy and TensorFlow are imported: their threads inherit the signal mask.
    """

    def __init__(self) -> None:
        self._deferred = False
        self._requested = threading.Event()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=self._wait, name="sigterm", daemon=True).start()

    def defer(self) -> None:
        """From now on SIGTERM only sets `requested`, and the process has SAVE_TIME to end by itself."""
        self._deferred = True

    @property
    def requested(self) -> bool:
        """Whether SIGTERM has come."""
        return self._requested.is_set()

    def wait(self, seconds: float) -> None:
        """Return when SIGTERM has come, or after so many seconds."""
        self._requested.wait(seconds)

    def _wait(self) -> None:
        signal.sigwait({signal.SIGTERM})
        self._requested.set()
        if self._deferred:
            time.sleep(SAVE_TIME)
            print(f"[Training] not finished {SAVE_TIME:g} s after SIGTERM", flush=True)
        sys.stdout.flush()
        os._exit(EXIT_SIGTERM)
