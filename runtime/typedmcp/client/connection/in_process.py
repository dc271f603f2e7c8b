"""A connection to a handler in the same process. No other module of the client imports the server core."""

from __future__ import annotations

import asyncio
from typing import Final

from typedmcp.server.config import ServerConfig
from typedmcp.server.connection import ServerConnection
from typedmcp.transports.memory import memory_pair

__all__ = ["InProcessTransport"]


class InProcessTransport:
    """Serve a handler in a task of the running event loop, as a `Transport` for its client.

    `server` is a `ServerConfig`, or a handler that becomes one with default options.
    """

    network: Final = "memory"

    def __init__(self, server: object) -> None:
        config = server if isinstance(server, ServerConfig) else ServerConfig(server)
        self._near, far = memory_pair()
        self._connection = ServerConnection(config, far)
        self._serving = asyncio.get_running_loop().create_task(self._connection.run())

    async def read(self) -> bytes:
        """Wait for the next bytes from the server. Empty bytes are the end."""
        return await self._near.read()

    def write(self, data: bytes) -> None:
        """Send bytes to the server."""
        self._near.write(data)

    @property
    def is_congested(self) -> bool:
        """True while the server is not reading."""
        return self._near.is_congested

    async def drain(self) -> None:
        """Wait until the server has read enough."""
        await self._near.drain()

    async def close(self) -> None:
        """Close the connection and wait until the server session has ended. Raises its exception, if any."""
        await self._near.close()
        if not self._connection.has_begun:  # its task has not started, and so cannot see the end of the connection
            self._connection.stop()
        await asyncio.wait([self._serving])
        if not self._serving.cancelled() and (error := self._serving.exception()) is not None:
            raise error
