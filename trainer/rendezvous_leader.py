"""Worker 0's side of the rendezvous: it alone decides who the workers are, and tells everyone the same list.

Members call in by themselves. DNS only decides *when* the list is final: TensorFlow will use the names in it, so each
name must resolve to its member and to nothing else. Pods of an earlier run keep their names in DNS until their grace
period is over, because the service publishes addresses that are not ready.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable

from dns_query import DnsError
from pod_identity import Worker
from rendezvous_members import Log, Members, some
from rendezvous_membership import Membership
from rendezvous_wire import (
    ANSWER_TIMEOUT,
    Channel,
    Listener,
    RendezvousError,
    Timing,
    WireError,
    encode,
    introduction,
)

Resolve = Callable[[str], Awaitable[frozenset[str]]]

FASTEST, SLOWEST = 0.1, 1.25
"""Seconds between looks at DNS. The gap grows to 5 % of the time waited, so a look is never late by more than that.
At the slowest gap four looks take 5 s: each meets an entry of CoreDNS's cache that has run out (see dns_query)."""
GOODBYE = 2.0
"""Seconds for the members to hear that they can start, and to close their connections."""


class Leader:
    """Collects the other workers and decides the membership."""

    def __init__(self, me: Worker, size: int | None, resolve: Resolve, timing: Timing, log: Log) -> None:
        self._me = me
        self._size = size
        self._resolve = resolve
        self._timing = timing
        self._log = log
        self._members = Members(me, size, log)
        self._obstacle = ""
        self._knocked: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def agree(self) -> list[str]:
        """The membership as `host:port`, by index, once every member has confirmed it.

        Raises RendezvousError after the time-out, naming who is missing, or at once when agreement is impossible; all
        members that have called in are told why.
        """
        listener = Listener(self._members.serve)
        await listener.open(self._me.address, self._me.port)
        progress = asyncio.create_task(self._report_progress())
        try:
            hosts = await asyncio.wait_for(self._settle(), self._timing.timeout)
            await self._start()
            return hosts
        except asyncio.TimeoutError:
            error = RendezvousError(f"no agreement after {self._timing.timeout:g} s: {self._status()}")
            await self._abort(error)
            raise error from None
        except RendezvousError as error:
            await self._abort(error)
            raise
        finally:
            listener.close()
            progress.cancel()
            for task in self._tasks:
                task.cancel()
            for member in self._members.all:
                member.channel.close()

    async def _settle(self) -> list[str]:
        """The membership, once it is complete, in DNS, and confirmed by all."""
        since = time.monotonic()
        was_complete = False
        last_look: object = None
        last_try: tuple[object, float] = (None, 0.0)
        while True:
            if self._members.fatal:
                raise self._members.fatal
            complete, here = self._members.complete, self._members.addresses
            if complete and not was_complete:
                since = time.monotonic()  # somebody has just called in, whose name is new in DNS: look often
            was_complete = complete
            seen = await self._look()
            look = (here, seen)
            if self._size is None:
                final = complete and seen == here and look == last_look
                gap = self._timing.look
            else:
                final = complete and here <= seen
                gap = min(max(FASTEST, (time.monotonic() - since) / 20), SLOWEST)
            last_look = look
            # Confirming costs a DNS query per worker: not again before something has changed, or the cache run out.
            if final and (look != last_try[0] or time.monotonic() - last_try[1] > SLOWEST):
                membership = self._members.membership
                if await self._confirmed(membership):
                    self._members.started = True
                    return membership.hosts
                last_try = (look, time.monotonic())
            await self._pause(gap)

    async def _pause(self, gap: float) -> None:
        """Wait for the next look; with a known size, only until the last worker calls in."""
        deadline = time.monotonic() + gap
        complete = self._members.complete
        while (left := deadline - time.monotonic()) > 0 and not self._members.fatal:
            self._members.changed.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._members.changed.wait(), left)
            if self._size is not None and self._members.complete and not complete:
                return

    async def _look(self) -> frozenset[str]:
        """The addresses of the gang's headless service: every pod's, in one answer."""
        try:
            self._members.in_dns = await self._resolve(self._me.service)
        except DnsError as error:
            self._obstacle = f"DNS gives no answer: {error}"
            return frozenset()
        self._obstacle = ""
        if self._me.address in self._members.in_dns:  # else another pod may be worker 0, as far as anybody can tell
            self._knock(self._members.in_dns - self._members.addresses)
        return self._members.in_dns

    def _knock(self, addresses: Iterable[str]) -> None:
        """Tell pods that have not called in where worker 0 is: they may have met a cached "no such name"."""
        now = time.monotonic()
        for address in addresses:
            if now - self._knocked.get(address, -self._timing.look) >= self._timing.look:
                self._knocked[address] = now
                task = asyncio.create_task(self._knock_at(address))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _knock_at(self, address: str) -> None:
        with contextlib.suppress(WireError):
            channel = await Channel.connect(address, self._me.port)
            try:
                await channel.send("knock", introduction(self._me))
                await channel.wait_closed_by_peer(ANSWER_TIMEOUT)
            finally:
                channel.close()

    async def _confirmed(self, membership: Membership) -> bool:
        """Whether every worker finds its own name in DNS, with its own address and no other."""
        members = self._members.all
        prepare = encode("prepare", membership.message)
        own = own_name_obstacle(self._me, self._resolve)
        replies = await asyncio.gather(own, *(member.confirm(prepare) for member in members))
        self._obstacle = some([reply for reply in replies if reply], limit=3)
        return not self._obstacle and members == self._members.all

    async def _start(self) -> None:
        """Let everyone go. A member that cannot hear it any more fails, and its gang with it; none starts otherwise."""
        members = self._members.all
        sent = await asyncio.gather(*(member.channel.send("go") for member in members), return_exceptions=True)
        for member, result in zip(members, sent, strict=True):
            if result is not None:
                self._log(f"lost {member.worker.pod.hostname} at the start: {result}")
        # The members close first: TIME_WAIT is theirs, and our port is free for TensorFlow.
        goodbyes = [asyncio.create_task(member.gone.wait()) for member in members]
        await asyncio.wait(goodbyes, timeout=GOODBYE)

    async def _abort(self, error: RendezvousError) -> None:
        body = {"reason": str(error), "code": error.code}
        sends = (member.channel.send("abort", body) for member in self._members.all)
        await asyncio.gather(*sends, return_exceptions=True)

    def _status(self) -> str:
        here = self._members.addresses
        notes = [str(self._members), self._obstacle]
        if unnamed := here - self._members.in_dns:
            notes.append(f"{some(sorted(unnamed))} not in DNS yet (the service needs publishNotReadyAddresses)")
        if silent := self._members.in_dns - here:
            notes.append(f"{some(sorted(silent))} in DNS without a call: starting, or pods of an earlier run")
        return "; ".join(filter(None, notes))

    async def _report_progress(self) -> None:
        attempts = max(1, round(self._timing.timeout / self._timing.look))
        for attempt in range(1, attempts + 1):
            await asyncio.sleep(self._timing.look)
            self._log(f"attempt {attempt}/{attempts}: {self._status()}, retrying in {self._timing.look:g}s...")


async def own_name_obstacle(me: Worker, resolve: Resolve) -> str:
    """Why others might not reach this worker by its name; empty when it resolves to its address and no other."""
    name = me.host(me.pod.index)
    try:
        found = await resolve(name)
    except DnsError as error:
        return f"DNS gives no answer: {error}"
    if strangers := found - {me.address}:
        return f"{me.pod.hostname} still resolves to {some(sorted(strangers))}, a pod of an earlier run"
    return "" if found else f"{name} does not resolve yet"
