"""HTTP with SSE, the transport of 2024-11-05: clients open an event stream at one path and post messages to another.

https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
"""

from __future__ import annotations

import asyncio
import secrets
from urllib.parse import parse_qs

from typedmcp.errors import UsageError
from typedmcp.server.connection import ServerConnection
from typedmcp.server.http.auth import Principal
from typedmcp.server.http.messages import (
    NOT_A_SESSION,
    RETRY_LATER,
    TOO_MANY_STREAMS,
    Headers,
    HTTPException,
    Receive,
    Scope,
    Send,
    read_json_body,
    respond,
)  # fmt: skip
from typedmcp.server.http.state import AppState
from typedmcp.server.http.streams import EventStream

__all__ = ["LegacySse"]


class _SseTransport:
    """A `Transport` that receives messages as POSTs and sends them as events.

    `queue_limit` is the number of queued bytes above which further POSTs wait.
    """

    def __init__(self, stream: EventStream, principal: str | None, queue_limit: int) -> None:
        self.principal: str | None = principal
        self._stream = stream
        self._queue_limit = queue_limit
        self._bodies: list[bytes] = []
        self._size = 0
        self._has_ended = False
        self._readable = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    def post(self, body: bytes) -> None:
        """Queue a message that was posted."""
        # JSON has line ends only between tokens, where a space means the same.
        self._bodies.append(body.replace(b"\n", b" ") + b"\n")
        self._size += len(body)
        if self._size > self._queue_limit:
            self._has_room.clear()
        self._readable.set()

    async def wait_for_room(self) -> None:
        """Wait until the queue is below its limit."""
        await self._has_room.wait()

    async def read(self) -> bytes:
        """Wait for messages and return them, empty at the end."""
        await self._readable.wait()
        data = b"".join(self._bodies)
        self._bodies.clear()
        self._size = 0
        self._has_room.set()
        if not self._has_ended:
            self._readable.clear()
        return data

    def write(self, data: bytes) -> None:
        """Send lines, each as an event."""
        for line in data.splitlines():
            self._stream.put(line)

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
        self._has_room.set()

    async def close(self) -> None:
        """End the event stream."""
        self.end()
        self._stream.end()


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
        name = None if principal is None else principal.name
        if path == self._sse_path:
            await self._connect(scope.get("root_path", ""), name, receive, send)
        else:
            await self._post(scope, headers, name, receive, send)

    async def _connect(self, root: str, principal: str | None, receive: Receive, send: Send) -> None:
        """Open a connection and its event stream, whose first event names the path for messages."""
        stream = self._state.open_stream(send)
        if stream is None:
            raise HTTPException(503, TOO_MANY_STREAMS, RETRY_LATER)
        id = f"{self._state.store.worker}.{secrets.token_urlsafe(24)}"
        transport = _SseTransport(stream, principal, self._state.config.limits.sse_queue_bytes)
        connection = ServerConnection(self._state.config, transport, principal=principal)
        self._open[id] = transport, connection
        first = f"event: endpoint\ndata: {root}{self._messages_path}?session_id={id}\n\n".encode()
        serving = self._state.spawn(connection.run())
        try:
            await self._state.pump(stream, first, receive)
        finally:
            del self._open[id]
            transport.end()
            await asyncio.wait([serving])

    async def _post(self, scope: Scope, headers: Headers, principal: str | None, receive: Receive, send: Send) -> None:
        """Pass a message to its connection, which may be open on another worker."""
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        id = query.get("session_id", [""])[0]
        body = await read_json_body(headers, receive, self._state.config.limits.http_body_bytes)
        worker, store = id.partition(".")[0], self._state.store
        if id in self._open:
            if not self._deliver(id, body, principal):
                raise HTTPException(404, NOT_A_SESSION)
            await self._open[id][0].wait_for_room()
        elif store.is_shared and worker and worker != store.worker:
            await self._state.send_to(worker, "message posted", id, body.decode(errors="replace"), principal)
        else:
            raise HTTPException(404, NOT_A_SESSION)
        await respond(send, 202)

    def on_message_posted(self, id: str, body: str, principal: str | None) -> None:
        """Handle a message that was posted on another worker."""
        self._deliver(id, body.encode(), principal)

    def _deliver(self, id: str, body: bytes, principal: str | None) -> bool:
        """Pass a message to its connection. False if this principal has no such connection."""
        transport, _ = self._open.get(id, (None, None))
        if transport is None or transport.principal != principal:
            return False
        transport.post(body)
        return True

    def end(self) -> None:
        """Close all connections gracefully."""
        for _, connection in self._open.values():
            connection.stop()
