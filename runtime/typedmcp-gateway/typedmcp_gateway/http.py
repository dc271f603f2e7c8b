"""The ASGI application of a gateway: an endpoint for clients, and routes for what watches over the gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Unpack

import msgspec

from typedmcp import UsageError
from typedmcp.server.http.asgi import AsgiApp, AsgiOptions, Send, asgi
from typedmcp_gateway.servers import ServerStatus

__all__ = ["make_app"]


def make_app(
    gateway: object, check: Callable[[], Awaitable[Sequence[ServerStatus]]], **options: Unpack[AsgiOptions]
) -> AsgiApp:
    """Return the application of a gateway, with the options of `typedmcp.asgi`. `check` returns its servers' state.

    GET `/health` says that it runs, GET `/ready` whether a server can be reached. Nothing is said but the names of
    servers.
    """
    app = asgi(gateway, **options)

    async def serve_health(send: Send) -> None:
        await _respond(send, 200, {"status": "ok"})

    async def serve_ready(send: Send) -> None:
        await app.open()
        servers = {each.name: "ok" if each.is_up else "down" for each in await check()}
        is_ready = "ok" in servers.values()
        await _respond(send, 200 if is_ready else 503, {"status": "ok" if is_ready else "down", "servers": servers})

    app.routes = {"/health": serve_health, "/ready": serve_ready}
    if app.path in app.routes:
        raise UsageError(f"path: {app.path} is a route of the gateway; choose another one")
    return app


async def _respond(send: Send, status: int, body: dict[str, object]) -> None:
    content = msgspec.json.encode(body)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
    with suppress(OSError):  # the client has disconnected
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})
