"""The addresses of a name, asked of the cluster's DNS server directly.

`socket.getaddrinfo` would do for a single look. A rendezvous looks again and again at names that are about to change,
and needs three things it does not offer: a time-out of its own, the difference between "no such name" and "no answer",
and a way past the server's cache. CoreDNS keeps answers, negative ones too, for 5 s and more
(https://coredns.io/plugins/cache/), in entries of their own for each combination of the query's DO and CD bits. So
looks take turns through the four combinations, none of which changes an answer from an unsigned zone.
"""

import asyncio
import contextlib
import ipaddress
import itertools
import secrets
import socket
import struct
from pathlib import Path

A, AAAA, OPT = 1, 28, 41
NOERROR, NXDOMAIN = 0, 3
_QR, _TC, _RD, _CD = 0x8000, 0x0200, 0x0100, 0x0010
_DO = 0x8000
UDP_SIZE = 1232
"""Bytes accepted by UDP: what fits every path unfragmented (https://www.dnsflagday.net/2020/)."""
TIMEOUTS = (0.5, 2.0)
"""Seconds to wait for one answer, and for that to the repeated query: datagrams get lost when many ask at once."""


class DnsError(Exception):
    """No usable answer: nothing is known about the name. The message names the server and the reason."""


class Resolver:
    """Asks the name servers of a resolv.conf, or the one given, for a name's addresses of one family."""

    def __init__(self, servers: list[str], ipv6: bool, port: int = 53) -> None:
        if not servers:
            raise DnsError("no name server: /etc/resolv.conf has no `nameserver` line")
        self._servers = servers
        self._type = AAAA if ipv6 else A
        self._port = port
        self._turn = itertools.count()

    @classmethod
    def from_resolv_conf(cls, path: Path, ipv6: bool) -> "Resolver":
        """The system's servers; raises DnsError when there are none."""
        try:
            lines = [line.split() for line in path.read_text().splitlines()]
        except OSError as error:
            raise DnsError(f"no name server: {error}") from error
        return cls([words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"], ipv6)

    async def __call__(self, name: str) -> frozenset[str]:
        """All addresses of the fully qualified `name`; empty when it has none. Raises DnsError without an answer."""
        turn = next(self._turn)
        ident = secrets.token_bytes(2)
        query = _query(ident, name, self._type, do=bool(turn & 1), cd=bool(turn & 2))
        failures = []
        for server in self._servers:
            found = await self._ask(server, query)
            if isinstance(found, frozenset):
                return found
            failures.append(f"{server}: {found}")
        raise DnsError(f"{name}: " + "; ".join(failures))

    async def _ask(self, server: str, query: bytes) -> frozenset[str] | str:
        """One server's answer, or the reason why there is none."""
        try:
            for timeout in TIMEOUTS:
                with contextlib.suppress(asyncio.TimeoutError):
                    return _addresses(await asyncio.wait_for(self._exchange(server, query), timeout), self._type)
        except (OSError, asyncio.IncompleteReadError, DnsError) as error:
            return str(error)
        return f"no answer within {sum(TIMEOUTS):g} s"

    async def _exchange(self, server: str, query: bytes) -> bytes:
        answer = await self._ask_udp(server, query)
        truncated = struct.unpack_from("!H", answer, 2)[0] & _TC
        return await self._ask_tcp(server, query) if truncated else answer

    async def _ask_udp(self, server: str, query: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        with socket.socket(_family(server), socket.SOCK_DGRAM) as udp:
            udp.setblocking(False)
            udp.connect((server, self._port))
            await loop.sock_sendall(udp, query)
            while True:
                answer = await loop.sock_recv(udp, 65535)
                if _answers(answer, query):
                    return answer

    async def _ask_tcp(self, server: str, query: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(server, self._port)
        try:
            writer.write(struct.pack("!H", len(query)) + query)
            (size,) = struct.unpack("!H", await reader.readexactly(2))
            answer = await reader.readexactly(size)
        finally:
            writer.close()
        if not _answers(answer, query):
            raise DnsError("an answer to another question")
        return answer


def _family(server: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in server else socket.AF_INET


def _query(ident: bytes, name: str, qtype: int, *, do: bool, cd: bool) -> bytes:
    """One question for `name`, with an EDNS record that carries the size accepted by UDP and the DO bit."""
    labels = b"".join(bytes([len(label)]) + label for label in name.encode("ascii").rstrip(b".").split(b"."))
    header = ident + struct.pack("!5H", _RD | (_CD if cd else 0), 1, 0, 0, 1)
    edns = b"\0" + struct.pack("!HHIH", OPT, UDP_SIZE, _DO if do else 0, 0)
    return header + labels + b"\0" + struct.pack("!HH", qtype, 1) + edns


def _answers(answer: bytes, query: bytes) -> bool:
    """Whether this is the answer to our question, and not a stray or forged datagram."""
    if len(answer) < 12 or answer[:2] != query[:2] or not struct.unpack_from("!H", answer, 2)[0] & _QR:
        return False
    end = _skip_name(query, 12) + 4
    return answer[12:end].lower() == query[12:end].lower()


def _addresses(answer: bytes, qtype: int) -> frozenset[str]:
    """The addresses in an answer. Raises DnsError for a failure that says nothing about the name."""
    try:
        _, flags, questions, records, _, _ = struct.unpack_from("!6H", answer)
        code = flags & 0xF
        if code == NXDOMAIN:
            return frozenset()
        if code != NOERROR:
            raise DnsError(f"the server failed with response code {code}")
        offset = 12
        for _ in range(questions):
            offset = _skip_name(answer, offset) + 4
        found = set()
        for _ in range(records):
            offset = _skip_name(answer, offset)
            rtype, _, _, size = struct.unpack_from("!HHIH", answer, offset)
            offset += 10
            if rtype == qtype:
                found.add(str(ipaddress.ip_address(answer[offset : offset + size])))
            offset += size
        return frozenset(found)
    except (struct.error, IndexError, ValueError) as error:
        raise DnsError(f"a malformed answer ({error})") from error


def _skip_name(message: bytes, offset: int) -> int:
    """The offset after the name at `offset`; a compression pointer always ends one."""
    while (length := message[offset]) != 0:
        if length >= 0xC0:
            return offset + 2
        offset += 1 + length
    return offset + 1
