"""A server whose tools run as tasks, over standard input and output, or over HTTP on a free port that it prints."""

from __future__ import annotations

import asyncio
import socket
import sys

import typedmcp
from typedmcp import Context
from typedmcp_extensions.tasks import ServerTasks
from typedmcp_http import UvicornServer

server = typedmcp.Server("with tasks", extensions=[ServerTasks(poll_interval=0.05)])


@server.tool(task="optional")
async def greet(ctx: Context) -> str:
    """Greet a person whose name is asked for."""
    answer = await ctx.elicit("Your name?", str, key="name")
    return f"Hello, {answer.data}!"


@server.tool(task="optional")
async def wait() -> str:
    """Wait until the task is cancelled."""
    await asyncio.Event().wait()
    return "never"


@server.tool(task="required")
async def only() -> str:
    """Run as a task only."""
    return "done"


@server.tool
async def quick() -> str:
    """Run within the request."""
    return "at once"


def serve_http() -> None:
    """Serve over HTTP, and print the address as soon as connections are accepted."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        print(f"http://127.0.0.1:{port}/mcp", flush=True)
        UvicornServer(typedmcp.asgi(server), "127.0.0.1", port).run(sockets=[listening])


if __name__ == "__main__":
    serve_http() if sys.argv[1:] == ["http"] else server.run()
