"""Files and consoles, by a thread for reading: an event loop cannot wait for a file, and a console is shared."""

from __future__ import annotations

import asyncio
import os
import select

from typedmcp.threads import in_daemon
from typedmcp.transports import HIGH_WATER

__all__ = ["FileTransport"]

_CHUNK = 1 << 16


class FileTransport:
    """A connection over two file descriptors that block."""

    def __init__(self, source: int, sink: int, high_water: int = HIGH_WATER) -> None:
        self._source, self._sink = source, sink
        self._loop = asyncio.get_running_loop()
        self._high_water = high_water
        self._queued: list[bytes] = []
        self._size = 0
        self._drained = asyncio.Event()
        self._drained.set()
        self._writer: asyncio.Task[None] | None = None
        self._broken = False

    async def read(self) -> bytes:
        """The next bytes; empty at the end."""
        try:
            return await in_daemon(_read, self._source)
        except OSError:
            return b""

    def write(self, data: bytes) -> None:
        """Queue bytes to be sent."""
        if self._broken:
            return
        self._queued.append(data)
        self._size += len(data)
        if self._size > self._high_water:
            self._drained.clear()
        if self._writer is None:
            self._writer = self._loop.create_task(self._write_all())

    async def _write_all(self) -> None:
        while self._queued and not self._broken:
            data = b"".join(self._queued)
            self._queued.clear()
            try:
                await in_daemon(_write, self._sink, data)
            except OSError:
                self._broken = True
                self._queued.clear()
            self._size = sum(map(len, self._queued))
            self._drained.set()
        self._writer = None

    @property
    def congested(self) -> bool:
        """Whether too much waits to be sent."""
        return not self._drained.is_set()

    async def drain(self) -> None:
        """Wait until it is sent."""
        await self._drained.wait()

    async def close(self) -> None:
        """Send what is queued. Cancelled, it ends without sending the rest."""
        writer = self._writer
        try:
            if writer is not None:
                await asyncio.wait([writer])
        except asyncio.CancelledError:
            if writer is not None:
                writer.cancel()
            raise
        finally:
            self._broken = True
            self._drained.set()


def _read(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:  # somebody who shares it does not want it to block
            select.select([descriptor], [], [])


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
