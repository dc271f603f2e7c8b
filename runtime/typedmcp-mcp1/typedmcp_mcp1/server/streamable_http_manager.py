"""Sessions over HTTP, under the names of `mcp.server.streamable_http_manager`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import typedmcp
from typedmcp.server.http.asgi import AsgiApp
from typedmcp_mcp1.server.lowlevel.server import Server
from typedmcp_mcp1.server.transport_security import TransportSecuritySettings

__all__ = ["StreamableHTTPSessionManager"]


class StreamableHTTPSessionManager:
    """Serves a `Server` over HTTP: `handle_request` is an ASGI application for any path.

    `event_store`, `json_response`, `retry_interval` and the limits have no effect: typedmcp keeps events itself,
    answers with JSON or with a stream as the request needs, and has limits of its own.
    """

    def __init__(
        self,
        app: Server[Any, Any],
        event_store: Any = None,
        json_response: bool = False,
        stateless: bool = False,
        security_settings: TransportSecuritySettings | None = None,
        retry_interval: int | None = None,
        max_request_body_size: int | None = None,
        session_idle_timeout: float | None = None,
        max_sessions: int | None = None,
    ) -> None:
        self._server = app
        self._is_stateless = stateless
        self._security = security_settings or TransportSecuritySettings.open()
        self._options: dict[str, Any] = {}
        self._app: AsgiApp | None = None

    def configure(self, **options: Any) -> None:
        """Set further options of `typedmcp.asgi`, before the first request."""
        self._options = options

    @property
    def app(self) -> AsgiApp:
        """The application, which is made when it is first used."""
        if self._app is None:
            options: dict[str, Any] = {"sessions": not self._is_stateless, **self._security.allowed(), **self._options}
            self._app = typedmcp.asgi(self._server.configure(), **options)
        return self._app

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Open the application, and close it at the end."""
        async with self.app.lifespan():
            yield

    async def handle_request(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request, whatever its path."""
        await self.app({**scope, "path": self.app.path, "root_path": ""}, receive, send)
