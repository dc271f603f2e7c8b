"""The same with the official Python SDK's client."""

import asyncio
import json
import resource
import sys
import time

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    async with (
        stdio_client(StdioServerParameters(command=sys.argv[3], args=[sys.argv[1]])) as (read, write),
        ClientSession(read, write) as client,
    ):
        await client.initialize()
        await client.call_tool("large", {"size": 1})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        result = await client.call_tool("large", {"size": int(sys.argv[2]) << 20})
        took = time.perf_counter() - start
        assert len(result.content[0].text) == int(sys.argv[2]) << 20
        return [took, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10]


print(json.dumps(asyncio.run(main())))
