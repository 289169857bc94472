"""Trains a small network on CIFAR-10, alone or as one of the workers that TF_CONFIG names.

All workers print the same loss after each epoch; worker 0 prints the result as one line of JSON at the end. Exit codes:
0 done, 2 bad input, 143 after SIGTERM, 1 for anything else. The settings are in train_settings.
"""

import os
import sys
import traceback
from typing import NoReturn

from env_settings import EXIT_BAD_INPUT, EXIT_FAILURE, InputError
from stop_signal import StopSignal
from train_settings import Settings


def main() -> None:
    """Run the training and end the process."""
    stop = StopSignal()  # before numpy and TensorFlow are loaded
    try:
        settings = Settings.from_environment()
        from cifar10 import load_cifar10_local

        data = load_cifar10_local(settings.data_dir)
        from train_run import Training  # TensorFlow takes seconds to load: only once the input is good

        training = Training(settings, *data, stop)
        leave(training.run())
    except InputError as error:
        print(f"train: {error}", file=sys.stderr)
        leave(EXIT_BAD_INPUT)
    except Exception:  # the others wait until this worker is gone
        traceback.print_exc()
        leave(EXIT_FAILURE)


def leave(code: int) -> NoReturn:
    """End the process at once, without TensorFlow's own teardown: see Training."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
