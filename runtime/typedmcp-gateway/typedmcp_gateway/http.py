"""The ASGI application of a gateway: an endpoint for clients, and routes for what watches over the gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Unpack

import msgspec

from typedmcp import ServerConfig, ServerOptions, UsageError
from typedmcp.server.http.asgi import AsgiApp, AsgiOptions
from typedmcp_gateway.servers import ServerStatus

__all__ = ["GatewayApp", "make_app"]

_ROUTES = ("/health", "/ready")


class GatewayApp(AsgiApp):
    """The application of a gateway. GET `/health` says that it runs, GET `/ready` whether a server can be reached."""

    def __init__(
        self, config: ServerConfig, check: Callable[[], Awaitable[Sequence[ServerStatus]]], **options: Any
    ) -> None:
        super().__init__(config, **options)
        if self.path in _ROUTES:
            raise UsageError(f"path: {self.path} is a route of the gateway; choose another one")
        self._check = check

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request, or run the lifespan."""
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in _ROUTES:
            await self._serve_state(scope["path"], send)
        else:
            await super().__call__(scope, receive, send)

    async def _serve_state(self, path: str, send: Any) -> None:
        """Answer without the check of the host: probes use addresses. Nothing is said but the names of servers."""
        status, body = 200, dict[str, object](status="ok")
        if path == "/ready":
            await self.open()
            servers = {each.name: "ok" if each.is_up else "down" for each in await self._check()}
            is_ready = "ok" in servers.values()
            status, body = (200 if is_ready else 503), {"status": "ok" if is_ready else "down", "servers": servers}
        content = msgspec.json.encode(body)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
        with suppress(OSError):  # the client has disconnected
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": content})


def make_app(
    gateway: object, check: Callable[[], Awaitable[Sequence[ServerStatus]]], **options: Unpack[AsgiOptions]
) -> GatewayApp:
    """Return the application of a gateway, with the options of `typedmcp.asgi`. `check` returns its servers' state."""
    names = ServerOptions.__optional_keys__
    config_options: dict[str, Any] = {name: value for name, value in options.items() if name in names}
    app_options = {name: value for name, value in options.items() if name not in names}
    return GatewayApp(ServerConfig(gateway, **config_options), check, **app_options)
