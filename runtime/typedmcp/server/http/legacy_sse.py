"""HTTP with SSE, the transport of 2024-11-05: clients open an event stream at one path and post messages to another.

https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Callable
from urllib.parse import parse_qs

from typedmcp.errors import UsageError
from typedmcp.protocol.budgets import CALL_BYTES, Hold
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.server.batches import without_results
from typedmcp.server.connection import ServerConnection
from typedmcp.server.http.messages import (
    LARGE_BODY_BYTES,
    NOT_A_SESSION,
    RETRY_LATER,
    TOO_MANY_STREAMS,
    ClientDisconnect,
    Headers,
    HTTPException,
    Receive,
    Scope,
    Send,
    client_of_principal,
    headers_as_text,
    read_json_body,
    respond,
    too_many_bytes,
    wait_for_disconnect,
)  # fmt: skip
from typedmcp.server.http.state import AppState
from typedmcp.server.http.streams import EventStream
from typedmcp.server.principal import Principal

__all__ = ["LegacySse"]


class _ConnectionExpiry:
    """Ends a connection when the last of the credentials that were used in it have expired."""

    def __init__(self, loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> None:
        self._loop = loop
        self._end = end
        self._expires: float | None = -math.inf
        """The time of the end in seconds since 1970; None if some credentials do not expire."""
        self._timer: asyncio.TimerHandle | None = None

    def extend(self, expires: float | None) -> None:
        """Keep the connection until these credentials expire."""
        if self._expires is None or (expires is not None and expires <= self._expires):
            return
        self.cancel()
        self._expires = expires
        if expires is not None:
            self._timer = self._loop.call_later(max(0.0, expires - time.time()), self._end)

    def cancel(self) -> None:
        """Do not end the connection."""
        if self._timer is not None:
            self._timer.cancel()


class _SseTransport:
    """A `Transport` that receives messages as POSTs and sends them as events.

    `queue_limit` is the number of queued bytes above which further POSTs wait.
    """

    expiry: _ConnectionExpiry

    def __init__(self, stream: EventStream, principal: str | None, queue_limit: int) -> None:
        self.principal: str | None = principal
        self._stream = stream
        self._queue_limit = queue_limit
        self._bodies: list[bytes] = []
        self._size = 0
        self._has_ended = False
        self.has_reported_drop: bool = False
        """True once a dropped message has been reported, until the queue has been read."""
        self._readable = asyncio.Event()
        self.has_room: asyncio.Event = asyncio.Event()
        """Set while the queue is below its limit, or the connection has ended."""
        self.has_room.set()

    def post(self, body: bytes) -> None:
        """Queue a message that was posted."""
        # JSON has line ends only between tokens, where a space means the same.
        self._bodies.append(body.replace(b"\n", b" ") + b"\n")
        self._size += len(body)
        if self._size > self._queue_limit:
            self.has_room.clear()
        self._readable.set()

    @property
    def is_overfull(self) -> bool:
        """True while more than twice the limit is queued."""
        return self._size > 2 * self._queue_limit

    async def read(self) -> bytes:
        """Wait for messages and return them, empty at the end."""
        await self._readable.wait()
        data = b"".join(self._bodies)
        self._bodies.clear()
        self._size = 0
        self.has_reported_drop = False
        self.has_room.set()
        if not self._has_ended:
            self._readable.clear()
        return data

    def write(self, data: bytes) -> None:
        """Send lines, each as an event. A large response is replaced by an error if its client holds its share."""
        for line in data.splitlines():
            if not line:  # the newline of a large message, which comes by itself
                continue
            has_room = len(line) <= LARGE_BODY_BYTES or self._stream.hold.take(0)
            self._stream.put(line if has_room else without_results(line))

    @property
    def is_congested(self) -> bool:
        """True while the client reads too slowly."""
        return self._stream.is_congested

    async def drain(self) -> None:
        """Wait until the client has caught up."""
        await self._stream.drain()

    def end(self) -> None:
        """Make `read` return the end after the queued messages."""
        self._has_ended = True
        self._readable.set()
        self.has_room.set()

    async def close(self) -> None:
        """End the event stream."""
        self.end()
        self._stream.end()


async def _wait_for_room(transport: _SseTransport, headers: Headers, body: bytes, receive: Receive, hold: Hold) -> None:
    """Wait until a connection has room for a message, which counts like a call until then.

    Raises `HTTPException` if its client gets nothing more, and `ClientDisconnect` if the client leaves.
    """
    size = CALL_BYTES + len(body) + sum(len(name) + len(value) for name, value in headers.items())
    if not hold.size and not hold.take(size):  # a large body was admitted before
        raise too_many_bytes()
    hold.add(size - hold.size)
    leaving = asyncio.ensure_future(wait_for_disconnect(receive))
    try:
        while not transport.has_room.is_set():  # other messages that waited may have filled it again
            waiting = asyncio.ensure_future(transport.has_room.wait())
            try:
                await asyncio.wait([waiting, leaving], return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
            if leaving.done():
                raise ClientDisconnect
    finally:
        leaving.cancel()


class LegacySse:
    """The two endpoints of an application for 2024-11-05. Raises `UsageError` for paths that are the same."""

    def __init__(self, state: AppState, sse_path: str, messages_path: str) -> None:
        self._state = state
        self._sse_path, self._messages_path = sse_path.rstrip("/") or "/", messages_path.rstrip("/") or "/"
        self.paths: tuple[str, str] = (self._sse_path, self._messages_path)
        if self._sse_path == self._messages_path:
            raise UsageError(f"sse_path and messages_path must differ: {sse_path}")
        self._open: dict[str, tuple[_SseTransport, ServerConnection]] = {}

    async def serve(
        self, path: str, scope: Scope, headers: Headers, principal: Principal | None, receive: Receive, send: Send
    ) -> None:
        """Serve a request to one of the endpoints. Raises `HTTPException`."""
        method = "GET" if path == self._sse_path else "POST"
        if scope["method"] != method:
            raise HTTPException(
                405, f"{scope['method']} is not allowed; allowed: {method}", [(b"allow", method.encode())]
            )
        if path == self._sse_path:
            await self._connect(scope.get("root_path", ""), headers, principal, receive, send)
        else:
            await self._post(scope, headers, principal, receive, send)

    async def _connect(
        self, root: str, headers: Headers, principal: Principal | None, receive: Receive, send: Send
    ) -> None:
        """Open a connection and its event stream, whose first event names the path for messages."""
        key = None if principal is None else principal.key
        client = client_of_principal(principal)
        if (stream := self._state.open_stream(send, client)) is None:
            raise HTTPException(503, TOO_MANY_STREAMS, RETRY_LATER)
        id = f"{self._state.store.worker}.{secrets.token_urlsafe(24)}"
        transport = _SseTransport(stream, key, self._state.config.limits.sse_queue_bytes)
        connection = ServerConnection(
            self._state.config,
            transport,
            principal=principal,
            client=client,
            engine=self._state.engine,
            request_headers=headers_as_text(headers),
        )
        transport.expiry = _ConnectionExpiry(self._state.loop, connection.stop)
        transport.expiry.extend(None if principal is None else principal.expires)
        self._open[id] = transport, connection
        stream.first = f"event: endpoint\ndata: {root}{self._messages_path}?session_id={id}\n\n".encode()
        serving = self._state.spawn(connection.run())
        try:
            await self._state.pump(stream, receive)
        finally:
            del self._open[id]
            transport.expiry.cancel()
            transport.end()
            await asyncio.wait([serving])

    async def _post(
        self, scope: Scope, headers: Headers, principal: Principal | None, receive: Receive, send: Send
    ) -> None:
        """Pass a message to its connection, which may be open on another worker."""
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        id = query.get("session_id", [""])[0]
        with Hold(self._state.config.budgets.calls, client_of_principal(principal)) as hold:
            body = await read_json_body(headers, receive, self._state.config.limits, hold)
            await self._accept(id, headers, body, principal, receive, hold)
        await respond(send, 202)

    async def _accept(
        self, id: str, headers: Headers, body: bytes, principal: Principal | None, receive: Receive, hold: Hold
    ) -> None:
        """Pass a message to its connection once that has room."""
        worker, store = id.partition(".")[0], self._state.store
        key, expires = (None, None) if principal is None else (principal.key, principal.expires)
        if (transport := self._transport_of(id, key)) is not None:
            if not transport.has_room.is_set():
                await _wait_for_room(transport, headers, body, receive, hold)
            if not self._deliver(id, body, key, expires):
                raise HTTPException(404, NOT_A_SESSION)
        elif store.is_shared and worker and worker != store.worker:
            await self._state.send_to(worker, "message posted", id, body.decode(errors="replace"), key, expires)
        else:
            raise HTTPException(404, NOT_A_SESSION)

    def _transport_of(self, id: str, principal: str | None) -> _SseTransport | None:
        """Return an open connection of this principal; None if there is none."""
        transport, _ = self._open.get(id, (None, None))
        return None if transport is None or transport.principal != principal else transport

    def on_message_posted(self, id: str, body: str, principal: str | None, expires: float | None) -> None:
        """Handle a message that was posted on another worker, which cannot wait for room."""
        transport, _ = self._open.get(id, (None, None))
        if transport is not None and transport.is_overfull:
            if not transport.has_reported_drop:
                transport.has_reported_drop = True
                text = "sse_queue_bytes: messages posted on another worker are dropped, since the queue is full"
                self._state.report(Diagnostic(DiagnosticKind.LIMIT_REACHED, text))
        else:
            self._deliver(id, body.encode(), principal, expires)

    def _deliver(self, id: str, body: bytes, principal: str | None, expires: float | None) -> bool:
        """Pass a message to its connection, whose life it extends to that of its credentials.

        False if this principal has no such connection.
        """
        if (transport := self._transport_of(id, principal)) is None:
            return False
        transport.expiry.extend(expires)
        transport.post(body)
        return True

    def end(self) -> None:
        """Close all connections gracefully."""
        for _, connection in self._open.values():
            connection.stop()
