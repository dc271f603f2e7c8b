"""The same with the official Python SDK's client."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from measuring import one_large


async def main():
    async with (
        stdio_client(StdioServerParameters(command=sys.argv[3], args=[sys.argv[1]])) as (read, write),
        ClientSession(read, write) as client,
    ):
        await client.initialize()
        return await one_large(lambda size: client.call_tool("large", {"size": size}), int(sys.argv[2]) << 20)


print(json.dumps(asyncio.run(main())))
