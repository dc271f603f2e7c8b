"""Files and consoles, by a thread for reading: an event loop cannot wait for a file, and a console is shared."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from typedmcp.transports import HIGH_WATER

__all__ = ["FileTransport"]

T = TypeVar("T")

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
            return await self._in_thread(lambda: os.read(self._source, _CHUNK))
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
        while self._queued:
            data = b"".join(self._queued)
            self._queued.clear()
            try:
                await self._in_thread(partial(_write, self._sink, data))
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

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Wait for something that blocks. A daemon does it: a silent console must not keep the process from ending."""
        future: asyncio.Future[T] = self._loop.create_future()

        def run() -> None:
            try:
                settle = partial(future.set_result, work())
            except OSError as error:
                settle = partial(future.set_exception, error)
            with suppress(RuntimeError):  # the loop has been closed meanwhile
                self._loop.call_soon_threadsafe(lambda: None if future.done() else settle())

        threading.Thread(target=run, daemon=True).start()
        return await future


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
