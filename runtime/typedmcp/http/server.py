"""uvicorn, told to end what would never end by itself."""

from __future__ import annotations

import asyncio
import math
import socket
from types import FrameType
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

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until it is told to end."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal also ends a lifespan that takes long to begin, and a second one that takes long to end."""
        super().handle_exit(sig, frame)
        self._loop.call_soon_threadsafe(self._app.service.running.interrupt)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Streams that wait for changes end first: uvicorn waits for all that is open."""
        self._app.end_streams()
        await super().shutdown(sockets)


def server_of(app: App, host: str, port: int) -> Any:
    """A server that is ready to run: its `serve` is a coroutine function."""
    return _Server(app, host, port)
