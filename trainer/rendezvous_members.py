"""Who has called in at worker 0, and who is turned away."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pod_identity import PodIdentity, Worker
from rendezvous_membership import INDEX, Membership
from rendezvous_wire import ANSWER_TIMEOUT, Channel, RendezvousError, WireError, introduced

CONFIRM_TIMEOUT = 10.0
"""Seconds for a member to confirm the membership, a DNS query of its own included."""

Log = Callable[[str], None]


@dataclass
class Member:
    """A worker that has called in, and the line to it."""

    worker: Worker
    channel: Channel
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the connection has ended."""
    _reply: "asyncio.Future[str] | None" = None

    async def confirm(self, prepare: bytes) -> str:
        """Ask by an encoded `prepare` whether the member can start; the reason why not, empty when it can."""
        self._reply = asyncio.get_running_loop().create_future()
        try:
            await self.channel.send_encoded(prepare)
            return await asyncio.wait_for(self._reply, CONFIRM_TIMEOUT)
        except (WireError, asyncio.TimeoutError) as error:
            self.channel.close()
            return f"{self.worker.pod.hostname} does not confirm ({error or 'no answer'})"

    async def listen(self) -> None:
        """Take the member's replies until its connection ends."""
        answer = ""
        try:
            while True:
                kind, body = await self.channel.receive()
                if kind not in ("ready", "wait"):
                    raise WireError(f"unexpected message {kind!r}")
                self._answer("" if kind == "ready" else str(body))
        except WireError as error:
            answer = f"{self.worker.pod.hostname} is gone ({error})"
        finally:
            self._answer(answer)
            self.gone.set()
            self.channel.close()

    def _answer(self, text: str) -> None:
        if self._reply and not self._reply.done():
            self._reply.set_result(text)


class Members:
    """The workers at worker 0's door: lets in those of its own run, one for each index."""

    def __init__(self, me: Worker, size: int | None, log: Log) -> None:
        self._me = me
        self._size = size
        self._log = log
        self._members: dict[int, Member] = {}
        self.changed = asyncio.Event()
        """Set whenever somebody comes or goes, or `fatal` is set."""
        self.fatal: RendezvousError | None = None
        """Why this gang can never agree."""
        self.in_dns: frozenset[str] = frozenset()
        """The addresses that the service's name had at the last look."""
        self.started = False
        """True once the membership is final: nobody is let in any more, and a lost line is no news."""

    async def serve(self, channel: Channel) -> None:
        """Take one call: let the caller in and listen to it, or turn it away and log the reason."""
        try:
            kind, body = await channel.receive(ANSWER_TIMEOUT)
            if kind != "hello":
                raise WireError(f"unexpected message {kind!r}")
            caller = introduced(body, self._me.domain)
        except WireError as error:
            self._log(f"turned away {channel.peer}: {error}")
            channel.close()
            return
        reason = self.reason_to_refuse(caller)
        if reason:
            self._log(f"turned away {caller.pod.hostname} at {caller.address}: {reason}")
            with contextlib.suppress(WireError):
                await channel.send("refused", reason)
            channel.close()
            return
        await self._welcome(Member(caller, channel))

    async def _welcome(self, member: Member) -> None:
        index = member.worker.pod.index
        previous = self._members.get(index)
        if previous:
            previous.channel.close()
        self._members[index] = member
        self.changed.set()
        with contextlib.suppress(WireError):
            await member.channel.send("welcome")
        await member.listen()
        if self._members.get(index) is member and not self.started:
            del self._members[index]
            self._log(f"lost {member.worker.pod.hostname} at {member.worker.address}")
            self.changed.set()

    def reason_to_refuse(self, caller: Worker) -> str:
        """Why `caller` is no member of this gang; empty when it is one."""
        me, pod = self._me, caller.pod
        for what, theirs, ours in (
            ("TrainJob", pod.job, me.pod.job),
            ("namespace", caller.namespace, me.namespace),
            ("run", caller.generation, me.generation),
            ("port", caller.port, me.port),
        ):
            if theirs != ours:
                return f"it belongs to another {what}: {theirs!r}, here it is {ours!r}"
        if self._size is not None and pod.index >= self._size:
            self.fatal = too_many(pod, self._size)
            self.changed.set()
            return str(self.fatal)
        if self.started:
            return f"too late: this run has started with {len(self._members) + 1} workers"
        if pod.index == 0:
            return f"worker 0 is already here: {me.address}, pod uid {me.uid or 'unknown'}"
        other = next(iter(self._members.values()), None)
        if other and other.worker.pod.by_replica != pod.by_replica:
            return f"its hostname has another pattern than {other.worker.pod.hostname}"
        holder = self._members.get(pod.index)
        if holder is None or (holder.worker.uid, holder.worker.address) == (caller.uid, caller.address):
            return ""  # the same pod calls again when its line is dead; ours may not have noticed yet
        there = holder.worker
        if caller.address in self.in_dns and there.address not in self.in_dns:
            self._log(f"{there.address} gives way to {caller.address}, which DNS has for {pod.hostname}")
            return ""
        return f"worker {pod.index} is already here: {there.address}, pod uid {there.uid or 'unknown'}"

    @property
    def all(self) -> list[Member]:
        """Everyone who has called in, by index."""
        return [self._members[index] for index in sorted(self._members)]

    @property
    def addresses(self) -> frozenset[str]:
        """The addresses of all workers that are here, worker 0's included."""
        return frozenset({member.worker.address for member in self._members.values()} | {self._me.address})

    @property
    def complete(self) -> bool:
        """Whether the workers here could be the whole gang: all of a known size, else at least 2 without a gap."""
        count = len(self._members) + 1
        contiguous = all(index in self._members for index in range(1, count))
        return contiguous and (count >= 2 if self._size is None else count == self._size)

    @property
    def membership(self) -> Membership:
        """All workers that are here. The others' hostnames show which pattern worker 0's own one has."""
        by_replica = any(member.worker.pod.by_replica for member in self._members.values())
        me = replace(self._me, pod=replace(self._me.pod, by_replica=by_replica))
        return Membership(f"{me.host(INDEX)}:{me.port}", len(self._members) + 1)

    def __str__(self) -> str:
        found = len(self._members) + 1
        if self._size is None:
            return f"found {found} workers"
        missing = [self._me.pod.peer(index) for index in range(1, self._size) if index not in self._members]
        if missing:
            return f"found {found} of {self._size} workers (missing: {some(missing)})"
        return f"found all {found} workers"


def too_many(pod: PodIdentity, size: int) -> RendezvousError:
    """The error for a worker whose index the gang has no place for."""
    return RendezvousError(
        f"worker index {pod.index} ({pod.hostname}) does not fit TF_NUM_WORKERS={size}: numNodes and TF_NUM_WORKERS of "
        "the TrainJob must be the same number; change numNodes where both are set from it",
        code=2,
    )


def some(names: list[str], limit: int = 8) -> str:
    """The first few names, and how many more there are.

    >>> some(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {rest} more" if rest > 0 else "")
