"""HTTP with SSE, the transport of 2024-11-05, under the names of `mcp.server.sse`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import typedmcp
from typedmcp.errors import UsageError
from typedmcp.server.http.asgi import AsgiApp
from typedmcp_mcp1.server.transport_security import TransportSecuritySettings

__all__ = ["SseServerTransport"]

_SSE_PATH, _NO_PATH = "/sse", "/no-such-endpoint"
_MESSAGES_PATH = "/messages"


class _OpenedStream:
    """The request of an event stream, which `Server.run` serves. It stands for both streams of messages."""

    def __init__(self, transport: SseServerTransport, scope: Any, receive: Any, send: Any) -> None:
        self._transport = transport
        self._request = scope, receive, send

    async def serve_request(self, config: typedmcp.ServerConfig) -> None:
        """Serve the stream until its client leaves."""
        await self._transport.serve(config, *self._request)

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
        self._endpoint = f"/{endpoint.strip('/')}" if endpoint.strip("/") else _MESSAGES_PATH
        self._security = security_settings or TransportSecuritySettings.open()
        self._app: AsgiApp | None = None
        self._streams = 0

    @asynccontextmanager
    async def connect_sse(self, scope: Any, receive: Any, send: Any) -> AsyncGenerator[tuple[Any, Any]]:
        """Yield the streams of a client, for `Server.run`."""
        stream = _OpenedStream(self, scope, receive, send)
        yield stream, stream

    async def serve(self, config: typedmcp.ServerConfig, scope: Any, receive: Any, send: Any) -> None:
        """Serve the event stream of a client. All streams have one application, which ends with the last of them."""
        root: str = scope.get("root_path", "").rstrip("/")
        app, self._streams = self._app or self._make_app(config), self._streams + 1
        self._app = app
        try:
            await app({**scope, "path": root + _SSE_PATH, "root_path": root}, receive, send)
        finally:
            self._streams -= 1
            if not self._streams:
                self._app = None
                await app.close()

    def _make_app(self, config: typedmcp.ServerConfig) -> AsgiApp:
        paths: Any = {"path": _NO_PATH, "sse_path": _SSE_PATH, "messages_path": self._endpoint}
        return typedmcp.asgi(config, **paths, **self._security.allowed())

    async def handle_post_message(self, scope: Any, receive: Any, send: Any) -> None:
        """Take a message of a client: an ASGI application."""
        if self._app is not None:
            await self._app({**scope, "path": self._endpoint, "root_path": ""}, receive, send)
        else:
            from starlette.responses import Response

            await Response("no client is connected", 404)(scope, receive, send)
