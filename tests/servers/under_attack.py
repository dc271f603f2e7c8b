"""A server over HTTP with the default limits, for `tests.attacks`: it prints its address once it listens."""

from __future__ import annotations

import asyncio
import socket
import time

import uvicorn

import typedmcp

server = typedmcp.Server("under-attack")


@server.tool
async def quick(text: str = "") -> int:
    """Return at once."""
    return len(text)


@server.tool
def plain() -> str:
    """Return at once, in a thread."""
    return "plain"


@server.tool
def block() -> str:
    """Keep a thread for half a second."""
    time.sleep(0.5)
    return "blocked"


@server.tool
async def wait(text: str = "") -> int:
    """Wait for a minute."""
    await asyncio.sleep(60)
    return len(text)


@server.tool
async def large(size: int) -> str:
    """Wait for a moment, and return a large result."""
    await asyncio.sleep(0.01)
    return "x" * size


@server.tool
async def chat(ctx: typedmcp.Context) -> str:
    """Send progress until the client has left."""
    step = 0
    while not ctx.cancelled:
        step += 1
        ctx.progress(step, message="x" * 1000)
        await asyncio.sleep(0.001)
    return "done"


@server.resource("data://{name}")
def data(name: str) -> str:
    """Return the name of a resource, so that clients can subscribe to it."""
    return name


def main() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        app = typedmcp.asgi(server, sse_path="/sse", on_diagnostic=lambda _: None)
        config = uvicorn.Config(app, log_level="error", access_log=False, ws="none", timeout_graceful_shutdown=2)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
