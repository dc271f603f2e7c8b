"""fastmcp over stdio. Results are plain text, as everywhere."""

import asyncio

import uvloop
from fastmcp import FastMCP

server = FastMCP("echo", version="1")


@server.tool(output_schema=None)
async def echo(text: str) -> str:
    return text


@server.tool(output_schema=None)
async def large(size: int) -> str:
    return "x" * size


@server.tool(output_schema=None)
async def wait() -> str:
    await asyncio.Event().wait()


uvloop.run(server.run_stdio_async(show_banner=False, log_level="WARNING"))
