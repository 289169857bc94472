"""The examples in docstrings show what really comes out."""

import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"components": "components.", "devcluster": "devcluster.", "trainer": ""}
"""Folders, each with what its modules' names begin with: the trainer's are no package."""


def modules_with_examples() -> Iterator[str]:
    for folder, prefix in PACKAGES.items():
        for file in sorted((ROOT / folder).glob("*.py")):
            if ">>> " in file.read_text():
                yield prefix + file.stem


@pytest.mark.parametrize("module", list(modules_with_examples()))
def test_the_examples_hold(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert tried
    assert not failed
