"""Two connected transports in one process, for tests and for servers in the same process as the client."""

from __future__ import annotations

import asyncio
from typing import Final

from typedmcp.transports import HIGH_WATER

__all__ = ["MemoryPipe", "MemoryTransport", "memory_pair"]


class MemoryPipe:
    """One direction of a connection."""

    def __init__(self, high_water: int) -> None:
        self.high_water = high_water
        self.chunks: list[bytes] = []
        self.size: int = 0
        self.ended: bool = False
        self.readable: asyncio.Event = asyncio.Event()
        self.drained: asyncio.Event = asyncio.Event()
        self.drained.set()

    def put(self, data: bytes) -> None:
        if self.ended:
            return
        self.chunks.append(data)
        self.size += len(data)
        self.readable.set()
        if self.size > self.high_water:
            self.drained.clear()

    async def take(self) -> bytes:
        await self.readable.wait()
        data = b"".join(self.chunks)
        self.chunks.clear()
        self.size = 0
        self.drained.set()
        if not self.ended:
            self.readable.clear()
        return data

    def end(self) -> None:
        self.ended = True
        self.readable.set()
        self.drained.set()


class MemoryTransport:
    """One end of a pair. The other end reads what this one writes."""

    network: Final = "memory"

    def __init__(self, incoming: MemoryPipe, outgoing: MemoryPipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def read(self) -> bytes:
        """Return the bytes that the other end has written, or empty bytes at the end."""
        return await self._incoming.take()

    def write(self, data: bytes) -> None:
        """Pass bytes to the other end."""
        self._outgoing.put(data)

    @property
    def is_congested(self) -> bool:
        """Return whether more than `high_water` bytes wait to be read."""
        return not self._outgoing.drained.is_set()

    async def drain(self) -> None:
        """Wait until the other end has read enough."""
        await self._outgoing.drained.wait()

    async def close(self) -> None:
        """End both directions. The other end can still read what was written."""
        self._outgoing.end()
        self._incoming.end()


def memory_pair(high_water: int = HIGH_WATER) -> tuple[MemoryTransport, MemoryTransport]:
    """Return two connected transports. An end is congested while more than `high_water` of its bytes are unread."""
    there, back = MemoryPipe(high_water), MemoryPipe(high_water)
    return MemoryTransport(there, back), MemoryTransport(back, there)
