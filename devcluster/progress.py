"""Say what is going on: which step of how many, and how long it took."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class Progress:
    """Numbered steps, one line each: `[ 7/24] build kube-apiserver … 174 s`.

    On a terminal the seconds count up while the step runs.
    """

    def __init__(self, total: int, out: TextIO = sys.stdout) -> None:
        self.total = total
        self._out = out
        self._done = 0

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """One step; it counts even when it fails, so that its line is complete."""
        self._done += 1
        width = len(str(self.total))
        line = f"[{self._done:{width}}/{self.total}] {what} …"
        start, finished = time.monotonic(), threading.Event()
        self._write(line)
        ticker = threading.Thread(target=self._tick, args=(line, start, finished), daemon=True)
        if self._out.isatty():
            ticker.start()
        try:
            yield
        finally:
            finished.set()
            if ticker.is_alive():
                ticker.join()
            self._write(f"\r{line}" if self._out.isatty() else "")
            self._write(f" {time.monotonic() - start:.0f} s\n")

    def _tick(self, line: str, start: float, finished: threading.Event) -> None:
        while not finished.wait(1.0):
            self._write(f"\r{line} {time.monotonic() - start:.0f} s")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
