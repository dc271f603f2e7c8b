"""Two ends in one process, for tests and for servers that a client holds as an object."""

from __future__ import annotations

import asyncio

from typedmcp.transports import HIGH_WATER

__all__ = ["MemoryTransport", "memory_pair"]


class _Pipe:
    """One direction."""

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
    """One end of a pair: what it writes, the other reads."""

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def read(self) -> bytes:
        """The bytes that the other end has written since."""
        return await self._incoming.take()

    def write(self, data: bytes) -> None:
        """Put bytes where the other end reads them."""
        self._outgoing.put(data)

    @property
    def congested(self) -> bool:
        """Whether the other end has not read what it should."""
        return not self._outgoing.drained.is_set()

    async def drain(self) -> None:
        """Wait until the other end has read."""
        await self._outgoing.drained.wait()

    async def close(self) -> None:
        """End both directions; what was written can still be read."""
        self._outgoing.end()
        self._incoming.end()


def memory_pair(high_water: int = HIGH_WATER) -> tuple[MemoryTransport, MemoryTransport]:
    """Two connected ends. `high_water` is how many unread bytes make the writer's end congested."""
    there, back = _Pipe(high_water), _Pipe(high_water)
    return MemoryTransport(there, back), MemoryTransport(back, there)
