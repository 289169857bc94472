"""The launcher, "torchrun for TensorFlow": agree on the cluster, set TF_CONFIG, become the script.

    tfrun.py [--] script.py [arguments...]

The script replaces this process, so TensorFlow cannot have been imported before TF_CONFIG was set, and exit code,
signals and output are the script's own. Exit codes of the launcher: 2 for bad input, 143 after SIGTERM, else 1.
"""

import os
import signal
import sys
from pathlib import Path

from env_settings import EXIT_BAD_INPUT, EXIT_SIGTERM, InputError
from rendezvous import RendezvousError, setup_tf_config

USAGE = "usage: tfrun.py [--] script.py [arguments...]"


def main(argv: list[str]) -> int:
    """Run the script in place of this process; returns, with an exit code, only when that is not possible."""
    # The kernel drops signals for a container's first process unless it handles them.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_SIGTERM))
    command = argv[1:] if argv[:1] == ["--"] else argv
    if not command or command[0].startswith("-"):
        return _fail(USAGE, EXIT_BAD_INPUT)
    script = Path(command[0])
    if not script.is_file():
        return _fail(f"no such script: {script}", EXIT_BAD_INPUT)
    try:
        setup_tf_config()
    except InputError as error:
        return _fail(str(error), EXIT_BAD_INPUT)
    except RendezvousError as error:
        return _fail(str(error), error.code)
    return os.execv(sys.executable, [sys.executable, "-u", *command])  # noqa: S606  no shell: that is the point


def _fail(message: str, code: int) -> int:
    print(f"tfrun: {message}", file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
