"""The official Python SDK's client."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from measuring import rates

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
        return await rates(lambda: client.call_tool("echo", TEXT), COUNT, DEPTH)


print(json.dumps(asyncio.run(main())))
