"""A DNS server on loopback that answers as CoreDNS does for a headless service, over UDP and TCP."""

import asyncio
import contextlib
import ipaddress
import socket
import struct
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

from dns_query import AAAA, NXDOMAIN, A


class DnsServer:
    """Names and their addresses, changed at will while it runs."""

    def __init__(self) -> None:
        self.records: dict[str, set[str]] = defaultdict(set)
        self.code = 0
        """The response code for names that exist; another one makes every answer a failure."""
        self.port = 0
        self.asked: list[tuple[str, str, bool, bool]] = []
        """Protocol, name, DO bit, CD bit of every query."""

    @asynccontextmanager
    async def running(self, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator["DnsServer"]:
        """Serve UDP and TCP on one port: this one, or any that is free."""
        server = await asyncio.start_server(self._serve_tcp, host, port)
        self.port = server.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: _Udp(self), local_addr=(host, self.port))
        # Room for a query of each of a thousand workers.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        try:
            yield self
        finally:
            transport.close()
            server.close()

    async def _serve_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def send(answer: bytes) -> None:
            writer.write(struct.pack("!H", len(answer)) + answer)
            writer.close()

        with contextlib.suppress(asyncio.IncompleteReadError):  # the client has gone
            (size,) = struct.unpack("!H", await reader.readexactly(2))
            self.reply(await reader.readexactly(size), "tcp", send)

    def reply(self, query: bytes, protocol: str, send: Callable[[bytes], None]) -> None:
        """Answer at once."""
        send(self.answer(query, protocol))

    def answer(self, query: bytes, protocol: str) -> bytes:
        """The answer, cut to nothing but the truncation bit when UDP cannot carry it."""
        labels, offset = [], 12
        while length := query[offset]:
            labels.append(query[offset + 1 : offset + 1 + length].decode().lower())
            offset += 1 + length
        name = ".".join(labels)
        (qtype,) = struct.unpack_from("!H", query, offset + 1)
        question = query[12 : offset + 5]
        # EDNS, which the resolvers of libc and of TensorFlow may leave out.
        size, _, flags = struct.unpack_from("!HBxH", query, offset + 8) if len(query) > offset + 8 else (512, 0, 0)
        cd = bool(struct.unpack_from("!H", query, 2)[0] & 0x10)
        self.asked.append((protocol, name, bool(flags & 0x8000), cd))
        found = self.records.get(name, set())
        addresses = [ipaddress.ip_address(text).packed for text in sorted(found)]
        fitting = [packed for packed in addresses if {A: 4, AAAA: 16}[qtype] == len(packed)]
        body = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", qtype, 1, 5, len(packed)) + packed for packed in fitting)
        code = self.code or (0 if found else NXDOMAIN)
        if protocol == "udp" and 12 + len(question) + len(body) > size:
            return query[:2] + struct.pack("!5H", 0x8600 | code, 1, 0, 0, 0) + question
        return query[:2] + struct.pack("!5H", 0x8400 | code, 1, len(fitting), 0, 0) + question + body


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._server.reply(data, "udp", lambda answer: self._transport.sendto(answer, addr))
