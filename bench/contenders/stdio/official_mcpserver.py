"""`MCPServer` of the official Python SDK over stdio. Results are plain text, as everywhere."""

import asyncio

import uvloop
from mcp.server.mcpserver import MCPServer

server = MCPServer("echo", version="1", log_level="WARNING")


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    return text


@server.tool(structured_output=False)
async def large(size: int) -> str:
    return "x" * size


@server.tool(structured_output=False)
async def wait() -> str:
    await asyncio.Event().wait()


uvloop.run(server.run_stdio_async())
