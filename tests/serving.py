"""ASGI applications over HTTP, in the process of the test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from typedmcp_http import UvicornServer

__all__ = ["serving_http"]


@asynccontextmanager
async def serving_http(app: Any) -> AsyncGenerator[str]:
    """Serve an application at a free port, and yield its address."""
    # With the protocol 0 of `create_server`, asyncio would leave Nagle's algorithm on: 40 ms for each response.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
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
