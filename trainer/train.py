"""Trains a small network on CIFAR-10, alone or as one of the workers that TF_CONFIG names.

All workers print the same loss after each epoch; worker 0 prints the result as one line of JSON at the end. Exit codes:
0 done, 2 bad input, 143 after SIGTERM, 1 for anything else. The settings are in train_settings.
"""

import os
import sys

from env_settings import EXIT_BAD_INPUT, InputError
from stop_signal import StopSignal
from train_settings import Settings


def main() -> int:
    """Run the training; returns the exit code."""
    stop = StopSignal()  # before numpy and TensorFlow are loaded
    try:
        settings = Settings.from_environment()
        from cifar10 import load_cifar10_local

        data = load_cifar10_local(settings.data_dir)
        from train_run import run  # TensorFlow takes seconds to load: only once the input is good

        return run(settings, *data, stop)
    except InputError as error:
        print(f"train: {error}", file=sys.stderr, flush=True)
        return EXIT_BAD_INPUT


def leave(code: int) -> None:
    """End the process at once.

    TensorFlow's own teardown may wait for a peer that has left already, until the coordination service takes that one
    for crashed and says so, 10 s later, in the log of a good run.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    leave(main())
