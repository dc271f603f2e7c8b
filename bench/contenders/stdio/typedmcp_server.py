"""A `Server` of typedmcp with decorated functions, over stdio."""

import asyncio

import typedmcp

server = typedmcp.Server("echo", version="1")


@server.tool
async def echo(text: str) -> str:
    return text


@server.tool
async def large(size: int) -> str:
    return "x" * size


@server.tool
async def wait() -> str:
    await asyncio.Event().wait()
    return ""


server.run()
