"""What workers say to each other before training: one JSON object a line over TCP.

worker k → worker 0   {"hello": {hostname, namespace, address, port, generation, uid}}
worker 0 → worker k   {"welcome": {}}  or  {"refused": reason}
worker 0 → worker k   {"prepare": {pattern, size}}        the membership, to be confirmed
worker k → worker 0   {"ready": {}}  or  {"wait": reason}
worker 0 → worker k   {"go": {}}  or  {"abort": {"reason": reason, "code": exit code}}
worker 0 → worker k   {"knock": {…as hello}}   on a connection of its own: "I am here, call me"
"""

import asyncio
import contextlib
import ipaddress
import json
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from pod_identity import PodIdentity, Worker

MAX_LINE = 1 << 16
"""Bytes in a line; the longest are the reasons of failures, some kB."""
ANSWER_TIMEOUT = 5.0
"""Seconds to wait for a peer that has to answer at once."""

Message = dict[str, Any]


class WireError(Exception):
    """The connection is lost, or what it says is not this protocol."""


class RendezvousError(Exception):
    """The workers cannot agree. `code` is the exit code: 2 when running again cannot help, else 1."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Timing:
    """How long the rendezvous may take."""

    timeout: float = 300.0
    """Seconds until it gives up, naming the missing workers."""
    look: float = 5.0
    """Seconds between two looks when the number of workers is not known beforehand, and between two log lines."""


def encode(kind: str, body: Any = None) -> bytes:
    """A message as it is sent."""
    return json.dumps({kind: {} if body is None else body}).encode() + b"\n"


class Channel:
    """One connection that carries messages."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        sock = writer.get_extra_info("socket")
        # A peer whose node died sends no FIN; without keepalive its index would stay taken until the time-out.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    @classmethod
    async def connect(cls, address: str, port: int) -> "Channel":
        """Call a worker; raises WireError when nobody takes the call in time."""
        try:
            opening = asyncio.open_connection(address, port, limit=MAX_LINE)
            return cls(*await asyncio.wait_for(opening, ANSWER_TIMEOUT))
        except (OSError, asyncio.TimeoutError) as error:
            raise WireError(f"{address} does not take the call ({error or 'no answer'})") from error

    @property
    def peer(self) -> str:
        """The other side's address."""
        name = self._writer.get_extra_info("peername")
        return str(name[0]) if name else "a closed connection"

    async def send(self, kind: str, body: Any = None) -> None:
        """Send one message; raises WireError when the connection is lost."""
        await self.send_encoded(encode(kind, body))

    async def send_encoded(self, line: bytes) -> None:
        """Send a message that goes to many, and so is encoded once."""
        try:
            self._writer.write(line)
            await self._writer.drain()
        except OSError as error:
            raise WireError(f"connection lost ({error})") from error

    async def receive(self, timeout: float | None = None) -> tuple[str, Any]:
        """The next message's kind and body; raises WireError for anything else, and after `timeout` seconds."""
        try:
            line = await asyncio.wait_for(self._reader.readline(), timeout)
        except asyncio.TimeoutError as error:
            raise WireError("no answer") from error
        except (OSError, ValueError) as error:  # ValueError: a line over the limit
            raise WireError(f"connection lost ({error})") from error
        if not line:
            raise WireError("connection closed")
        try:
            message = json.loads(line)
            ((kind, body),) = message.items()
        except (ValueError, AttributeError) as error:
            raise WireError("not in rendezvous: the port speaks another protocol") from error
        return kind, body

    async def wait_closed_by_peer(self, timeout: float) -> None:
        """Let the other side close first, so that our port is left without TIME_WAIT for TensorFlow."""
        with contextlib.suppress(asyncio.TimeoutError, OSError, ValueError):
            await asyncio.wait_for(self._reader.read(), timeout)

    def close(self) -> None:
        """Close the connection; more than once does no harm."""
        self._writer.close()


class Listener:
    """A port that takes calls. Each call is served by a task of its own, and all of them end with the port."""

    def __init__(self, serve: Callable[[Channel], Coroutine[Any, Any, None]]) -> None:
        self._serve = serve
        self._calls: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self, address: str, port: int) -> None:
        """Listen; raises RendezvousError when the port is taken or the address is not this machine's."""
        try:
            self._server = await asyncio.start_server(self._take, address, port, backlog=4096, limit=MAX_LINE)
        except OSError as error:
            raise RendezvousError(f"cannot listen on {address} port {port}: {error}") from error

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        call = asyncio.create_task(self._serve(Channel(reader, writer)))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    def close(self) -> None:
        """Close the port and all its calls."""
        if self._server:
            self._server.close()
        for call in self._calls:
            call.cancel()


def introduction(worker: Worker) -> Message:
    """What a worker says of itself."""
    return {
        "hostname": worker.pod.hostname,
        "namespace": worker.namespace,
        "address": worker.address,
        "port": worker.port,
        "generation": worker.generation,
        "uid": worker.uid,
    }


def introduced(body: Any, domain: str) -> Worker:
    """The worker that introduces itself; raises WireError when it does not say everything, or not in the right form."""
    try:
        fields = {key: body[key] for key in ("hostname", "namespace", "address", "generation", "uid")}
        if not all(isinstance(value, str) for value in fields.values()) or type(body["port"]) is not int:
            raise TypeError("wrong type")
        ipaddress.ip_address(fields["address"])
        return Worker(
            PodIdentity.parse(fields["hostname"]),
            fields["namespace"],
            domain,
            fields["address"],
            body["port"],
            fields["generation"],
            fields["uid"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"an introduction that is not understood ({error})") from error
