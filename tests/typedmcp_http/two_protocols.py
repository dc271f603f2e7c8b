"""uvicorn's protocol class and that of this library, each with an application of the same making.

A `Side` has one of them. Its connections are real sockets, or `Pipe`s without sockets. What a protocol class writes is
recorded, so that a test can give both sides the same bytes and compare their responses.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from ssl import SSLContext
from typing import Any, Final
from unittest.mock import patch

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

import typedmcp
from tests.server.http.asgi_driver import ToolHandler
from typedmcp.server.http.asgi import AsgiApp

__all__ = ["Connection", "Pipe", "Side", "SocketConnection", "Tap", "ignore", "known_ids", "serving_side"]

_DATE: Final = (b"date", b"Thu, 01 Jan 1970 00:00:00 GMT")
_IDLE_TURNS: Final = 10
"""Turns of the loop without any change after which a connection is at rest."""


@asynccontextmanager
async def serving_side(
    kind: type[HttpToolsProtocol],
    handler: Any = None,
    *,
    wrap: Callable[[AsgiApp], Any] = lambda app: app,
    config: dict[str, Any] | None = None,
    tls: SSLContext | None = None,
    **options: Any,
) -> AsyncGenerator[Side]:
    """Serve a handler with a protocol class. `wrap` puts something around the application."""
    handler = ToolHandler() if handler is None else handler
    options.setdefault("on_diagnostic", ignore)
    with known_ids():
        side = Side(kind, typedmcp.asgi(handler, keep_alive=1000.0, **options), handler, wrap, config or {})
        side.tls = tls
        try:
            yield side
        finally:
            await side.close()


def _connect() -> tuple[socket.socket, socket.socket]:
    """Return the ends of a TCP connection. No port stays open, where a client of another test could connect."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        while True:
            server, address = listening.accept()
            if address == client.getsockname():
                return client, server
            server.close()


def ignore(_: object) -> None:
    """Do nothing with a diagnostic."""


def known_ids() -> Any:
    """Make random ids the same in each run: they are counted."""
    counter = itertools.count()

    def counted(size: int = 0) -> str:
        return f"{next(counter):0{size}d}"

    return patch.multiple("secrets", token_urlsafe=counted, token_hex=counted)


class Side:
    """A protocol class, the application that it serves, and what uvicorn's server has beside them."""

    def __init__(
        self,
        kind: type[HttpToolsProtocol],
        app: AsgiApp,
        handler: Any,
        wrap: Callable[[AsgiApp], Any] = lambda app: app,
        config: dict[str, Any] | None = None,
    ) -> None:
        self.kind = kind
        self.app = app
        self.handler = handler
        given: dict[str, Any] = {"log_config": None, "http": kind, "ws": "none", **(config or {})}
        self.config = uvicorn.Config(wrap(app), **given)
        self.config.load()
        self.state = ServerState()
        self.state.default_headers = [_DATE, *self.config.encoded_headers]
        self.tls: SSLContext | None = None
        self.accepted: list[Watched] = []
        self._clients: list[asyncio.Transport] = []
        self.known = 0
        """The number of requests that took the short way."""
        self._serve_known = app.serve_known
        vars(app)["serve_known"] = self._count_known

    async def _count_known(self, *arguments: Any) -> None:
        self.known += 1
        await self._serve_known(*arguments)

    def accept(self) -> Watched:
        """Return the protocol of a new connection."""
        loop = asyncio.get_running_loop()
        protocol = self.kind(config=self.config, server_state=self.state, app_state={"started": True}, _loop=loop)
        watched = Watched(protocol)
        self.accepted.append(watched)
        return watched

    async def connect(self, tls: SSLContext | None = None) -> SocketConnection:
        """Open a connection with a socket."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(1 << 24)
        client, server = _connect()
        (_, watched), (transport, _) = await asyncio.gather(
            loop.connect_accepted_socket(self.accept, server, ssl=self.tls),
            loop.create_connection(
                lambda: asyncio.StreamReaderProtocol(reader),
                sock=client,
                ssl=tls,
                server_hostname="127.0.0.1" if tls else None,
            ),
        )
        self._clients.append(transport)
        return SocketConnection(self, watched, transport, reader)

    def open_pipe(self) -> Pipe:
        """Open a connection without a socket."""
        return Pipe(self, self.accept())

    async def close(self) -> None:
        """Abort what is open, and close the application."""
        for task in [*self.state.tasks]:
            task.cancel()
        for client in self._clients:
            client.abort()
        for watched in self.accepted:
            if not watched.is_lost and watched.tap is not None:
                watched.tap.abort()
        while self.state.tasks or not all(watched.is_lost for watched in self.accepted):
            await asyncio.sleep(0)
        await self.app.close()


class Tap(asyncio.Transport):
    """A transport that records what is written to another one."""

    def __init__(self, inner: asyncio.Transport) -> None:
        super().__init__()
        self._inner = inner
        self.written = bytearray()
        self.writes: list[bytes] = []
        self.is_reading_paused = False

    def write(self, data: Any) -> None:
        if not self._inner.is_closing():
            self.written += data
            self.writes.append(bytes(data))
        self._inner.write(data)

    def close(self) -> None:
        self._inner.close()

    def abort(self) -> None:
        self._inner.abort()

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self.is_reading_paused = True
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self.is_reading_paused = False
        self._inner.resume_reading()


class Watched(asyncio.Protocol):
    """A protocol, and how many bytes it has received."""

    def __init__(self, protocol: HttpToolsProtocol) -> None:
        self.protocol = protocol
        self.tap: Tap | None = None
        self.received = 0
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.tap = Tap(transport)
        self.protocol.connection_made(self.tap)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        self.protocol.data_received(data)

    def eof_received(self) -> None:
        self.protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self.protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        self.protocol.resume_writing()


class Connection:
    """A connection of a client to one side."""

    def __init__(self, side: Side, watched: Watched) -> None:
        self.side = side
        self.watched = watched
        self.sent: int = 0

    @property
    def tap(self) -> Tap:
        assert self.watched.tap is not None
        return self.watched.tap

    @property
    def protocol(self) -> Any:
        return self.watched.protocol

    @property
    def output(self) -> bytes:
        """What the protocol has written."""
        return bytes(self.tap.written)

    @property
    def is_closed(self) -> bool:
        return self.watched.is_lost

    def send(self, data: bytes) -> None:
        """Send bytes in one piece."""
        raise NotImplementedError

    def disconnect(self) -> None:
        """Close the client's end."""
        raise NotImplementedError

    async def settle(self) -> None:
        """Wait until the server has read all, and has answered all but what waits for something else."""
        idle, before = 0, None
        while idle < _IDLE_TURNS:
            await asyncio.sleep(0)
            now = (self.watched.received, len(self.tap.written), self._client_state(), len(self.side.state.tasks))
            idle = 0 if now != before or self._is_busy() else idle + 1
            before = now

    def _client_state(self) -> Any:
        return None

    def _is_busy(self) -> bool:
        if self.tap.is_closing():
            return not self.watched.is_lost
        return self.watched.received < self.sent and not self.tap.is_reading_paused

    async def until(self, text: bytes) -> None:
        """Wait until the server has written a text."""
        while text not in self.tap.written:
            await asyncio.sleep(0.001)


class SocketConnection(Connection):
    """A connection with a socket."""

    def __init__(
        self, side: Side, watched: Watched, transport: asyncio.Transport, reader: asyncio.StreamReader
    ) -> None:
        super().__init__(side, watched)
        self.transport = transport
        self.reader = reader
        sock: socket.socket = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        self.sent += len(data)
        with suppress(OSError):  # the server may have closed the connection
            self.transport.write(data)

    def _client_state(self) -> int:
        return len(self._arrived)

    @property
    def _arrived(self) -> bytearray:
        """What has arrived at the client's end."""
        buffer: bytearray = vars(self.reader)["_buffer"]
        return buffer

    async def until_received(self) -> None:
        """Wait until the server has read all and responded to it, and the client has got that."""
        while self.watched.received < self.sent or self.protocol.cycle is None:
            await asyncio.sleep(0)
        while not self.protocol.cycle.response_complete or len(self._arrived) < len(self.tap.written):
            await asyncio.sleep(0)

    async def read(self) -> bytes:
        """Return what has arrived."""
        return await self.reader.readexactly(len(self._arrived))

    def _is_busy(self) -> bool:
        if super()._is_busy():
            return True
        if self.watched.is_lost:  # what was on its way may be lost if the server has not read all
            return False
        return len(self._arrived) < len(self.tap.written) and not self.reader.at_eof()

    def disconnect(self) -> None:
        """Close the client's end."""
        self.transport.abort()


class Pipe(Connection):
    """A connection without a socket: bytes arrive as the test cuts them."""

    def __init__(self, side: Side, watched: Watched) -> None:
        super().__init__(side, watched)
        self._end = _PipeEnd(self)
        watched.connection_made(self._end)

    def send(self, data: bytes) -> None:
        self.sent += len(data)
        self._end.feed(data)

    def disconnect(self) -> None:
        """Lose the connection."""
        self._end.close()


class _PipeEnd(asyncio.Transport):
    """The server's end of a `Pipe`."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self._pipe = pipe
        self._is_closing = False
        self._is_paused = False
        self._waiting: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Deliver bytes, once the protocol reads."""
        self._waiting.append(data)
        self._deliver()

    def _deliver(self) -> None:
        while self._waiting and not self._is_paused and not self._is_closing:
            self._pipe.watched.data_received(self._waiting.pop(0))

    def write(self, data: Any) -> None: ...

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self._pipe.watched.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"sockname": ("127.0.0.1", 8000), "peername": ("127.0.0.1", 50_000)}.get(name, default)

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        asyncio.get_running_loop().call_soon(self._deliver)
