"""Pipes and sockets, which the event loop can wait for."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from itertools import islice

from typedmcp.transports import HIGH_WATER

__all__ = ["StreamTransport"]

_CHUNK = 1 << 16
"""How many bytes are read at once: as many as a pipe holds."""

_PARTS = 64
"""How many of the queued parts are sent at once."""

_READ_AHEAD = 1 << 20
"""How many bytes are taken from the peer before somebody wants them."""


class StreamTransport:
    """A connection over one or two file descriptors. It works on copies of them, which it makes non-blocking.

    Bytes are written when they are given, and queued only where the peer does not take them: asyncio's own transports
    for pipes would have them wait for the next turn of the event loop.
    """

    def __init__(self, source: int, sink: int, high_water: int = HIGH_WATER) -> None:
        self._loop = asyncio.get_running_loop()
        self._source = os.dup(source)
        try:
            self._sink = os.dup(sink)
        except OSError:
            os.close(self._source)
            raise
        # Others may share what the copies stand for: they get it back as it was.
        self._blocking = {fd: os.get_blocking(fd) for fd in (self._source, self._sink)}
        for descriptor in self._blocking:
            os.set_blocking(descriptor, False)
        self._chunks: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._is_reading = False
        self._at_end = False
        self._error: OSError | None = None
        self._high_water = high_water
        self._queue: deque[memoryview] = deque()
        self._queued = 0
        self._drained = asyncio.Event()
        self._drained.set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._broken = False
        self._closed = False

    # Reading

    async def read(self) -> bytes:
        """The next bytes; empty at the end. Raises `OSError` where the connection broke."""
        while not self._chunks and not self._at_end:
            self._read_on()
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        if not data and self._error is not None:
            raise self._error
        return data

    def _read_on(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self._loop.add_reader(self._source, self._readable)

    def _readable(self) -> None:
        try:
            data = os.read(self._source, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._error = error
            data = b""
        if data:
            self._chunks.append(data)
            self._size += len(data)
        self._at_end = not data
        if self._at_end or self._size > _READ_AHEAD:
            self._is_reading = False
            self._loop.remove_reader(self._source)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Writing

    def write(self, data: bytes) -> None:
        """Send bytes, or queue what the peer does not take now."""
        if self._broken or self._closed:
            return
        sent = 0 if self._queue else self._try_to_send([data])
        if self._broken or sent == len(data):
            return
        if not self._queue:
            self._empty.clear()
            self._loop.add_writer(self._sink, self._writable)
        rest = memoryview(data)[sent:]
        self._queue.append(rest)
        self._queued += len(rest)
        if self._queued > self._high_water:
            self._drained.clear()

    def _try_to_send(self, parts: list[bytes] | list[memoryview]) -> int:
        try:
            return os.writev(self._sink, parts)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:  # a reader that has left is no error here: its answers are of no use to anybody
            self._broken = True
            return 0

    def _writable(self) -> None:
        sent = self._try_to_send(list(islice(self._queue, _PARTS)))
        if self._broken:
            self._queue.clear()
            self._queued = 0
        else:
            self._forget(sent)
        if self._queued <= self._high_water // 2:
            self._drained.set()
        if not self._queue:
            self._empty.set()
            self._loop.remove_writer(self._sink)

    def _forget(self, sent: int) -> None:
        """Take what was sent out of the queue, without copying the rest."""
        self._queued -= sent
        while sent:
            first = self._queue.popleft()
            if len(first) > sent:
                self._queue.appendleft(first[sent:])
                return
            sent -= len(first)

    @property
    def congested(self) -> bool:
        """Whether too much waits to be sent."""
        return not self._drained.is_set()

    async def drain(self) -> None:
        """Wait until the peer keeps up."""
        await self._drained.wait()

    async def close(self) -> None:
        """Send what is queued and end. Cancelled, it ends without sending the rest."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._empty.wait()
        finally:
            self._loop.remove_reader(self._source)
            self._loop.remove_writer(self._sink)
            self._at_end = True
            self._drained.set()
            self._wake()
            for descriptor, blocking in self._blocking.items():
                os.set_blocking(descriptor, blocking)
                os.close(descriptor)
