"""Bases of transports: of those that queue bytes to be sent, and of those over file descriptors."""

from __future__ import annotations

import asyncio
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable

if sys.platform == "linux":
    import fcntl
    import termios

from typedmcp.transports import HIGH_WATER

__all__ = ["DescriptorTransport", "QueueingTransport"]


class QueueingTransport:
    """Queues what it sends. It is congested while more than `high_water` bytes wait."""

    def __init__(self, high_water: int = HIGH_WATER) -> None:
        self.is_congested: bool = False
        """True while more than `high_water` bytes wait to be sent."""
        self._high_water = high_water
        self._queued_bytes = 0
        self._drained = asyncio.Event()
        self._drained.set()
        self._closed = False

    async def drain(self) -> None:
        """Wait until enough of the queued bytes is sent."""
        await self._drained.wait()

    def _count_queued(self, size: int) -> None:
        self._queued_bytes += size
        if self._queued_bytes > self._high_water:
            self.is_congested = True
            self._drained.clear()

    def _count_sent(self, size: int) -> None:
        self._queued_bytes -= size
        if self._queued_bytes <= self._high_water // 2:
            self._end_congestion()

    def _end_congestion(self) -> None:
        self.is_congested = False
        self._drained.set()


class DescriptorTransport(QueueingTransport, ABC):
    """A connection over one or two file descriptors. It makes copies of them."""

    def __init__(self, source: int, sink: int, high_water: int = HIGH_WATER) -> None:
        super().__init__(high_water)
        self._source = os.dup(source)
        try:
            self._sink = os.dup(sink)
        except OSError:
            os.close(self._source)
            raise
        self._at_end = False
        self._consumer: Callable[[bytes], object] | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self._broken = False

    def count_unread(self) -> int:
        """Return the bytes in the pipe to the peer that it has not read. 0 where the system does not tell."""
        if sys.platform != "linux":
            return 0
        return int.from_bytes(fcntl.ioctl(self._sink, termios.FIONREAD, bytes(4)), sys.byteorder)

    async def close(self) -> None:
        """Send the queued bytes and end the connection. If cancelled, drop the rest."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._empty.wait()
        finally:
            self._at_end = True
            self._end_congestion()
            self._release()

    @abstractmethod
    def _release(self) -> None:
        """Close the descriptors, and wake the reader."""
