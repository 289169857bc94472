"""What is wrong with the stack's config, and how the program ends over it."""

import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

import pulumi

ALREADY_TOLD = 32
"""Exit status by which Pulumi's Python host knows that the user has been told why, and adds nothing of its own
(https://github.com/pulumi/pulumi/blob/v3.150.0/sdk/python/cmd/pulumi-language-python-exec#L26)."""


class ConfigError(Exception):
    """What is wrong with the stack's config; one finished sentence per fault in `lines`."""

    def __init__(self, lines: Sequence[str]):
        super().__init__("\n".join(lines))
        self.lines = lines


def stop(lines: Iterable[str]) -> NoReturn:
    """Fail the update with these error lines and nothing else: no traceback, nothing registered after this."""
    for line in lines:
        pulumi.log.error(line)
    sys.exit(ALREADY_TOLD)
