"""HTTP with SSE, as 2024-11-05 has it: one endpoint that streams, and one that messages are posted to.

https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from typedmcp.errors import UsageError
from typedmcp.http.access import Principal, Refused
from typedmcp.http.exchange import RETRY_SOON, TOO_MANY_STREAMS, Receive, respond
from typedmcp.http.streams import EventStream, Send
from typedmcp.session import ServerSession

if TYPE_CHECKING:
    from typedmcp.http.asgi import App

__all__ = ["TwoEndpoints"]

_WAITING = 1 << 20
"""How many bytes of messages may wait to be taken in before a POST has to wait."""


class _Posted:
    """The `Transport` of a connection whose messages come in POSTs and go out as events."""

    def __init__(self, stream: EventStream, principal: str | None) -> None:
        self.principal: str | None = principal
        self._stream = stream
        self._bodies: list[bytes] = []
        self._size = 0
        self._ended = False
        self._readable = asyncio.Event()
        self._taken = asyncio.Event()
        self._taken.set()

    def post(self, body: bytes) -> None:
        """A message came. Line ends stand between the tokens of JSON only, where they mean nothing."""
        self._bodies.append(body.replace(b"\n", b" ") + b"\n")
        self._size += len(body)
        if self._size > _WAITING:
            self._taken.clear()
        self._readable.set()

    async def room(self) -> None:
        """Wait until there is room for more."""
        await self._taken.wait()

    async def read(self) -> bytes:
        """What was posted; empty at the end."""
        await self._readable.wait()
        data = b"".join(self._bodies)
        self._bodies.clear()
        self._size = 0
        self._taken.set()
        if not self._ended:
            self._readable.clear()
        return data

    def write(self, data: bytes) -> None:
        """Send lines, each as an event."""
        for line in data.splitlines():
            self._stream.put(line)

    @property
    def congested(self) -> bool:
        """Whether the client does not read."""
        return self._stream.is_congested

    async def drain(self) -> None:
        """Wait until it does."""
        await self._stream.drain()

    def end(self) -> None:
        """Nothing more is posted."""
        self._ended = True
        self._readable.set()
        self._taken.set()

    async def close(self) -> None:
        """End the stream."""
        self.end()
        self._stream.end()


class TwoEndpoints:
    """The two endpoints of an application."""

    def __init__(self, app: App, sse_path: str, messages_path: str) -> None:
        self._app = app
        self._sse, self._messages = sse_path.rstrip("/") or "/", messages_path.rstrip("/") or "/"
        self.paths: tuple[str, str] = (self._sse, self._messages)
        if self._sse == self._messages:
            raise UsageError(f"sse_path and messages_path are the same: {sse_path}")
        self._open: dict[str, tuple[_Posted, ServerSession]] = {}

    async def serve(
        self,
        path: str,
        scope: Mapping[str, Any],
        headers: Mapping[bytes, bytes],
        who: Principal | None,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve a request to one of them. Raises `Refused`."""
        wanted = "GET" if path == self._sse else "POST"
        if scope["method"] != wanted:
            raise Refused(405, f"{scope['method']} is not for this; {wanted} is", [(b"allow", wanted.encode())])
        principal = None if who is None else who.name
        if path == self._sse:
            await self._connect(scope.get("root_path", ""), principal, receive, send)
        else:
            await self._post(scope, headers, principal, receive, send)

    async def _connect(self, root: str, principal: str | None, receive: Receive, send: Send) -> None:
        stream = self._app.stream(send)
        if stream is None:
            raise Refused(503, TOO_MANY_STREAMS, RETRY_SOON)
        id = f"{self._app.store.worker}.{secrets.token_urlsafe(24)}"
        posted = _Posted(stream, principal)
        session = ServerSession(self._app.service, posted, principal=principal)
        self._open[id] = posted, session
        first = f"event: endpoint\ndata: {root}{self._messages}?session_id={id}\n\n".encode()
        serving = self._app.later(session.run())
        try:
            await self._app.pump(stream, first, receive)
        finally:
            del self._open[id]
            posted.end()
            await asyncio.wait([serving])

    async def _post(
        self,
        scope: Mapping[str, Any],
        headers: Mapping[bytes, bytes],
        principal: str | None,
        receive: Receive,
        send: Send,
    ) -> None:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        id = query.get("session_id", [""])[0]
        body = await self._app.read(headers, receive)
        worker = id.partition(".")[0]
        if id in self._open:
            if not self.deliver(id, body, principal):
                raise Refused(404, "the session is not there, or not any more")
            await self._open[id][0].room()
        elif self._app.store.is_shared and worker and worker != self._app.store.worker:
            await self._app.tell(worker, "post", id, body.decode(errors="replace"), principal)
        else:
            raise Refused(404, "the session is not there, or not any more")
        await respond(send, 202)

    def deliver(self, id: str, body: bytes, principal: str | None) -> bool:
        """Hand a message to its connection. False if there is none of this principal's."""
        found = self._open.get(id)
        if found is None or found[0].principal != principal:
            return False
        found[0].post(body)
        return True

    def end(self) -> None:
        """End all connections."""
        for _, session in self._open.values():
            session.stop()
