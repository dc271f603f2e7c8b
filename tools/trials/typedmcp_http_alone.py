"""Serve with uvicorn and the protocol class, and with the server of this distribution; call over HTTP."""

import asyncio
import socket

import uvicorn

import typedmcp
from typedmcp_http import HttpProtocol, UvicornServer

server = typedmcp.Server("trial")


@server.tool
async def greet(name: str) -> str:
    """Greet a person."""
    return f"Hello, {name}!"


async def call(serving: uvicorn.Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = asyncio.create_task(serving.serve([listener]))
        async with typedmcp.connect(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp") as client:
            for _ in range(3):
                assert await client.call_tool("greet", {"name": "Ada"}, result_type=str) == "Hello, Ada!"
        serving.should_exit = True
        await running


config = uvicorn.Config(typedmcp.asgi(server), http=HttpProtocol, log_level="warning")
asyncio.run(call(uvicorn.Server(config)))
asyncio.run(call(UvicornServer(typedmcp.asgi(server), "127.0.0.1", 0)))
