"""typedmcp's client; `--asyncio` leaves uvloop out, `--sync` uses the blocking face."""

import asyncio
import json
import sys
import time

from measuring import rates

from typedmcp import connect, sync
from typedmcp.serving import loop_factory

COMMAND = [sys.executable, sys.argv[1]]
COUNT = int(sys.argv[2])
DEPTH = int(sys.argv[3])
TEXT = {"text": "x" * 20}


async def main():
    async with connect(COMMAND) as client:
        return await rates(lambda: client.call_tool("echo", TEXT), COUNT, DEPTH)


def blocking():
    with sync.connect(COMMAND) as client:
        found = []
        for count in (COUNT // 32, COUNT // 8):
            start = time.perf_counter()
            for _ in range(count):
                client.call_tool("echo", TEXT)
            found.append(count / (time.perf_counter() - start))
        return [found[1], None]


if "--sync" in sys.argv:
    found = blocking()
else:
    factory = asyncio.new_event_loop if "--asyncio" in sys.argv else loop_factory()
    with asyncio.Runner(loop_factory=factory) as runner:
        found = runner.run(main())
print(json.dumps(found))
