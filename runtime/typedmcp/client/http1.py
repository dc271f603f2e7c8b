"""HTTP/1.1 for the client: connections that are used again, and responses that are read as they come.

httptools parses, asyncio moves the bytes and does TLS. A response that is given up closes its connection, at once and
whatever it waits for: to a server that is the sign that nobody wants the answer. The libraries that were measured
beside this take two to five times as long for a call (docs/dependencies.md), or do not close.
"""

from __future__ import annotations

import asyncio
import select
import socket as socket_module
import ssl
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from socket import IPPROTO_TCP, SO_KEEPALIVE, SOL_SOCKET
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import httptools

from typedmcp.errors import UsageError

__all__ = ["Address", "Broken", "Pool", "Response", "Stale", "address_of"]

_READ_AHEAD = 1 << 18
"""How many bytes of a response are taken from the peer before somebody wants them."""

_DIGITS = 18
"""How many digits a length may have."""

_LONGEST_HEAD = 1 << 17
"""How long the head of a response may be, in bytes."""

_IDLE = 32
"""How many connections are kept for later."""

_KEPT = 50.0
"""For how many seconds they are, where the server does not say: most wait for a minute or more."""

_PORTS = {"http": 80, "https": 443}


class Broken(ConnectionError):  # noqa: N818
    """The connection ended, or what came over it was no HTTP, before the response was complete."""


class Stale(Broken):
    """A connection that was used again ended before anything came: the server was about to close it."""


@dataclass(frozen=True, slots=True)
class Address:
    """Whom to connect to."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port as the `Host` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def address_of(url: str) -> tuple[Address, SplitResult]:
    """The address in a URL, and the URL in parts. Raises `UsageError` for one that is none of HTTP's."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageError(f"{url!r} is no URL: {error}") from None
    if parts.scheme not in _PORTS or not host or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(f"{url!r} is no URL of HTTP's: http://host:port/path or https://…, in ASCII")
    return Address(parts.scheme, host, _PORTS[parts.scheme] if port is None else port), parts


def basic(parts: SplitResult) -> str | None:
    """The value of an `Authorization` header for the name and password in a URL, if there are any."""
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


class Connection(asyncio.Protocol):
    """One connection, on which one response at a time is read."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser: Any = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self._poll: Any = None
        self.transport: Any = None
        self.is_closed: bool = False
        self.is_used: bool = False
        """Whether a response has come over it already."""
        self.idle_until: float = 0.0
        self._expecting = False
        self._reset()

    def _reset(self) -> None:
        self.status: int = 0
        self.headers: dict[str, str] = {}
        self._has_head = False
        self._complete = False
        self._excess = False
        self._begun = 0
        self._trailers = 0
        self._keep = False
        self._chunks: list[bytes] = []
        self._size = 0
        self._error: Exception | None = None

    # For a response

    def start(self, request: bytes) -> None:
        """Send a request."""
        self._reset()
        self._expecting = True
        self.transport.write(request)

    async def head(self) -> None:
        """Wait for the status and the headers."""
        while not self._has_head:
            self._raise()
            await self._wait()

    async def tunnelled(self) -> None:
        """Wait until a proxy has connected: from then on the bytes are the server's."""
        await self.head()
        if self.status // 100 != 2:
            raise Broken(f"the proxy answered {self.status}")
        self._parser = httptools.HttpResponseParser(self)
        self._expecting = False

    async def read(self) -> bytes:
        """The next bytes of the body; empty at its end. Raises `Broken` where it ends too early."""
        while not self._chunks and not self._complete:
            self._raise()
            if self._paused:
                self._paused = False
                self.transport.resume_reading()
            await self._wait()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        return data

    def finish(self) -> bool:
        """The response is done with. Whether the connection can be used again."""
        self._expecting = False
        self.is_used = True
        if self._complete and self._keep and not self._excess and not self.is_closed:
            if self._paused:
                self._paused = False
                self.transport.resume_reading()
            return True
        self.abort()
        return False

    def abort(self) -> None:
        """Close at once: what was to be sent or read is of no use any more."""
        self.is_closed = True
        if self._error is None and not self._complete:
            self._error = Broken("the connection was closed")
        self._wake()
        if self.transport is not None:
            self.transport.abort()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has come since the last response, not even the end; seen before the loop sees it."""
        if self.is_closed or self.transport.is_closing():
            return False
        if self._poll is None:
            socket = self.transport.get_extra_info("socket")
            if socket is None or not hasattr(select, "poll"):
                return True
            self._poll = select.poll()
            self._poll.register(socket.fileno(), select.POLLIN)
        return not self._poll.poll(0)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # For asyncio

    def connection_made(self, transport: Any) -> None:
        """The connection stands."""
        self.transport = transport
        if (socket := transport.get_extra_info("socket")) is not None:
            _keep_alive(socket)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if not self._expecting:
            self.abort()
            return
        self._begun += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(Broken("the server wants to speak another protocol"))
        except httptools.HttpParserError as error:
            self._fail(Broken(f"what came is not HTTP: {error}"))
        if not self._has_head and self._begun > _LONGEST_HEAD:
            self._fail(Broken(f"the head of the response is longer than {_LONGEST_HEAD} bytes"))
        if self._size > _READ_AHEAD and not self._paused and not self.is_closed:
            self._paused = True
            self.transport.pause_reading()
        if self._has_head or self._error is not None:
            self._wake()

    def eof_received(self) -> None:
        """The server ended its side, which ends the connection."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over; where nothing else says how long the body is, that is its end."""
        self.is_closed = True
        if self._expecting and not self._complete and self._error is None:
            if self._has_head and not self._is_framed:
                self._complete = True
            else:
                self._error = self._end(exc)
        self._wake()

    @property
    def _is_framed(self) -> bool:
        return "content-length" in self.headers or "transfer-encoding" in self.headers

    def _end(self, error: Exception | None) -> Broken:
        if self.is_used and not self._begun:
            return Stale("the server closed the connection that was to be used again")
        what = "in the middle of its answer" if self._has_head else "before it answered"
        return Broken(f"the server closed the connection {what}" + (f": {error}" if error is not None else ""))

    def _fail(self, error: Exception) -> None:
        if self._error is None:
            self._error = error
        self.abort()

    # For the parser

    def on_message_begin(self) -> None:
        """A response begins; a second one was not asked for."""
        self._excess = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header. What stands there twice is a list."""
        if self._has_head:  # a trailer, which means nothing
            self._trailers += len(name) + len(value)
            if self._trailers > _LONGEST_HEAD:
                self._fail(Broken(f"there are more than {_LONGEST_HEAD} bytes of trailers"))
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        """The head is whole. That of an interim response means nothing."""
        status: int = self._parser.get_status_code()
        if self._complete:
            return
        if status < 200:
            self.headers.clear()
        else:
            self.status, self._has_head = status, True

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        if not self._complete:
            self._chunks.append(body)
            self._size += len(body)

    def on_message_complete(self) -> None:
        """The response is whole."""
        if self._has_head and not self._complete:
            self._complete = True
            self._keep = self._parser.should_keep_alive()


class Response:
    """The answer to a request: its head, and its body as it comes. To be closed, whole or not."""

    __slots__ = ("_connection", "_pool", "headers", "status")

    def __init__(self, pool: Pool, connection: Connection) -> None:
        self._pool = pool
        self._connection: Connection | None = connection
        self.status: int = connection.status
        self.headers: dict[str, str] = connection.headers

    async def read(self) -> bytes:
        """The next bytes of the body; empty at its end. Raises `Broken`."""
        return b"" if self._connection is None else await self._connection.read()

    async def body(self, limit: int) -> bytes:
        """The whole body. Raises `ValueError` where it is longer than that many bytes, and `Broken`."""
        length = self.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and (len(length) > _DIGITS or int(length) > limit):
            raise ValueError(f"the answer has {length} bytes, more than the limit of {limit}")
        parts: list[bytes] = []
        while data := await self.read():
            limit -= len(data)
            if limit < 0:
                raise ValueError("the answer is longer than the limit")
            parts.append(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Give the connection back, or end it where the body was not read to its end. Twice is once."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.give_back(connection, self.headers.get("keep-alive", ""))


class Pool:
    """Connections to one server, straight or through a proxy. As many as are needed; some are kept for later.

    `tls` gives the context for TLS when it is needed.
    """

    def __init__(self, address: Address, tls: Callable[[], ssl.SSLContext], proxy: str | None) -> None:
        self._address = address
        self._tls = tls
        self._proxy = None if proxy is None else address_of(proxy)
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._closed = False

    @property
    def is_forwarded(self) -> bool:
        """Whether requests go to a proxy that has to be told the whole URL."""
        return self._proxy is not None and self._address.scheme == "http"

    @property
    def proxy_authorization(self) -> str | None:
        """What such a proxy wants to see in every request."""
        return basic(self._proxy[1]) if self._proxy is not None and self.is_forwarded else None

    async def send(self, request: bytes) -> Response:
        """Send a request, in its bytes, and wait for the head of its response.

        Raises `Stale` where the request may be repeated if that does no harm, and `OSError`.
        """
        connection = self._take() or await self._open()
        self._busy.add(connection)
        try:
            connection.start(request)
            await connection.head()
        except BaseException:
            connection.abort()
            self._busy.discard(connection)
            raise
        return Response(self, connection)

    def give_back(self, connection: Connection, keep_alive: str) -> None:
        """A response is done with."""
        self._busy.discard(connection)
        if connection.finish():
            if self._closed or len(self._idle) >= _IDLE:
                connection.abort()
                return
            connection.idle_until = asyncio.get_running_loop().time() + _kept(keep_alive)
            self._idle.append(connection)

    def rest(self) -> None:
        """End the connections that are kept for later."""
        while self._idle:
            self._idle.pop().abort()

    def close(self) -> None:
        """End all connections, and what is under way on them."""
        self._closed = True
        self.rest()
        for connection in tuple(self._busy):
            connection.abort()

    def _take(self) -> Connection | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_until > now and connection.is_quiet:
                return connection
            connection.abort()
        return None

    async def _open(self) -> Connection:
        if self._closed:
            raise Broken("the client has been closed")
        loop = asyncio.get_running_loop()
        near = self._address if self._proxy is None else self._proxy[0]
        tls = self._tls() if near.scheme == "https" else None
        _, connection = await loop.create_connection(Connection, near.host, near.port, ssl=tls)
        if self._proxy is not None and self._address.scheme == "https":
            try:
                await self._tunnel(connection)
            except BaseException:
                connection.abort()
                raise
        return connection

    async def _tunnel(self, connection: Connection) -> None:
        """Have the proxy connect to the server, and speak TLS with that."""
        assert self._proxy is not None
        host = f"[{self._address.host}]" if ":" in self._address.host else self._address.host
        target = f"{host}:{self._address.port}"
        who = basic(self._proxy[1])
        lines = [f"CONNECT {target} HTTP/1.1", f"host: {target}", *([f"proxy-authorization: {who}"] if who else [])]
        connection.start("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        await connection.tunnelled()
        loop = asyncio.get_running_loop()
        connection.transport = await loop.start_tls(
            connection.transport, connection, self._tls(), server_hostname=self._address.host
        )


def _keep_alive(socket: Any) -> None:
    """Have the system notice where the other end of a connection that waits for news has vanished."""
    with suppress(OSError):
        socket.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 20), ("TCP_KEEPCNT", 3)):
            if hasattr(socket_module, name):
                socket.setsockopt(IPPROTO_TCP, getattr(socket_module, name), value)


def _kept(keep_alive: str) -> float:
    """For how many seconds a connection may be kept, by what its server says: a little less, for the way."""
    for part in keep_alive.split(","):
        name, _, value = part.strip().partition("=")
        if name.lower() == "timeout" and value.isascii() and value.isdigit() and len(value) < _DIGITS:
            return max(0.0, int(value) - 1.0)
    return _KEPT
