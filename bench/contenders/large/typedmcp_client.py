"""The typedmcp client.

Usage: `typedmcp_client.py TARGET REVISION`. TARGET is a URL or the script of a server.
"""

import asyncio
import sys

from turns import take_turns

from typedmcp import connect
from typedmcp.transports.concurrency import new_event_loop

TARGET, REVISION = sys.argv[1:3]
SERVER = TARGET if TARGET.startswith("http") else [sys.executable, TARGET]


async def main():
    async with connect(SERVER, revisions=[REVISION]) as client:

        async def call(tool, arguments):
            return (await client.call_tool(tool, arguments)).content[0].text

        await take_turns(call)


with asyncio.Runner(loop_factory=new_event_loop) as runner:
    runner.run(main())
