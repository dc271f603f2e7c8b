"""A uvicorn server that ends the streams and lifespans that would keep it from exiting."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import socket
from collections.abc import Sequence
from types import FrameType
from typing import Any

import uvicorn

from typedmcp.server.http.asgi import AsgiApp
from typedmcp_http.protocol import HttpProtocol

__all__ = ["UvicornServer"]


class UvicornServer(uvicorn.Server):
    """Serves one application at a host and a port."""

    def __init__(self, app: AsgiApp, host: str, port: int) -> None:
        self._app = app
        grace = math.ceil(app.config.grace)
        options: dict[str, Any] = {"access_log": False, "http": HttpProtocol, "ws": "none", "lifespan": "on"}
        super().__init__(uvicorn.Config(app, host=host, port=port, timeout_graceful_shutdown=grace, **options))

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal asks to exit."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    def _log_started_message(self, listeners: Sequence[socket.SocketType]) -> None:
        """Log the URL of the endpoint. If uvicorn renames this method, its own line has the address only."""
        addresses = [each.getsockname() for each in listeners if each.family != getattr(socket, "AF_UNIX", None)]
        for host, port, *_ in addresses[:1]:
            shown = f"[{host}]" if ":" in host else host
            url = f"http://{shown}:{port}{self._app.path}"
            logging.getLogger("uvicorn.error").info("Uvicorn running on %s (Press CTRL+C to quit)", url)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Interrupt a slow lifespan: the first signal while it is entered, the second one while it is left."""
        # uvicorn's own method keeps the signals to raise them again at the end: Ctrl-C would have a traceback.
        self.force_exit: bool = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        self._loop.call_soon_threadsafe(self._app.config.lifespans.interrupt)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what only waits before uvicorn waits for open connections."""
        self._app.stop()
        await super().shutdown(sockets)
