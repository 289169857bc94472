"""Names are asked of the cluster's DNS server directly: all addresses, no search list, past its cache."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dns_query
import pytest
from dns_query import DnsError, Resolver

from tests.trainer.dns_server import DnsServer

NAME = "mnist.ml.svc.cluster.local"


def ask(server: DnsServer, times: int = 1, *, ipv6: bool = False, name: str = NAME) -> list[frozenset[str]]:
    async def case() -> list[frozenset[str]]:
        async with server.running():
            resolver = Resolver(["127.0.0.1"], ipv6, server.port)
            return [await resolver(name) for _ in range(times)]

    return asyncio.run(case())


def a_server(*addresses: str) -> DnsServer:
    server = DnsServer()
    server.records[NAME] = set(addresses)
    return server


def test_all_addresses_come_with_one_query() -> None:
    server = a_server("10.0.0.1", "10.0.0.2", "10.0.0.3")
    assert ask(server) == [{"10.0.0.1", "10.0.0.2", "10.0.0.3"}]
    assert len(server.asked) == 1


def test_an_answer_too_long_for_udp_is_fetched_by_tcp() -> None:
    addresses = {f"10.0.{number // 250}.{number % 250}" for number in range(1024)}
    server = a_server(*addresses)
    assert ask(server) == [addresses]
    assert [protocol for protocol, *_ in server.asked] == ["udp", "tcp"]


def test_pods_with_ipv6_alone_are_found() -> None:
    assert ask(a_server("fd00::1", "fd00::2"), ipv6=True) == [{"fd00::1", "fd00::2"}]


def test_addresses_of_the_other_family_are_left_out() -> None:
    assert ask(a_server("fd00::1", "10.0.0.1")) == [{"10.0.0.1"}]


def test_a_name_that_does_not_exist_has_no_addresses() -> None:
    assert ask(DnsServer()) == [frozenset()]


def test_looks_take_turns_through_the_servers_cache_entries() -> None:
    server = a_server("10.0.0.1")
    ask(server, times=8)
    assert len({(do, cd) for _, _, do, cd in server.asked[:4]}) == 4
    assert server.asked[:4] == server.asked[4:]


def test_a_failing_server_is_no_answer() -> None:
    server = a_server("10.0.0.1")
    server.code = 2
    with pytest.raises(DnsError, match=r"127.0.0.1: the server failed with response code 2"):
        ask(server)


def test_the_next_server_is_asked_when_one_does_not_answer() -> None:
    async def case() -> frozenset[str]:
        server = a_server("10.0.0.1")
        async with server.running():
            return await Resolver(["127.0.0.99", "127.0.0.1"], False, server.port)(NAME)

    assert asyncio.run(case()) == {"10.0.0.1"}


def test_a_lost_datagram_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server = a_server("10.0.0.1")
    right, lost = server.answer, [b""]
    monkeypatch.setattr(server, "answer", lambda *query: lost.pop() if lost else right(*query))
    assert ask(server) == [{"10.0.0.1"}]


def test_a_silent_server_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_query, "TIMEOUTS", (0.1, 0.1))
    server = a_server("10.0.0.1")
    monkeypatch.setattr(server, "answer", lambda *_: b"")
    with pytest.raises(DnsError, match=r"no answer within 0.2 s"):
        ask(server)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda answer: answer[:-3], id="cut off"),
        pytest.param(lambda answer: answer[:6] + b"\xff\xff" + answer[8:], id="fewer records than it says"),
    ],
)
def test_a_malformed_answer_is_no_answer(spoil: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    server = a_server("10.0.0.1")
    right = server.answer
    monkeypatch.setattr(server, "answer", lambda *query: spoil(right(*query)))
    with pytest.raises(DnsError, match="malformed"):
        ask(server)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda answer: b"\0\0" + answer[2:], id="another id"),
        pytest.param(lambda answer: answer.replace(b"mnist", b"other"), id="another name"),
        pytest.param(lambda answer: answer[:2] + b"\0\0" + answer[4:], id="a query"),
    ],
)
def test_an_answer_to_another_question_is_ignored(spoil: Callable[[bytes], bytes], monkeypatch: Any) -> None:
    monkeypatch.setattr(dns_query, "TIMEOUTS", (0.1, 0.1))
    server = a_server("10.0.0.1")
    right = server.answer
    monkeypatch.setattr(server, "answer", lambda *query: spoil(right(*query)))
    with pytest.raises(DnsError, match="no answer within"):
        ask(server)


def test_servers_come_from_resolv_conf(tmp_path: Path) -> None:
    async def case() -> frozenset[str]:
        server = a_server("10.0.0.1")
        async with server.running():
            (tmp_path / "resolv.conf").write_text(
                "search ml.svc.cluster.local\nnameserver 127.0.0.1\noptions ndots:5\n"
            )
            resolver = Resolver.from_resolv_conf(tmp_path / "resolv.conf", ipv6=False)
            resolver._port = server.port
            return await resolver(NAME)

    assert asyncio.run(case()) == {"10.0.0.1"}


@pytest.mark.parametrize("text", [pytest.param("search a.b\n", id="none named"), pytest.param(None, id="no file")])
def test_a_system_without_name_servers_is_said_so(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "resolv.conf").write_text(text)
    with pytest.raises(DnsError, match="no name server"):
        Resolver.from_resolv_conf(tmp_path / "resolv.conf", ipv6=False)
