"""A connection to a handler in the same process. No other module of the client imports the server core."""

from __future__ import annotations

import asyncio

from typedmcp.server.config import ServerConfig
from typedmcp.server.connection import ServerConnection
from typedmcp.transports import HIGH_WATER
from typedmcp.transports.memory import MemoryPipe, MemoryTransport

__all__ = ["InProcessTransport"]


class InProcessTransport(MemoryTransport):
    """Serve a handler in a task of the running event loop, as a `Transport` for its client.

    `server` is a `ServerConfig`, or a handler that becomes one with default options.
    """

    def __init__(self, server: object) -> None:
        config = server if isinstance(server, ServerConfig) else ServerConfig(server)
        there, back = MemoryPipe(HIGH_WATER), MemoryPipe(HIGH_WATER)
        super().__init__(there, back)
        self._connection = ServerConnection(config, MemoryTransport(back, there))
        self._serving = asyncio.get_running_loop().create_task(self._connection.run())

    async def close(self) -> None:
        """Close the connection and wait until the server session has ended. Raises its exception, if any."""
        await super().close()
        if not self._connection.has_begun:  # its task has not started, and so cannot see the end of the connection
            self._connection.stop()
        await asyncio.wait([self._serving])
        if not self._serving.cancelled() and (error := self._serving.exception()) is not None:
            raise error
