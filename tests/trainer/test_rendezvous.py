"""The workers of a TrainJob find each other and agree, whatever the order in which pods and names appear."""

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest
from pod_identity import Worker
from rendezvous import agree
from rendezvous_wire import Channel, Listener, RendezvousError, Timing, introduction

from tests.trainer.gang import QUICK, FakeDns, a_gang, another_pod, hosts_of, rendezvous

IMPATIENT = Timing(timeout=0.5, look=0.1)


def run(case: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(case, 20))


def a_published_gang(size: int, **kwargs: Any) -> tuple[list[Worker], FakeDns]:
    gang, dns = a_gang(size, **kwargs), FakeDns()
    for worker in gang:
        dns.publish(worker)
    return gang, dns


async def say_hello(caller: Worker, leader: Worker, **change: Any) -> dict[str, Any]:
    """Call in at a leader by hand, and return its first answer."""
    for _ in range(50):
        with contextlib.suppress(ConnectionRefusedError):
            reader, writer = await asyncio.open_connection(leader.address, leader.port)
            writer.write(json.dumps({"hello": introduction(caller) | change}).encode() + b"\n")
            answer = json.loads(await reader.readline())
            writer.close()
            return dict(answer)
        await asyncio.sleep(0.02)
    raise AssertionError("the leader does not listen")


@pytest.mark.parametrize(
    ("workers", "size", "by_replica"),
    [
        pytest.param(1, 1, False, id="a cluster of one needs nobody else"),
        pytest.param(2, 2, False, id="two workers, number known"),
        pytest.param(2, None, False, id="two workers, number not known"),
        pytest.param(5, 5, False, id="five workers, number known"),
        pytest.param(5, None, False, id="five workers, number not known"),
        pytest.param(3, 3, True, id="one Job per worker: the peers' names decide what worker 0 is called"),
    ],
)
def test_all_workers_get_the_same_complete_list(workers: int, size: int | None, by_replica: bool) -> None:
    gang, dns = a_published_gang(workers, by_replica=by_replica)
    assert run(rendezvous(gang, dns, size)) == [hosts_of(gang)] * workers


def test_names_that_appear_late_are_waited_for() -> None:
    async def case() -> list[Any]:
        gang, dns = a_gang(3), FakeDns()
        result = asyncio.create_task(rendezvous(gang, dns, 3))
        for worker in reversed(gang):
            await asyncio.sleep(0.2)
            assert not result.done()
            dns.publish(worker)
        assert await result == [hosts_of(gang)] * 3
        return [dns.queries[worker.host(worker.pod.index)] for worker in gang[1:]]

    own_names = run(case())
    assert max(own_names) <= 2, "a worker asks for its own name once it is in DNS, not before"


def test_a_worker_that_met_a_cached_no_is_told_by_worker_0_where_it_is() -> None:
    async def case() -> None:
        gang, dns = a_published_gang(2)
        forgotten = gang[0].host(0)
        real = dns.records.pop(forgotten)

        async def restore() -> None:
            await asyncio.sleep(0.4)
            dns.records[forgotten] |= real

        results, _ = await asyncio.gather(rendezvous(gang, dns, 2), restore())
        assert results == [hosts_of(gang)] * 2
        assert dns.queries[forgotten] <= 5

    run(case())


def test_a_late_start_of_any_worker_is_waited_for_when_the_number_is_known() -> None:
    async def case() -> None:
        gang, dns = a_published_gang(3)

        async def late(worker: Worker) -> list[str]:
            await asyncio.sleep(0.3 * worker.pod.index)
            return await agree(worker, 3, dns, QUICK)

        assert await asyncio.gather(*map(late, gang)) == [hosts_of(gang)] * 3

    run(case())


def test_pods_of_an_earlier_run_are_waited_out() -> None:
    async def case() -> None:
        gang, dns = a_published_gang(2)
        old = [another_pod(worker) for worker in gang]
        for worker in old:
            dns.publish(worker)
        result = asyncio.create_task(rendezvous(gang, dns, 2))
        await asyncio.sleep(0.6)
        assert not result.done(), "the name still has two addresses, and TensorFlow could take the old one"
        for worker in old:
            dns.withdraw(worker)
        assert await result == [hosts_of(gang)] * 2

    run(case())


def test_other_pods_of_the_same_service_do_not_disturb() -> None:
    gang, dns = a_published_gang(2)
    dns.records[gang[0].service].add("127.0.0.99")
    assert run(rendezvous(gang, dns, 2)) == [hosts_of(gang)] * 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"hostname": "other-node-0-1"}, "another TrainJob: 'other'", id="a pod of another TrainJob"),
        pytest.param({"namespace": "web"}, "another namespace: 'web'", id="a pod of another namespace"),
        pytest.param({"generation": "run-0/0"}, "another run: 'run-0/0'", id="a pod of an earlier run"),
        pytest.param({"port": 23456}, "another port: 23456", id="a pod with another port"),
        pytest.param({"hostname": "mnist-node-0-0"}, "worker 0 is already here", id="a second worker 0"),
    ],
)
def test_strangers_are_turned_away_with_a_reason(
    change: dict[str, Any], reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def case() -> dict[str, Any]:
        gang, dns = a_published_gang(2)
        leader = asyncio.create_task(agree(gang[0], 2, dns, QUICK))
        answer = await say_hello(gang[1], gang[0], **change)
        leader.cancel()
        return answer

    assert reason in run(case())["refused"]
    assert reason in capfd.readouterr().out


def test_a_second_claim_to_an_index_is_turned_away(capfd: pytest.CaptureFixture[str]) -> None:
    async def case() -> None:
        gang, dns = a_published_gang(3)
        first_two = [asyncio.create_task(agree(worker, 3, dns, QUICK)) for worker in gang[:2]]
        await asyncio.sleep(0.3)
        double = another_pod(gang[1])
        assert "worker 1 is already here" in (await say_hello(double, gang[0]))["refused"]
        last = await agree(gang[2], 3, dns, QUICK)
        assert [last, *await asyncio.gather(*first_two)] == [hosts_of(gang)] * 3

    run(case())
    assert re.search(r"turned away mnist-node-0-1 at [\d.]+: worker 1 is already here", capfd.readouterr().out)


def test_a_worker_that_comes_too_late_is_turned_away(capfd: pytest.CaptureFixture[str]) -> None:
    async def case() -> str:
        gang, dns = a_published_gang(2)
        leader = asyncio.create_task(agree(gang[0], None, dns, QUICK))
        await asyncio.sleep(0.1)
        # A member that stays on the line once it may start: worker 0 says goodbye for as long as that.
        member = await Channel.connect(gang[0].address, gang[0].port)
        await member.send("hello", introduction(gang[1]))
        while (await member.receive(5))[0] != "go":
            await member.send("ready")
        answer = await say_hello(replace(gang[1], pod=replace(gang[1].pod, index=2)), gang[0])
        member.close()
        assert await leader == hosts_of(gang)
        return str(answer["refused"])

    assert run(case()) == "too late: this run has started with 2 workers"
    assert re.search(r"turned away mnist-node-0-2 at [\d.]+: too late", capfd.readouterr().out)


def test_the_pod_that_dns_names_takes_the_place_of_one_it_does_not() -> None:
    """As when a node is lost: its pod sends no farewell, and its replacement must not wait for the line to time out."""

    async def case() -> None:
        gang, dns = a_published_gang(3)
        leader = asyncio.create_task(agree(gang[0], 3, dns, QUICK))
        usurper = another_pod(gang[1])
        unnamed = asyncio.create_task(agree(usurper, 3, dns, IMPATIENT))
        await asyncio.sleep(0.2)
        assert await rendezvous(gang[1:], dns, 3) == [hosts_of(gang)] * 2
        assert await leader == hosts_of(gang)
        with pytest.raises(RendezvousError):
            await unnamed

    run(case())


def test_a_pod_that_comes_back_with_a_new_address_takes_its_place() -> None:
    async def case() -> None:
        gang, dns = a_published_gang(3)
        leader = asyncio.create_task(agree(gang[0], 3, dns, QUICK))
        lost = asyncio.create_task(agree(gang[1], 3, dns, QUICK))
        await asyncio.sleep(0.2)
        lost.cancel()
        dns.withdraw(gang[1])
        back = another_pod(gang[1])
        dns.publish(back)
        rest = await rendezvous([back, gang[2]], dns, 3)
        assert [await leader, *rest] == [hosts_of(gang)] * 3

    run(case())


def test_an_index_beyond_the_known_number_stops_everyone_at_once() -> None:
    async def case() -> None:
        gang, dns = a_published_gang(3)
        leader = asyncio.create_task(agree(gang[0], 4, dns, QUICK))
        member = asyncio.create_task(agree(gang[1], 4, dns, QUICK))
        await asyncio.sleep(0.2)
        intruder = a_gang(6)[5]
        await say_hello(intruder, gang[0])
        for task in (leader, member):
            with pytest.raises(RendezvousError, match=r"worker index 5 .*TF_NUM_WORKERS=4") as caught:
                await task
            assert caught.value.code == 2

    run(case())


def test_a_worker_whose_own_index_does_not_fit_fails_at_once() -> None:
    gang, dns = a_published_gang(3)
    with pytest.raises(RendezvousError, match=r"worker index 2 .*TF_NUM_WORKERS=2"):
        run(agree(gang[2], 2, dns, QUICK))


@pytest.mark.parametrize(
    ("present", "names_missing"),
    [
        pytest.param([0], "missing: mnist-node-0-1, mnist-node-0-2", id="worker 0 alone names all others"),
        pytest.param([0, 1], "missing: mnist-node-0-2", id="worker 0 names the last one"),
        pytest.param([1], r"worker 0 \(mnist-node-0-0.mnist.ml", id="another worker names worker 0"),
    ],
)
def test_the_time_out_names_the_missing(present: list[int], names_missing: str) -> None:
    async def case() -> None:
        gang, dns = a_gang(3), FakeDns()
        here = [gang[index] for index in present]
        for worker in here:
            dns.publish(worker)
        errors = await rendezvous(here, dns, 3, timing=IMPATIENT)
        assert [getattr(error, "code", None) for error in errors] == [1] * len(here)
        assert re.search(names_missing, str(errors[0]))

    run(case())


def test_without_a_known_number_one_worker_alone_never_starts() -> None:
    gang, dns = a_published_gang(1)
    with pytest.raises(RendezvousError, match="found 1 workers"):
        run(agree(gang[0], None, dns, IMPATIENT))


def test_names_that_never_appear_point_to_the_setting_that_publishes_them() -> None:
    gang, dns = a_gang(2), FakeDns()
    with pytest.raises(RendezvousError, match="publishNotReadyAddresses"):
        run(agree(gang[1], 2, dns, IMPATIENT))


def test_the_attempts_are_logged(capfd: pytest.CaptureFixture[str]) -> None:
    gang, dns = a_published_gang(1)
    with pytest.raises(RendezvousError):
        run(agree(gang[0], None, dns, Timing(timeout=0.6, look=0.15)))
    assert "[Discovery] attempt 1/4: found 1 workers, retrying in 0.15s..." in capfd.readouterr().out


def test_a_port_that_speaks_another_protocol_is_not_taken_for_worker_0() -> None:
    """As TensorFlow's own server does in a pod of an earlier run that is still training."""

    async def case() -> None:
        gang, dns = a_published_gang(2)

        async def grpc(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\n")
            writer.close()

        server = await asyncio.start_server(grpc, gang[0].address, gang[0].port)
        with pytest.raises(RendezvousError, match="speaks another protocol"):
            await agree(gang[1], 2, dns, IMPATIENT)
        server.close()

    run(case())


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"GET / HTTP/1.1\r\n", id="HTTP"),
        pytest.param(b"\n", id="an empty line"),
        pytest.param(b'{"hello": {"hostname": "mnist-node-0-1"}}\n', id="half an introduction"),
        pytest.param(b'{"hello": []}\n', id="an introduction of another type"),
        pytest.param(b'{"ready": {}}\n', id="a message out of turn"),
        pytest.param(b"x" * 2_000_000, id="two megabytes without a line end"),
    ],
)
def test_whatever_a_caller_says_worker_0_goes_on(line: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    async def case() -> None:
        gang, dns = a_published_gang(2)
        leader = asyncio.create_task(agree(gang[0], 2, dns, QUICK))
        await asyncio.sleep(0.1)
        _, writer = await asyncio.open_connection(gang[0].address, gang[0].port)
        with contextlib.suppress(OSError):
            writer.write(line)
            await writer.drain()
        writer.close()
        assert await agree(gang[1], 2, dns, QUICK) == await leader == hosts_of(gang)

    run(case())
    assert "turned away" in capfd.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"pattern": "other-node-0-{}.other.ml.svc.cluster.local:12345"}, id="another job's names"),
        pytest.param({"pattern": 7}, id="names that are no text"),
        pytest.param({"size": 1}, id="too few workers"),
        pytest.param({"size": 10**9}, id="more workers than there can be"),
        pytest.param({"size": "2"}, id="a number that is none"),
    ],
)
def test_a_membership_without_this_worker_is_not_accepted(change: dict[str, Any]) -> None:
    async def case() -> None:
        gang, dns = a_published_gang(2)

        async def worker_0(channel: Channel) -> None:
            await channel.receive()
            await channel.send("welcome")
            await channel.send("prepare", {"pattern": f"{gang[0].host('{}')}:12345", "size": 2} | change)
            await channel.wait_closed_by_peer(5)

        listener = Listener(worker_0)
        await listener.open(gang[0].address, gang[0].port)
        with pytest.raises(RendezvousError, match=r"a membership without mnist-node-0-1\..*:12345 at index 1"):
            await agree(gang[1], 2, dns, IMPATIENT)
        listener.close()

    run(case())


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_pods_with_ipv6_alone_can_call_in() -> None:
    async def case() -> dict[str, Any]:
        gang = [replace(worker, address="::1") for worker in a_gang(2)]
        leader = asyncio.create_task(agree(gang[0], 2, FakeDns(), QUICK))
        answer = await say_hello(gang[1], gang[0])
        leader.cancel()
        return answer

    assert "welcome" in run(case())
