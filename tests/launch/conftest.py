"""A W&B server for each test, and a home of its own for what W&B's client writes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launch.fake_wandb import FakeWandb


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWandb]:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_ENTITY"):
        monkeypatch.delenv(variable, raising=False)
    with FakeWandb() as fake:
        yield fake
