"""A transport over files, consoles, and the pipes of Windows, which reads and writes in threads.

An event loop cannot wait for a file. It must not make a console non-blocking, since other processes share it.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from typing import Final

from typedmcp.transports import HIGH_WATER
from typedmcp.transports.concurrency import run_in_daemon_thread
from typedmcp.transports.descriptors import DescriptorTransport

__all__ = ["FileTransport"]

_CHUNK_BYTES = 1 << 16
"""Bytes that are read at once."""


class FileTransport(DescriptorTransport):
    """A connection over one or two blocking file descriptors. It makes copies of them."""

    network: Final = "pipe"

    def __init__(self, source: int, sink: int, high_water: int = HIGH_WATER) -> None:
        super().__init__(source, sink, high_water)
        self._data = b""
        self._readable = asyncio.Event()
        self._reading: asyncio.Future[bytes] | None = None
        self._queued: list[bytes] = []
        self._writing: asyncio.Future[bool] | None = None
        self._released = False

    # Reading

    async def read(self) -> bytes:
        """Return the next bytes, or empty bytes at the end."""
        if not self._readable.is_set():
            self._start_reading()
        await self._readable.wait()
        data, self._data = self._data, b""
        if not self._at_end:
            self._readable.clear()
        return data

    def consume(self, consumer: Callable[[bytes], object]) -> None:
        """End the stream for the reader, and pass to `consumer` what arrives from now on; empty bytes are the end."""
        self._consumer = consumer
        self._data, self._at_end = b"", True
        self._readable.set()
        self._start_reading()

    def _start_reading(self) -> None:
        if self._reading is None and not self._released:
            self._reading = run_in_daemon_thread(_read, os.dup(self._source))
            self._reading.add_done_callback(self._on_read)

    def _on_read(self, reading: asyncio.Future[bytes]) -> None:
        self._reading = None
        data = reading.result()
        if self._consumer is not None:
            self._consumer(data)
            if data:
                self._start_reading()
        elif not self._released:
            self._data, self._at_end = data, not data
            self._readable.set()

    # Writing

    def write(self, data: bytes) -> None:
        """Queue bytes to be sent."""
        if self._broken or self._closed:
            return
        self._queued.append(data)
        self._count_queued(len(data))
        self._empty.clear()
        if self._writing is None:
            self._start_writing()

    def _start_writing(self) -> None:
        data = b"".join(self._queued)
        self._queued.clear()
        self._writing = run_in_daemon_thread(_write, os.dup(self._sink), data)
        self._writing.add_done_callback(self._on_written)

    def _on_written(self, writing: asyncio.Future[bool]) -> None:
        self._writing = None
        if not writing.result():  # the reader has closed its end: dropping its messages is not an error
            self._broken = True
            self._queued.clear()
        self._queued_bytes = sum(map(len, self._queued))
        self._end_congestion()
        if self._queued:
            self._start_writing()
        else:
            self._empty.set()

    def _release(self) -> None:
        self._released = True
        self._data = b""
        self._queued.clear()
        self._readable.set()
        os.close(self._source)
        os.close(self._sink)


# Each thread has a descriptor of its own, and closes it: a thread may end after the loop, which could not do it then.


def _read(descriptor: int) -> bytes:
    with suppress(OSError), FileIO(descriptor, "rb") as file:
        while (data := file.read(_CHUNK_BYTES)) is None:  # a process that shares the file made it non-blocking
            select.select([file], [], [])
        return data
    return b""


def _write(descriptor: int, data: bytes) -> bool:
    """Write all bytes, and return whether that worked."""
    view = memoryview(data)
    with suppress(OSError), FileIO(descriptor, "wb") as file:
        while view:
            sent = file.write(view)
            if sent is None:
                select.select([], [file], [])
            view = view[sent or 0 :]
    return not view
