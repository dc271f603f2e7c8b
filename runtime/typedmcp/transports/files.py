"""Files and consoles, by a thread for reading: an event loop cannot wait for a file, and a console is shared."""

from __future__ import annotations

import asyncio
import os
import threading

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
        future: asyncio.Future[bytes] = self._loop.create_future()

        def run() -> None:
            try:
                data = os.read(self._source, _CHUNK)
            except OSError:
                data = b""
            self._loop.call_soon_threadsafe(_settle, future, data)

        # A daemon: a console that says nothing must not keep the process from ending.
        threading.Thread(target=run, daemon=True).start()
        return await future

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
        while self._queued:
            data = b"".join(self._queued)
            self._queued.clear()
            try:
                await asyncio.to_thread(_write, self._sink, data)
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
        """Send what is queued."""
        while self._writer is not None:
            await self._writer


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _settle(future: asyncio.Future[bytes], data: bytes) -> None:
    if not future.done():
        future.set_result(data)
