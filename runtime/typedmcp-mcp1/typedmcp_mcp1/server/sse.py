"""HTTP with SSE, the transport of 2024-11-05, under the names of `mcp.server.sse`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

import typedmcp
from typedmcp.errors import UsageError
from typedmcp.server.http.asgi import AsgiApp
from typedmcp_mcp1.server.transport_security import TransportSecuritySettings

__all__ = ["SseServerTransport"]

_SSE_PATH = "/sse"
_MESSAGES_PATH = "/messages"


class _OpenedStream:
    """The request of an event stream, which `Server.run` serves. It stands for both streams of messages."""

    def __init__(self, transport: SseServerTransport, scope: Any, receive: Any, send: Any) -> None:
        self._transport = transport
        self._request = scope, receive, send

    async def serve_request(self, server: object, config: typedmcp.ServerConfig) -> None:
        """Serve the stream until its client leaves."""
        await self._transport.serve(server, config, *self._request)

    async def receive(self) -> Any:
        """Raise `UsageError`: the messages of this stream are read by `Server.run`."""
        raise UsageError("the streams of connect_sse are for Server.run; for messages one by one use typedmcp.asgi")


class SseServerTransport:
    """Two endpoints: `connect_sse` opens the event stream of a client, which posts to `handle_post_message`.

    `endpoint` is the path that clients post to.
    """

    def __init__(
        self,
        endpoint: str,
        security_settings: TransportSecuritySettings | None = None,
        max_request_body_size: int | None = None,
    ) -> None:
        if "://" in endpoint or endpoint.startswith("//") or "?" in endpoint or "#" in endpoint:
            raise ValueError(f"{endpoint!r} is not a path: the endpoint is one, such as /messages/")
        self._endpoint = endpoint if endpoint.startswith("/") else f"/{endpoint}"
        self._security = security_settings or TransportSecuritySettings.open()
        self._apps: WeakKeyDictionary[Any, AsgiApp] = WeakKeyDictionary()

    @asynccontextmanager
    async def connect_sse(self, scope: Any, receive: Any, send: Any) -> AsyncGenerator[tuple[Any, Any]]:
        """Yield the streams of a client, for `Server.run`."""
        stream = _OpenedStream(self, scope, receive, send)
        yield stream, stream

    async def serve(self, server: object, config: typedmcp.ServerConfig, scope: Any, receive: Any, send: Any) -> None:
        """Serve the event stream of a client of a server."""
        app = self._apps.get(server)
        if app is None:
            messages = self._endpoint.rstrip("/") or _MESSAGES_PATH
            options: dict[str, Any] = {"path": "/no-such-endpoint", "sse_path": _SSE_PATH, "messages_path": messages}
            app = self._apps[server] = typedmcp.asgi(config, **options, **self._security.allowed())
        root = _root_of(scope)
        await app({**scope, "path": root + _SSE_PATH, "root_path": root}, receive, send)

    async def handle_post_message(self, scope: Any, receive: Any, send: Any) -> None:
        """Take a message of a client: an ASGI application."""
        for app in self._apps.values():
            messages = self._endpoint.rstrip("/") or _MESSAGES_PATH
            await app({**scope, "path": messages, "root_path": ""}, receive, send)
            return
        from starlette.responses import Response

        await Response("no client is connected", 404)(scope, receive, send)


def _root_of(scope: Any) -> str:
    root: str = scope.get("root_path", "")
    return root.rstrip("/")
