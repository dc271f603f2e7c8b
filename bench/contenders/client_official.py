"""The official Python SDK's client."""

import asyncio
import json
import sys
import time

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

COUNT = int(sys.argv[2])
DEPTH = int(sys.argv[3])
TEXT = {"text": "x" * 20}


async def main():
    async with (
        stdio_client(StdioServerParameters(command=sys.argv[4], args=[sys.argv[1]])) as (read, write),
        ClientSession(read, write) as client,
    ):
        await client.initialize()
        await client.list_tools()

        async def several(numbers):
            for _ in numbers:
                await client.call_tool("echo", TEXT)

        async def timed(count, depth):
            numbers = iter(range(count))
            start = time.perf_counter()
            await asyncio.gather(*(several(numbers) for _ in range(depth)))
            return count / (time.perf_counter() - start)

        await timed(COUNT // 4, DEPTH)
        return [await timed(COUNT // 8, 1), await timed(COUNT, DEPTH)]


print(json.dumps(asyncio.run(main())))
