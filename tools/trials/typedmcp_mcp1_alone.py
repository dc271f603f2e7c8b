"""Serve a program that is written for mcp 1.x, and call it with a client that is written so."""

import asyncio
import sys

from typedmcp_mcp1 import ClientSession, StdioServerParameters, stdio_client
from typedmcp_mcp1.server.fastmcp import FastMCP

mcp = FastMCP("trial")


@mcp.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def main() -> None:
    parameters = StdioServerParameters(command=sys.executable, args=[__file__, "serve"])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        result = await session.call_tool("add", {"a": 1, "b": 2})
        assert result.structuredContent == {"result": 3}, result


if sys.argv[1:] == ["serve"]:
    mcp.run()
else:
    asyncio.run(main())
