"""Streams of messages over transports, and transports over streams of messages.

mcp 1.x hands a pair of streams from a transport to a session: `async with stdio_server() as (read, write)`. Here the
pair stands on a `typedmcp.Transport`, which the session takes from it. A program that reads or writes messages itself,
or that has streams of its own such as those of AnyIO, works as well: `transport_of` makes a transport of any pair.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from types import TracebackType
from typing import Any, Protocol, Self, cast

import anyio

from typedmcp import Transport
from typedmcp.protocol.framing import Framer, frame_of
from typedmcp.transports import HIGH_WATER
from typedmcp_mcp1 import types
from typedmcp_mcp1.shared.message import SessionMessage

__all__ = ["MessageSource", "MessageTarget", "MessageTransport", "ReadStream", "WriteStream", "transport_of"]

_log = logging.getLogger("typedmcp")


class MessageSource(Protocol):
    """A stream that messages are read from, such as a `MemoryObjectReceiveStream` of AnyIO."""

    async def receive(self) -> SessionMessage | Exception: ...
    async def aclose(self) -> None: ...


class MessageTarget(Protocol):
    """A stream that messages are written to, such as a `MemoryObjectSendStream` of AnyIO."""

    async def send(self, item: SessionMessage, /) -> None: ...
    async def aclose(self) -> None: ...


class _End:
    """One of the two streams over a transport, which both close."""

    def __init__(self, transport: Transport) -> None:
        self.transport: Transport = transport
        """The transport whose messages these are."""
        self.is_used: bool = False
        """True once a message was read or written here."""

    async def aclose(self) -> None:
        """Close the transport."""
        await self.transport.close()

    def close(self) -> None:
        """Do nothing: the transport is closed where it was opened."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


class ReadStream(_End):
    """The messages that arrive over a transport. A line that is no message is an exception in its place."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._framer = Framer()
        self._lines: deque[bytes] = deque()

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message. Raises `anyio.EndOfStream` at the end."""
        self.is_used = True
        while not self._lines:
            data = await self.transport.read()
            lines = self._framer.feed(data) if data else self._framer.end()
            self._lines.extend(frame_of(line) for line in lines)
            if not data and not lines:
                raise anyio.EndOfStream
        try:
            return SessionMessage(types.decode(self._lines.popleft(), types.JSONRPCMessage))
        except ValueError as error:
            return error

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class WriteStream(_End):
    """Sends messages over a transport."""

    async def send(self, item: SessionMessage) -> None:
        """Send a message, and wait while the peer does not read."""
        self.is_used = True
        self.transport.write(types.encode(item.message) + b"\n")
        if self.transport.is_congested:
            await self.transport.drain()


class MessageTransport:
    """A `typedmcp.Transport` over two streams of messages, which it closes."""

    def __init__(self, source: MessageSource, target: MessageTarget) -> None:
        self._source = source
        self._target = target
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._sending: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()

    async def read(self) -> bytes:
        """Return the next message as a line, or empty bytes at the end."""
        while True:
            try:
                item = await self._source.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return b""
            if isinstance(item, Exception):
                _log.warning("a stream of messages has an exception: %r", item)
            else:
                return types.encode(item.message) + b"\n"

    def write(self, data: bytes) -> None:
        """Queue messages to be sent."""
        lines = [line for line in data.split(b"\n") if line]
        self._waiting.extend(lines)
        self._size += sum(map(len, lines))
        if self._size > HIGH_WATER:
            self._drained.clear()
        if self._waiting and (self._sending is None or self._sending.done()):
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._waiting:
                line = self._waiting.popleft()
                self._size -= len(line)
                await self._target.send(SessionMessage(types.decode(line, types.JSONRPCMessage)))
                if self._size <= HIGH_WATER:
                    self._drained.set()
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._waiting.clear()
            self._size = 0
        finally:
            self._drained.set()

    @property
    def is_congested(self) -> bool:
        """True while many bytes wait to be sent."""
        return not self._drained.is_set()

    async def drain(self) -> None:
        """Wait until few bytes wait to be sent."""
        await self._drained.wait()

    async def close(self) -> None:
        """Send what waits, as far as the other side reads within a second, and close both streams."""
        if self._sending is not None and not self._sending.done():
            await asyncio.wait([self._sending], timeout=1)
            self._sending.cancel()
        await self._target.aclose()
        await self._source.aclose()


def transport_of(read: Any, write: Any) -> Transport:
    """Return the transport beneath two streams, or one that is made of them."""
    transport: Any = getattr(read, "transport", None)
    if transport is not None and transport is getattr(write, "transport", None) and not read.is_used:
        return cast(Transport, transport)
    return MessageTransport(read, write)
