"""uvicorn, told to end what would never end by itself."""

from __future__ import annotations

import math
import socket
from typing import Any

import uvicorn

from typedmcp.http.asgi import App

__all__ = ["server_of"]


class _Server(uvicorn.Server):
    """Serves an application alone at a host and a port."""

    def __init__(self, app: App, host: str, port: int) -> None:
        self._app = app
        grace = math.ceil(app.service.grace)
        options: dict[str, Any] = {"access_log": False, "ws": "none", "lifespan": "on"}
        super().__init__(uvicorn.Config(app, host=host, port=port, timeout_graceful_shutdown=grace, **options))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Streams that wait for changes end first: uvicorn waits for all that is open."""
        self._app.end_streams()
        await super().shutdown(sockets)


def server_of(app: App, host: str, port: int) -> Any:
    """A server that is ready to run: its `serve` is a coroutine function."""
    return _Server(app, host, port)
