"""Settings from the environment. Bad ones give one clear line and exit code 2: running again would not help."""

import os

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
