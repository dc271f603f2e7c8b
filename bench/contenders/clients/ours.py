"""typedmcp's client: `ours.py TARGET REVISION`, where the target is a URL or a server's script.

`--asyncio` leaves uvloop out.
"""

import asyncio
import sys

from pacing import TEXT, pace

from typedmcp import connect
from typedmcp.serving import loop_factory

TARGET, REVISION = sys.argv[1:3]
SERVER = TARGET if TARGET.startswith("http") else [sys.executable, TARGET]


async def main():
    async with connect(SERVER, revisions=[REVISION]) as client:

        async def call():
            return (await client.call_tool("echo", {"text": TEXT})).content[0].text

        await pace(call)


with asyncio.Runner(loop_factory=asyncio.new_event_loop if "--asyncio" in sys.argv else loop_factory()) as runner:
    runner.run(main())
