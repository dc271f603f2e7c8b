"""A transport over files and consoles, which reads and writes in threads.

An event loop cannot wait for a file. It must not make a console non-blocking, since other processes share it.
"""

from __future__ import annotations

import asyncio
import os
import select
from typing import Final

from typedmcp.transports import HIGH_WATER
from typedmcp.transports.concurrency import run_in_daemon_thread

__all__ = ["FileTransport"]

_CHUNK_BYTES = 1 << 16
"""Bytes that are read at once."""


class FileTransport:
    """A connection over two blocking file descriptors."""

    network: Final = "pipe"

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
        """Return the next bytes, or empty bytes at the end."""
        try:
            return await run_in_daemon_thread(_read, self._source)
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
                await run_in_daemon_thread(_write, self._sink, data)
            except OSError:
                self._broken = True
                self._queued.clear()
            self._size = sum(map(len, self._queued))
            self._drained.set()
        self._writer = None

    @property
    def is_congested(self) -> bool:
        """Return whether more than `high_water` bytes wait to be sent."""
        return not self._drained.is_set()

    async def drain(self) -> None:
        """Wait until the queued bytes are sent."""
        await self._drained.wait()

    async def close(self) -> None:
        """Send the queued bytes and end the connection. If cancelled, drop the rest."""
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
            return os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:  # a process that shares the file made it non-blocking
            select.select([descriptor], [], [])


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
