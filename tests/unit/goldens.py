"""Whole manifests compared with files: a missing one fails, and only UPDATE_GOLDEN=1 writes."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "golden"


class _Plain(yaml.SafeDumper):
    """Repeats a value instead of pointing at it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def assert_golden(name: str, manifest: Mapping[str, Any]) -> None:
    path = FOLDER / f"{name}.yaml"
    text = yaml.dump(manifest, Dumper=_Plain, sort_keys=False, width=120)
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert path.exists(), f"no golden {path.name}: run with UPDATE_GOLDEN=1 and read what it writes"
    assert path.read_text() == text
