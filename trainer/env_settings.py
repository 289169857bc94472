"""Settings from the environment. Bad ones give one clear line and exit code 2: running again would not help."""

import os
from errno import EACCES

EXIT_FAILURE = 1
EXIT_BAD_INPUT = 2
EXIT_SIGTERM = 143


class InputError(ValueError):
    """Input that running again cannot mend; the message says what, where, and what is accepted."""


def read_int(key: str, *, default: int, minimum: int, maximum: int | None = None) -> int:
    """The whole number in environment variable `key`; raises InputError unless it is from `minimum` to `maximum`."""
    text = os.environ.get(key, str(default))
    try:
        value = int(text)
        if value < minimum or (maximum is not None and value > maximum):
            raise ValueError(text)
    except ValueError:
        accepted = f"{minimum} or more" if maximum is None else f"from {minimum} to {maximum}"
        raise InputError(f"{key}={text!r}: expected a whole number, {accepted}") from None
    return value


def read_positive(key: str, *, default: float) -> float:
    """The number above 0 in environment variable `key`; raises InputError for anything else."""
    text = os.environ.get(key, str(default))
    try:
        value = float(text)
        if not 0 < value < float("inf"):
            raise ValueError(text)
    except ValueError:
        raise InputError(f"{key}={text!r}: expected a number above 0") from None
    return value


def make_folder(key: str) -> str:
    """The folder in environment variable `key`, made when it is not there; raises InputError when it cannot be used."""
    folder = os.environ[key]
    try:
        os.makedirs(folder, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(EACCES, os.strerror(EACCES))
    except OSError as error:
        raise InputError(f"{key}={folder!r}: {error.strerror}; expected a folder to write to") from error
    return folder
