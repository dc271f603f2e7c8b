"""An ASGI application over HTTP, in the process of the test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from typedmcp.server.http.uvicorn import UvicornServer

__all__ = ["serving_http"]


@asynccontextmanager
async def serving_http(app: Any) -> AsyncGenerator[str]:
    """Serve an application at a free port, and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = UvicornServer(app, "127.0.0.1", port)
        serving = asyncio.create_task(server.serve([listener]))
        while not server.started:
            if serving.done():
                serving.result()
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            await serving
