"""A transport over pipes and sockets, for which the event loop can wait."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
from collections import deque
from collections.abc import Callable
from itertools import islice

if sys.platform == "linux":
    import fcntl

from typedmcp.observers import Network
from typedmcp.transports import HIGH_WATER
from typedmcp.transports.descriptors import DescriptorTransport

__all__ = ["StreamTransport"]

_CHUNK_BYTES = 1 << 16
"""Bytes that are read at once: as many as a pipe holds."""

_MAX_CHUNK_BYTES = 1 << 20
"""Bytes that are read at once from a peer that fills every chunk, and that an enlarged pipe holds."""

_PARTS_PER_WRITE = 64
"""Queued parts that are sent at once."""

_READ_AHEAD_BYTES = 1 << 20
"""Bytes that are received before the reader asks for them."""


_read, _write = os.read, os.write


class StreamTransport(DescriptorTransport):
    """A connection over one or two file descriptors. It makes non-blocking copies of them.

    `write` sends at once, and queues only what the peer does not accept. asyncio's own transports for pipes would delay
    it to the next iteration of the event loop.
    """

    def __init__(self, source: int, sink: int, high_water: int = HIGH_WATER) -> None:
        super().__init__(source, sink, high_water)
        self._loop = asyncio.get_running_loop()
        # Other processes may share the open files: `close` restores their mode.
        self._blocking = {fd: os.get_blocking(fd) for fd in (self._source, self._sink)}
        for descriptor in self._blocking:
            os.set_blocking(descriptor, False)
        self._chunks: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._is_reading = False
        self._chunk_bytes = _CHUNK_BYTES
        self._error: OSError | None = None
        self._queue: deque[memoryview] = deque()

    @property
    def network(self) -> Network | None:
        """The carrier of the connection, as the file descriptor says it while it is open."""
        try:
            if not stat.S_ISSOCK(os.fstat(self._source).st_mode):
                return "pipe"
            with socket.socket(fileno=os.dup(self._source)) as connection:
                return "unix" if connection.family == socket.AF_UNIX else "tcp"
        except OSError:
            return None

    # Reading

    async def read(self) -> bytes:
        """Return the next bytes, or empty bytes at the end. Raises `OSError` if the connection broke."""
        while not self._chunks and not self._at_end:
            self._start_reading()
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

    def _start_reading(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self._loop.add_reader(self._source, self._readable)

    def _stop_reading(self) -> None:
        self._is_reading = False
        self._loop.remove_reader(self._source)

    def _readable(self) -> None:
        try:
            data = _read(self._source, self._chunk_bytes)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._error = error
            data = b""
        if not data:
            self._stop_reading()
        elif len(data) == self._chunk_bytes < _MAX_CHUNK_BYTES:
            self._chunk_bytes = _enlarge_pipe(self._source)
        consumer = self._consumer
        if consumer is not None and (data or self._at_end):
            if consumer(data) is False and self._consumer is consumer:
                self._consumer = None
            return
        if data:
            self._chunks.append(data)
            self._size += len(data)
            if self._size > _READ_AHEAD_BYTES:
                self._stop_reading()
        self._at_end = not data
        self._wake()

    def tap(self, take: Callable[[bytes], bool]) -> None:
        """Pass chunks to `take` as they arrive, until it returns False. Does nothing while there is one for `read`."""
        if not self._chunks and not self._at_end:
            self._consumer = take
            self._start_reading()

    def consume(self, consumer: Callable[[bytes], object]) -> None:
        """End the stream for the reader, and pass to `consumer` what arrives from now on; empty bytes are the end."""
        self._consumer = consumer
        self._chunks.clear()
        self._size = 0
        self._at_end = True
        self._wake()
        self._start_reading()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Writing

    def write(self, data: bytes) -> None:
        """Send bytes, and queue those that the peer does not accept now."""
        if self._broken or self._closed:
            return
        sent = 0 if self._queue else self._try_to_send(data)
        if sent == len(data):
            return
        if sent and _enlarge_pipe(self._sink) > sent:
            sent += self._try_to_send([memoryview(data)[sent:]])
        if self._broken or sent == len(data):
            return
        if not self._queue:
            self._empty.clear()
            self._loop.add_writer(self._sink, self._writable)
        rest = memoryview(data)[sent:]
        self._queue.append(rest)
        self._count_queued(len(rest))

    def _try_to_send(self, data: bytes | list[memoryview]) -> int:
        try:
            return os.writev(self._sink, data) if isinstance(data, list) else _write(self._sink, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:  # the reader has closed its end: dropping its messages is not an error
            self._broken = True
            self._on_broken()
            return 0

    def _on_broken(self) -> None:
        """Go on reading from a peer that has closed the end that it reads."""

    def _writable(self) -> None:
        sent = self._try_to_send(list(islice(self._queue, _PARTS_PER_WRITE)))
        if self._broken:
            sent = self._queued_bytes
        self._remove_sent(sent)
        self._count_sent(sent)
        if not self._queue:
            self._empty.set()
            self._loop.remove_writer(self._sink)

    def _remove_sent(self, sent: int) -> None:
        """Remove the sent bytes from the queue, without copying the rest."""
        while sent:
            first = self._queue.popleft()
            if len(first) > sent:
                self._queue.appendleft(first[sent:])
                return
            sent -= len(first)

    def _release(self) -> None:
        self._loop.remove_reader(self._source)
        self._loop.remove_writer(self._sink)
        self._wake()
        for descriptor, blocking in self._blocking.items():
            os.set_blocking(descriptor, blocking)
            os.close(descriptor)


def _enlarge_pipe(descriptor: int) -> int:
    """Let a pipe hold more bytes, if the system allows it. Return the bytes that are worth reading at once.

    A large message then takes a sixteenth of the wake-ups of both processes. Most pipes never carry one, so it is done
    when a message does not fit.
    """
    if sys.platform == "linux":
        try:
            return fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _MAX_CHUNK_BYTES)
        except OSError:  # not a pipe, or the user has too many large ones
            pass
    return _CHUNK_BYTES
