"""Many clients of the official SDK at once: `sdk_crowd.py URL COUNT LOG`. It prints the number that saw the tools.

The SDK sends `notifications/initialized` and opens its stream at the same time, in any order. A client leaves when all
streams are open, or were refused, which the server writes to its log.
"""

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any


async def visit(url: str, count: int, log: Path) -> bool:
    http: Any = importlib.import_module("mcp.client.streamable_http")
    session_of: Any = importlib.import_module("mcp").ClientSession
    connect = getattr(http, "streamable_http_client", None) or http.streamablehttp_client
    async with connect(url) as streams, session_of(streams[0], streams[1]) as session:
        await session.initialize()
        names = {tool.name for tool in (await session.list_tools()).tools}
        while log.read_text(encoding="utf-8").count("GET ") < count:
            await asyncio.sleep(0.05)
        return "add" in names


async def main(url: str, count: int, log: Path) -> None:
    print(sum(await asyncio.gather(*(visit(url, count, log) for _ in range(count)))))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
