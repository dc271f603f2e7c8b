"""Servers and clients in one process, under the names of `mcp.shared.memory`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from typedmcp import memory_pair
from typedmcp_mcp1.client.session import ClientSession
from typedmcp_mcp1.server.lowlevel.server import Server
from typedmcp_mcp1.streams import ReadStream, WriteStream

__all__ = ["MessageStream", "create_client_server_memory_streams", "create_connected_server_and_client_session"]

MessageStream: TypeAlias = tuple[ReadStream, WriteStream]


@asynccontextmanager
async def create_client_server_memory_streams() -> AsyncGenerator[tuple[MessageStream, MessageStream]]:
    """Yield the streams of a client and those of a server, which are connected."""
    here, there = memory_pair()
    yield (ReadStream(here), WriteStream(here)), (ReadStream(there), WriteStream(there))
    await here.close()


@asynccontextmanager
async def create_connected_server_and_client_session(
    server: Any, *options: Any, raise_exceptions: bool = False, **more: Any
) -> AsyncGenerator[ClientSession]:
    """Yield the session of a client of a server in this process. The options are those of `ClientSession`."""
    served: Server[Any, Any] = getattr(server, "low_level", server)
    async with create_client_server_memory_streams() as ((read, write), streams):
        serving = asyncio.create_task(served.run(*streams, raise_exceptions=raise_exceptions))
        try:
            async with ClientSession(read, write, *options, **more) as session:
                await session.initialize()
                yield session
        finally:
            serving.cancel()
            await asyncio.wait([serving])
