"""When the Kubernetes provider is started before the first object."""

from typing import Any

import pytest

from components import kubeconfig
from components.errors import ConfigError
from components.provider import start_provider
from tests.unit.recording import RecordingMonitor, run


class CountingMonitor(RecordingMonitor):
    """Also remembers which functions were called."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []

    def Invoke(self, request: Any) -> Any:  # noqa: N802  the engine's name
        self.called.append(request.tok)
        return super().Invoke(request)  # type: ignore[no-untyped-call]


def called() -> list[str]:
    monitor = CountingMonitor()
    run(lambda: start_provider().join(), monitor=monitor)
    return monitor.called


def test_it_starts_by_a_function_of_its_own_when_the_cluster_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconfig, "require_reachable", lambda _: None)
    assert called() == ["kubernetes:yaml:decode"]


def test_it_does_not_start_where_it_would_wait_for_a_cluster_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: kubeconfig.Kubeconfig) -> None:
        raise ConfigError(["out of reach"])

    monkeypatch.setattr(kubeconfig, "require_reachable", refuse)
    assert called() == []
