"""HTTP/1.1 of clients: persistent connections, and responses that are read as they arrive.

httptools parses, asyncio moves the bytes and does TLS. Closing a response before its end closes its connection at
once, even while the server is still working: that tells the server to cancel the request. The other libraries that were
measured take two to five times as long for a call (docs/dependencies.md), or do not close the connection.
"""

from __future__ import annotations

import asyncio
import select
import socket as socket_module
import ssl
import zlib
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from socket import IPPROTO_TCP, SO_KEEPALIVE, SOL_SOCKET
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

import httptools

from typedmcp.errors import UsageError
from typedmcp.transports.redaction import redact_url

__all__ = [
    "BrokenConnectionError", "ConnectionPool", "HttpAddress", "HttpResponse", "Inflater", "StaleConnectionError",
    "basic_authorization", "parse_url",
]  # fmt: skip

_READ_AHEAD_BYTES: Final = 1 << 18
"""Bytes of a body that are buffered before reading from the server pauses."""

_MAX_LENGTH_DIGITS: Final = 18
"""Digits of a number in a header. Longer ones are invalid."""

_MAX_IDLE_CONNECTIONS: Final = 32
"""Idle connections that are kept open."""

_MAX_KNOWN_HEADS: Final = 16
_MAX_KNOWN_HEAD_BYTES: Final = 2048
"""The heads of responses that a connection remembers."""
_DEFAULT_KEEP_ALIVE: Final = 50.0
"""Seconds that an idle connection is kept if the server announces no time: most servers wait a minute or more."""

_WINDOW_BITS: Final = 47
"""The largest window, with the header of gzip or of zlib."""
_PIECE_BYTES: Final = 1 << 16
"""Bytes that are inflated at once. A body of 1 KB may hold 1 MB, which the reader must be able to reject."""

_PORTS: Final = {"http": 80, "https": 443}


class BrokenConnectionError(ConnectionError):
    """The connection ended, or received something other than HTTP, before the response was complete."""


class StaleConnectionError(BrokenConnectionError):
    """A reused connection ended before the response began: the server was about to close it."""


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """The scheme, host and port of a URL."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port as in the `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_url(url: str) -> tuple[HttpAddress, SplitResult]:
    """Return the address in a URL, and the parts of the URL. Raises `UsageError` for an invalid HTTP URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        reason = "the port is not valid" if "Port" in str(error) else "it cannot be parsed"  # the text quotes the URL
        raise UsageError(f"invalid URL {redact_url(url)!r}: {reason}") from None
    if parts.scheme not in _PORTS or not host or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(f"invalid URL {redact_url(url)!r}; expected http://host:port/path or https://…, in ASCII")
    return HttpAddress(parts.scheme, host, _PORTS[parts.scheme] if port is None else port), parts


def basic_authorization(name: str, parts: SplitResult) -> dict[str, str]:
    """Return the header of this name for the user and password in a URL, or no header without a user."""
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {name: f"Basic {b64encode(pair.encode()).decode()}"}


class HttpConnection(asyncio.Protocol):
    """A connection that reads one response at a time.

    `max_head_bytes` limits the head of a response, and its trailers.
    """

    def __init__(self, max_head_bytes: int) -> None:
        self._max_head_bytes = max_head_bytes
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._parser: Any = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._is_paused = False
        self._poll: Any = None
        self.transport: Any = None
        self.is_closed: bool = False
        self.is_used: bool = False
        """True once a response has arrived over it."""
        self.idle_until: float = 0.0
        self._is_expecting = False
        self._known_heads: dict[bytes, tuple[int, dict[str, str]]] = {}
        """The lengths of bodies, and the headers, by the bytes of heads with the status 200: they come again."""
        self._reset()

    def _reset(self) -> None:
        self.status: int = 0
        self.headers: dict[str, str] = {}
        self.has_head: bool = False
        """True once the status and the headers have arrived."""
        self._is_complete = False
        self._has_excess = False
        self._received_bytes = 0
        self._trailer_bytes = 0
        self._should_keep_alive = False
        self._chunks: list[bytes] = []
        self.buffered_bytes: int = 0
        """Bytes of the body that have arrived and were not read yet."""
        self._error: Exception | None = None

    # For a response

    def send_request(self, request: bytes, rest: bytes = b"") -> None:
        """Send a request, which may be in two parts."""
        self._reset()
        self._is_expecting = True
        self.transport.write(request)
        if rest:
            self.transport.write(rest)

    async def wait_for_tunnel(self) -> None:
        """Wait until a proxy has connected to the server. All further bytes come from the server."""
        while not self.has_head:
            await self.progress()
        if self.status // 100 != 2:
            raise BrokenConnectionError(f"the proxy answered {self.status}")
        self._parser = httptools.HttpResponseParser(self)
        self._is_expecting = False

    async def read_chunks(self) -> list[bytes]:
        """Return the next chunks of the body, or none at its end.

        Raises `BrokenConnectionError` if the body ends too early.
        """
        while not self._chunks and not self._is_complete:
            if self._error is None:
                self._resume_reading()
            await self.progress()
        return self._take_chunks()

    def take_all(self) -> bytes | None:
        """Return the whole body if it has arrived and nothing was read of it, else None."""
        return _join(self._take_chunks()) if self._is_complete else None

    def _take_chunks(self) -> list[bytes]:
        chunks, self._chunks, self.buffered_bytes = self._chunks, [], 0
        return chunks

    def finish_response(self) -> bool:
        """End the response. Return whether the connection can be reused; otherwise it is closed."""
        self._is_expecting = False
        self.is_used = True
        if self._is_complete and self._should_keep_alive and not self._has_excess and not self.is_closed:
            self._resume_reading()
            return True
        self.abort()
        return False

    def abort(self) -> None:
        """Close the connection at once, and drop what has not been sent or read."""
        self.is_closed = True
        if self._error is None and not self._is_complete:
            self._error = BrokenConnectionError("the connection was closed")
        self._wake()
        if self.transport is not None:
            self.transport.abort()

    @property
    def is_quiet(self) -> bool:
        """True if nothing is ready to be read, not even the end of the stream. Asks the system, not asyncio."""
        if self.is_closed or self.transport.is_closing():
            return False
        if self._poll is None:
            socket = self.transport.get_extra_info("socket")
            if socket is None or not hasattr(select, "poll"):
                return True
            self._poll = select.poll()
            self._poll.register(socket.fileno(), select.POLLIN)
        return not self._poll.poll(0)

    def _resume_reading(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()

    def progress(self) -> asyncio.Future[None]:
        """Return a future that is done once more of the response has arrived. Raises the error that ended it."""
        if self._error is not None:
            raise self._error
        self._waiter = self.loop.create_future()
        return self._waiter

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # For asyncio

    def connection_made(self, transport: Any) -> None:
        """Implement `asyncio.Protocol`."""
        self.transport = transport
        if (socket := transport.get_extra_info("socket")) is not None:
            _enable_keep_alive(socket)

    def data_received(self, data: bytes) -> None:
        """Implement `asyncio.Protocol`."""
        if not self._is_expecting:
            self.abort()
            return
        end = -1 if self._received_bytes else data.find(b"\r\n\r\n", 0, _MAX_KNOWN_HEAD_BYTES)
        self._received_bytes += len(data)
        known = self._known_heads.get(data[:end]) if end > 0 else None
        if known is not None and len(data) - end - 4 == known[0]:
            self.status, (self.buffered_bytes, self.headers) = 200, known
            self.has_head = self._is_complete = self._should_keep_alive = True
            self._chunks.append(data[end + 4 :])
            self._wake()
            return
        try:
            self._parser.feed_data(data)
            if end > 0 and self._is_complete:
                self._remember_head(data, end)
        except httptools.HttpParserUpgrade:
            self._fail("the server wants to speak another protocol")
        except httptools.HttpParserError as error:
            self._fail(f"the response is not HTTP: {error}")
        if not self.has_head and self._received_bytes > self._max_head_bytes:
            self._fail(f"the head of the response is longer than {self._max_head_bytes} bytes")
        if self.buffered_bytes > _READ_AHEAD_BYTES and not self._is_paused and not self.is_closed:
            self._is_paused = True
            self.transport.pause_reading()
        if self.has_head or self._error is not None:
            self._wake()

    def _remember_head(self, data: bytes, end: int) -> None:
        """Remember a head whose response is complete, and nothing else than a body of the length that it declares."""
        length = len(data) - end - 4
        is_plain = self.headers.get("content-length") == str(length) and "transfer-encoding" not in self.headers
        if self.status == 200 and is_plain and self._should_keep_alive and not self._has_excess:
            if len(self._known_heads) >= _MAX_KNOWN_HEADS:
                self._known_heads.clear()
            self._known_heads[data[:end]] = length, self.headers

    def eof_received(self) -> None:
        """Implement `asyncio.Protocol`: the end of the server's side ends the connection."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Implement `asyncio.Protocol`: a body without a declared length ends with the connection."""
        self.is_closed = True
        if self._is_expecting and not self._is_complete and self._error is None:
            if self.has_head and not {"content-length", "transfer-encoding"} & self.headers.keys():
                self._is_complete = True
            else:
                self._error = self._end_error(exc)
        self._wake()

    def _end_error(self, error: Exception | None) -> BrokenConnectionError:
        if self.is_used and not self._received_bytes:
            return StaleConnectionError("the server closed the connection that was to be reused")
        when = "in the middle of its response" if self.has_head else "before it answered"
        return BrokenConnectionError(f"the server closed the connection {when}{f': {error}' if error else ''}")

    def _fail(self, reason: str) -> None:
        if self._error is None:
            self._error = BrokenConnectionError(reason)
        self.abort()

    # For the parser

    def on_message_begin(self) -> None:
        """Record the start of a response. A second response was not requested."""
        self._has_excess = self._is_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Record a header. The values of repeated headers are joined with commas."""
        if self.has_head:  # a trailer, which has no meaning here
            self._trailer_bytes += len(name) + len(value)
            if self._trailer_bytes > self._max_head_bytes:
                self._fail(f"the trailers of the response are longer than {self._max_head_bytes} bytes")
            return
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1").strip()
        headers = self.headers
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        """Record the end of the head. The head of an interim response is dropped."""
        status: int = self._parser.get_status_code()
        if self._is_complete:
            return
        if status < 200:
            self.headers.clear()
        else:
            self.status, self.has_head = status, True

    def on_body(self, body: bytes) -> None:
        """Buffer a part of the body."""
        if not self._is_complete:
            self._chunks.append(body)
            self.buffered_bytes += len(body)

    def on_message_complete(self) -> None:
        """Record the end of the response."""
        if self.has_head and not self._is_complete:
            self._is_complete = True
            self._should_keep_alive = self._parser.should_keep_alive()


class Inflater:
    """Inflates a body as it arrives, in pieces of bounded size."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_WINDOW_BITS)
        self._input = b""

    def feed(self, data: bytes) -> None:
        """Add bytes of the body, once `read` has returned nothing."""
        self._input = data

    def read(self) -> bytes:
        """Return the next piece, or nothing if that needs more bytes. Raises `zlib.error` for an invalid body."""
        if self._stream.eof:  # another call would keep the input, and copy it each time
            if self._input or self._stream.unused_data:
                raise zlib.error("data follows after its end")
            return b""
        piece = self._stream.decompress(self._input, _PIECE_BYTES)
        self._input = self._stream.unconsumed_tail
        return piece

    @property
    def has_input(self) -> bool:
        """True while `read` can return another piece of what was fed."""
        return bool(self._input)

    @property
    def is_complete(self) -> bool:
        """True after the end of the compressed data."""
        return self._stream.eof


class HttpResponse:
    """A response: its head, and its body as it arrives. It must be closed, even if it was not read."""

    __slots__ = ("_connection", "_inflater", "_pool", "headers", "status")

    def __init__(self, pool: ConnectionPool, connection: HttpConnection) -> None:
        self._pool = pool
        self._connection: HttpConnection | None = connection
        self._inflater: Inflater | None = None
        self.status: int = connection.status
        self.headers: dict[str, str] = connection.headers

    async def read(self) -> bytes:
        """Return the next bytes of the body, or no bytes at its end. Raises `BrokenConnectionError`."""
        return _join(await self._read_chunks())

    def inflate(self) -> None:
        """Inflate the body, which is compressed."""
        self._inflater = Inflater()

    async def _read_inflated(self, inflater: Inflater) -> bytes:
        try:
            while not (piece := inflater.read()):
                chunks = [] if self._connection is None else await self._connection.read_chunks()
                if not chunks:
                    if not inflater.is_complete:
                        raise BrokenConnectionError("the compressed body ended too early")
                    return b""
                inflater.feed(_join(chunks))
        except zlib.error as error:
            raise BrokenConnectionError(f"the compressed body is not valid: {error}") from None
        if inflater.has_input:  # a small body inflates to many pieces: other tasks and deadlines get their turn
            await asyncio.sleep(0)
        return piece

    def take_all(self, limit: int) -> bytes | None:
        """Return the whole body if it is complete, is not compressed and has at most `limit` bytes, else None.

        Then `read_all` reads it. Nothing must have been read before.
        """
        connection = self._connection
        if connection is None or self._inflater is not None or connection.buffered_bytes > limit:
            return None
        return connection.take_all()

    async def read_all(self, limit: int) -> bytes:
        """Return the whole body. Raises `ValueError` if it has more than `limit` bytes, and `BrokenConnectionError`."""
        length = self.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and (len(length) > _MAX_LENGTH_DIGITS or int(length) > limit):
            raise ValueError(f"the response has {length} bytes, more than the limit of {limit}")
        parts: list[bytes] = []
        room = limit
        while chunks := await self._read_chunks():
            room -= sum(map(len, chunks))
            if room < 0:
                raise ValueError(f"the response has more bytes than the limit of {limit}")
            parts += chunks
        return _join(parts)

    async def _read_chunks(self) -> list[bytes]:
        """Return the next parts of the body, or none at its end, without a copy."""
        if self._connection is None:
            return []
        if self._inflater is None:
            return await self._connection.read_chunks()
        return [piece] if (piece := await self._read_inflated(self._inflater)) else []

    def close(self) -> None:
        """Release the connection, or close it if the body was not read to its end. May be called again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.release(connection, self.headers.get("keep-alive", ""))


class ConnectionPool:
    """Connections to one server, directly or through a proxy. Idle ones are kept for later requests.

    `get_tls_context` is called when TLS is needed. `max_head_bytes` limits the head of a response.
    """

    def __init__(
        self,
        address: HttpAddress,
        get_tls_context: Callable[[], ssl.SSLContext],
        proxy: str | None,
        max_head_bytes: int,
    ) -> None:
        self._address = address
        self._get_tls_context = get_tls_context
        self._proxy = None if proxy is None else parse_url(proxy)
        self._max_head_bytes = max_head_bytes
        self._idle: list[HttpConnection] = []
        self._busy: set[HttpConnection] = set()
        self._is_closed = False
        parts = None if self._proxy is None else self._proxy[1]
        self._proxy_headers = {} if parts is None else basic_authorization("proxy-authorization", parts)
        is_forwarded = parts is not None and address.scheme == "http"
        self.origin: str = f"http://{address.authority}" if is_forwarded else ""
        """What precedes the path in requests: a proxy that forwards them needs the whole URL."""
        self.headers: dict[str, str] = self._proxy_headers if is_forwarded else {}
        """The headers that such a proxy needs."""

    async def send(self, request: bytes, rest: bytes = b"", *, is_repeatable: bool = False) -> HttpResponse:
        """Send a request, which may be in two parts, and wait for the head of its response.

        A request that `is_repeatable` is sent again if the server closed a reused connection meanwhile. For others,
        `StaleConnectionError` says that. Also raises `OSError`.
        """
        while True:
            connection = self._take_idle() or await self._open()
            self._busy.add(connection)
            try:
                connection.send_request(request, rest)
                while not connection.has_head:
                    await connection.progress()
            except BaseException as error:
                connection.abort()
                self._busy.discard(connection)
                if is_repeatable and isinstance(error, StaleConnectionError):
                    is_repeatable = False
                    continue
                raise
            return HttpResponse(self, connection)

    def release(self, connection: HttpConnection, keep_alive: str) -> None:
        """Return the connection of a finished response to the pool. `keep_alive` is the `Keep-Alive` header."""
        self._busy.discard(connection)
        if connection.finish_response():
            if self._is_closed or len(self._idle) >= _MAX_IDLE_CONNECTIONS:
                connection.abort()
                return
            seconds = _keep_alive_seconds(keep_alive) if keep_alive else _DEFAULT_KEEP_ALIVE
            connection.idle_until = connection.loop.time() + seconds
            self._idle.append(connection)

    def close_idle(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().abort()

    def close(self) -> None:
        """Close all connections. Requests under way fail."""
        self._is_closed = True
        self.close_idle()
        for connection in tuple(self._busy):
            connection.abort()

    def _take_idle(self) -> HttpConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_until > connection.loop.time() and connection.is_quiet:
                return connection
            connection.abort()
        return None

    async def _open(self) -> HttpConnection:
        if self._is_closed:
            raise BrokenConnectionError("the client has been closed")
        loop = asyncio.get_running_loop()
        peer = self._address if self._proxy is None else self._proxy[0]
        tls = self._get_tls_context() if peer.scheme == "https" else None
        _, connection = await loop.create_connection(
            lambda: HttpConnection(self._max_head_bytes), peer.host, peer.port, ssl=tls
        )
        if self._proxy is not None and self._address.scheme == "https":
            try:
                await self._open_tunnel(connection)
            except BaseException:
                connection.abort()
                raise
        return connection

    async def _open_tunnel(self, connection: HttpConnection) -> None:
        """Ask the proxy for a tunnel to the server, and start TLS with the server."""
        host = f"[{self._address.host}]" if ":" in self._address.host else self._address.host
        target = f"{host}:{self._address.port}"
        headers = {"host": target, **self._proxy_headers}
        lines = [f"CONNECT {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        connection.send_request("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        await connection.wait_for_tunnel()
        loop = asyncio.get_running_loop()
        connection.transport = await loop.start_tls(
            connection.transport, connection, self._get_tls_context(), server_hostname=self._address.host
        )


def _join(chunks: list[bytes]) -> bytes:
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _enable_keep_alive(socket: Any) -> None:
    """Enable TCP keep-alive, so that a vanished peer is noticed on a connection that only receives."""
    with suppress(OSError):
        socket.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 20), ("TCP_KEEPCNT", 3)):
            if hasattr(socket_module, name):
                socket.setsockopt(IPPROTO_TCP, getattr(socket_module, name), value)


def _keep_alive_seconds(header: str) -> float:
    """Return the seconds that a connection may stay idle: a little less than the server announces."""
    for part in header.split(","):
        name, _, value = part.strip().partition("=")
        if name.lower() == "timeout" and value.isascii() and value.isdigit() and len(value) < _MAX_LENGTH_DIGITS:
            return max(0.0, int(value) - 1.0)
    return _DEFAULT_KEEP_ALIVE
