"""Run other programs."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from devcluster.errors import DevclusterError


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout: float | None = None,
) -> str:
    """Run `argv` and return its standard output.

    Raises:
        DevclusterError: it failed or took longer than `timeout` seconds. The message ends in its last line of output.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(  # noqa: S603 (no shell)
            words, env=env, cwd=cwd, input=stdin, timeout=timeout, capture_output=True, text=True, errors="replace"
        )
    except FileNotFoundError as error:
        raise DevclusterError(f"{words[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise DevclusterError(f"{_short(words)} did not finish within {timeout:g} s") from error
    if done.returncode != 0:
        raise DevclusterError(f"{_short(words)} failed ({done.returncode}): {last_line(done.stderr or done.stdout)}")
    return done.stdout


def last_line(text: str) -> str:
    """The last line of `text` that says anything."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def _short(words: Sequence[str]) -> str:
    text = " ".join([Path(words[0]).name, *words[1:]])
    return text if len(text) <= 120 else text[:117] + "..."
