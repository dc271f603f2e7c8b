"""Asks for one result of so many MB, twice, and says how long the second took and what memory it took at most."""

import asyncio
import json
import sys

from measuring import one_large

from typedmcp import StdioServerParameters, connect


async def main():
    command = StdioServerParameters(sys.executable, [sys.argv[1]])
    async with connect(command, timeout=600) as client:
        return await one_large(lambda size: client.call_tool("large", {"size": size}), int(sys.argv[2]) << 20)


print(json.dumps(asyncio.run(main())))
