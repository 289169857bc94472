"""A DNS server on loopback that takes its time as CoreDNS does: 2 ms an answer, 20,000 answers a second."""

import asyncio
from collections.abc import Callable

from tests.trainer.dns_server import DnsServer

LATENCY = 0.002
"""Seconds from a query to its answer."""
CAPACITY = 20_000.0
"""Answers a second."""


class CoreDnsModel(DnsServer):
    """Answers queries in turn; optionally keeps each answer for some seconds, as CoreDNS's cache plugin does."""

    def __init__(self, capacity: float = CAPACITY, cache_seconds: float = 0) -> None:
        super().__init__()
        self.queries = 0
        self._gap = 1 / capacity
        self._free_at = 0.0
        self._cache_seconds = cache_seconds
        self._cache: dict[bytes, tuple[float, bytes]] = {}

    def reply(self, query: bytes, protocol: str, send: Callable[[bytes], None]) -> None:
        """Answer when those before are answered, and not before LATENCY is over."""
        self.queries += 1
        loop = asyncio.get_running_loop()
        self._free_at = max(loop.time(), self._free_at) + self._gap
        loop.call_at(max(loop.time() + LATENCY, self._free_at), lambda: send(self._cached(query, protocol)))

    def _cached(self, query: bytes, protocol: str) -> bytes:
        if not self._cache_seconds:
            return self.answer(query, protocol)
        # CoreDNS's key: name, type, DO and CD bit. Everything in our queries but the id makes these up.
        key = protocol.encode() + query[2:]
        until, answer = self._cache.get(key, (0.0, b""))
        now = asyncio.get_running_loop().time()
        if now >= until:
            answer = self.answer(query, protocol)
            self._cache[key] = now + self._cache_seconds, answer
        return query[:2] + answer[2:]
