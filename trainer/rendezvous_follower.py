"""The side of every worker but worker 0: find worker 0, call in, confirm the membership, wait for the start."""

import asyncio
import contextlib
import time
from typing import Any

from dns_query import DnsError
from pod_identity import Worker
from rendezvous_leader import Resolve, own_name_obstacle
from rendezvous_members import Log
from rendezvous_membership import Membership
from rendezvous_wire import (
    ANSWER_TIMEOUT,
    Channel,
    Listener,
    RendezvousError,
    Timing,
    WireError,
    introduced,
    introduction,
)

FIRST_GAP, LAST_GAP = 0.1, 5.0
"""Seconds between two searches for worker 0; each gap is twice the one before. Worker 0 knocks when it is late, so
nothing is lost by asking rarely."""


class Follower:
    """One worker on its way into the gang."""

    def __init__(self, me: Worker, resolve: Resolve, timing: Timing, log: Log) -> None:
        self._me = me
        self._resolve = resolve
        self._timing = timing
        self._log = log
        self._knocks: asyncio.Queue[str] = asyncio.Queue()
        self._obstacle = "not looked for yet"

    async def agree(self) -> list[str]:
        """The membership, as worker 0 decided it; raises RendezvousError after the time-out or when it gives up."""
        listener = Listener(self._on_call)
        await listener.open(self._me.address, self._me.port)
        try:
            return await self._search()
        finally:
            listener.close()

    async def _search(self) -> list[str]:
        deadline = time.monotonic() + self._timing.timeout
        gap = FIRST_GAP
        next_log = time.monotonic() + self._timing.look
        addresses: list[str] = []
        while time.monotonic() < deadline:
            for address in addresses or await self._worker_0():
                if hosts := await self._call(address):
                    return hosts
            if time.monotonic() >= next_log:
                next_log = time.monotonic() + self._timing.look
                self._log(f"waiting for worker 0 ({self._me.host(0)}): {self._obstacle}")
            addresses = []
            with contextlib.suppress(asyncio.TimeoutError):
                addresses = [await asyncio.wait_for(self._knocks.get(), min(gap, deadline - time.monotonic()))]
            gap = min(2 * gap, LAST_GAP)
        raise RendezvousError(
            f"no agreement after {self._timing.timeout:g} s: worker 0 ({self._me.host(0)}): {self._obstacle}"
        )

    async def _worker_0(self) -> list[str]:
        """Worker 0's address; two while a pod of an earlier run is still there."""
        try:
            addresses = sorted(await self._resolve(self._me.host(0)))
        except DnsError as error:
            self._obstacle = f"DNS gives no answer: {error}"
            return []
        if not addresses:
            self._obstacle = "the name does not resolve yet (the service needs publishNotReadyAddresses)"
        return addresses

    async def _call(self, address: str) -> list[str]:
        """Call in at `address` and stay until the start; an empty list when our worker 0 is not there, or no more."""
        try:
            return await self._take_part(await Channel.connect(address, self._me.port), address)
        except WireError as error:
            self._obstacle = str(error)
            return []

    async def _take_part(self, channel: Channel, address: str) -> list[str]:
        try:
            await channel.send("hello", introduction(self._me))
            kind, body = await channel.receive(ANSWER_TIMEOUT)
            if kind != "welcome":
                raise WireError(f"{address} turned this worker away: {body}")
            self._obstacle = f"waiting for the other workers at {address}"
            hosts: list[str] = []
            while True:
                # Worker 0 knows best who is missing: its time-out comes first.
                kind, body = await channel.receive(self._timing.timeout + ANSWER_TIMEOUT)
                if kind == "prepare":
                    hosts = self._membership(body)
                    obstacle = await own_name_obstacle(self._me, self._resolve)
                    await (channel.send("wait", obstacle) if obstacle else channel.send("ready"))
                elif kind == "go" and hosts:
                    return hosts
                elif kind == "abort":
                    raise _aborted(body)
                else:
                    raise WireError(f"{address} sent an unexpected message {kind!r}")
        finally:
            channel.close()

    def _membership(self, body: Any) -> list[str]:
        index = self._me.pod.index
        own = f"{self._me.host(index)}:{self._me.port}"
        try:
            hosts = Membership.from_message(body).hosts
            if hosts[index] == own:
                return hosts
        except (ValueError, IndexError):
            pass
        raise WireError(f"worker 0 sent a membership without {own} at index {index}")

    async def _on_call(self, channel: Channel) -> None:
        """Worker 0 knocks: a hint where it is. The call that follows shows whether it is ours."""
        with contextlib.suppress(WireError):
            kind, body = await channel.receive(ANSWER_TIMEOUT)
            caller = introduced(body, self._me.domain) if kind == "knock" else None
            if caller and (caller.pod.job, caller.generation) == (self._me.pod.job, self._me.generation):
                self._knocks.put_nowait(caller.address)
        channel.close()


def _aborted(body: Any) -> RendezvousError:
    if not isinstance(body, dict):
        return RendezvousError(f"worker 0 gave up: {body}")
    return RendezvousError(f"worker 0 gave up: {body.get('reason')}", code=2 if body.get("code") == 2 else 1)
