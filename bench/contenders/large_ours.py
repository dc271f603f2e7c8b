"""Asks for one result of so many MB, twice, and says how long the second took and what memory it took at most."""

import asyncio
import json
import resource
import sys
import time

from typedmcp import StdioServerParameters, connect


async def main():
    command = StdioServerParameters(sys.executable, [sys.argv[1]])
    async with connect(command, timeout=600) as client:
        await client.call_tool("large", {"size": 1})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        result = await client.call_tool("large", {"size": int(sys.argv[2]) << 20})
        took = time.perf_counter() - start
        assert len(result.content[0].text) == int(sys.argv[2]) << 20
        return [took, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10]


print(json.dumps(asyncio.run(main())))
