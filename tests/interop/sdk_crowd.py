"""Many clients of the official SDK at once: `sdk_crowd.py URL COUNT`. It prints the number that saw the tools.

The SDK sends `notifications/initialized` and opens its stream at the same time, in any order.
"""

import asyncio
import importlib
import sys
from typing import Any


async def visit(url: str) -> bool:
    http: Any = importlib.import_module("mcp.client.streamable_http")
    session_of: Any = importlib.import_module("mcp").ClientSession
    connect = getattr(http, "streamable_http_client", None) or http.streamablehttp_client
    async with connect(url) as streams, session_of(streams[0], streams[1]) as session:
        await session.initialize()
        names = {tool.name for tool in (await session.list_tools()).tools}
        await asyncio.sleep(0.2)  # for the stream, which opens in the background
        return "add" in names


async def main(url: str, count: int) -> None:
    print(sum(await asyncio.gather(*(visit(url) for _ in range(count)))))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
