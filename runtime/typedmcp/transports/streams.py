"""Pipes and sockets, by the event loop."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from typing import Any, cast

from typedmcp.transports import HIGH_WATER

__all__ = ["StreamTransport", "pipe_transport"]

_READ_AHEAD = 1 << 20
"""How many bytes are taken from the peer before somebody wants them."""


class _Reading(asyncio.Protocol):
    """Collects what arrives until it is read, and stops reading where nobody does."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._paused = False
        self._ended = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._chunks.append(data)
        self._size += len(data)
        if self._size > _READ_AHEAD and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self._ended = True
        self._wake()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._error = exc
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self) -> bytes:
        """What has arrived; empty at the end."""
        while not self._chunks and not self._ended:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        if self._paused and not self._ended:
            self._paused = False
            self._transport.resume_reading()
        if not data and isinstance(self._error, OSError):
            raise self._error
        return data


class _Writing(asyncio.Protocol):
    """Knows whether the peer reads what was written."""

    def __init__(self) -> None:
        self.drained = asyncio.Event()
        self.drained.set()
        self.lost = asyncio.Event()

    def pause_writing(self) -> None:
        self.drained.clear()

    def resume_writing(self) -> None:
        self.drained.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # a reader that left is no error here
        self.drained.set()
        self.lost.set()


class StreamTransport:
    """A connection over one or two file descriptors that the event loop can wait for."""

    def __init__(self, reading: _Reading, source: Any, writing: _Writing, sink: Any) -> None:
        self._reading = reading
        self._source = source
        self._writing = writing
        self._sink = sink

    async def read(self) -> bytes:
        """The next bytes; empty at the end."""
        return await self._reading.take()

    def write(self, data: bytes) -> None:
        """Queue bytes to be sent."""
        if not self._writing.lost.is_set():
            self._sink.write(data)

    @property
    def congested(self) -> bool:
        """Whether too much waits to be sent."""
        return not self._writing.drained.is_set()

    async def drain(self) -> None:
        """Wait until the peer keeps up."""
        await self._writing.drained.wait()

    async def close(self) -> None:
        """Send what is queued and end."""
        self._sink.close()
        self._source.close()
        await self._writing.lost.wait()


async def pipe_transport(source: int, sink: int, high_water: int = HIGH_WATER) -> StreamTransport:
    """A transport that reads from one file descriptor and writes to another. It owns copies of them."""
    loop = asyncio.get_running_loop()
    reading, writing = _Reading(), _Writing()
    reader: Any
    writer: Any
    reader, _ = await _connect(loop, lambda: reading, os.dup(source), write=False)
    writer, _ = await _connect(loop, lambda: writing, os.dup(sink), write=True)
    writer.set_write_buffer_limits(high=high_water)
    return StreamTransport(reading, reader, writing, writer)


async def _connect(loop: asyncio.AbstractEventLoop, protocol: Any, descriptor: int, *, write: bool) -> Any:
    if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return await loop.create_connection(protocol, sock=_socket(descriptor))
    file = cast(Any, os.fdopen(descriptor, "wb" if write else "rb", buffering=0))
    return await (loop.connect_write_pipe(protocol, file) if write else loop.connect_read_pipe(protocol, file))


def _socket(descriptor: int) -> socket.socket:
    made = socket.socket(fileno=descriptor)
    made.setblocking(False)
    return made
