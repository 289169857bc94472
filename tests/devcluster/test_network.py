"""Removing the link between the machine and the cluster."""

import pytest

from devcluster import network
from devcluster.addresses import HOST_LINK
from devcluster.errors import DevclusterError


def links_seen(monkeypatch: pytest.MonkeyPatch, *seen: dict[str, str]) -> None:
    """What the machine's links are, look by look, while `ip link delete` fails."""
    looks = iter(seen)

    def fail(_: list[str]) -> str:
        raise DevclusterError('ip link delete tft0 failed (1): Cannot find device "tft0"')

    monkeypatch.setattr(network, "_links", lambda: next(looks))
    monkeypatch.setattr(network, "run", fail)


OURS = {HOST_LINK: network._HOST_MAC}


def test_a_link_that_the_kernel_removes_first_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    links_seen(monkeypatch, OURS, {})
    network.disconnect()


def test_a_link_that_stays_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    links_seen(monkeypatch, OURS, OURS)
    with pytest.raises(DevclusterError, match="ip link delete"):
        network.disconnect()


def test_a_link_of_that_name_that_is_not_ours_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    links_seen(monkeypatch, {HOST_LINK: "02:00:00:00:00:01"})
    network.disconnect()
