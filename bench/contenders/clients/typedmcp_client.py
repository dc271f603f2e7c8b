"""The typedmcp client.

Usage: `typedmcp_client.py TARGET REVISION [--asyncio] [--telemetry=KIND]`. TARGET is a URL or the script of a server.
`--asyncio` disables uvloop.
"""

import asyncio
import sys
from pathlib import Path

from pacing import TEXT, take_turns

from typedmcp import connect
from typedmcp.transports.concurrency import new_event_loop

sys.path.append(str(Path(__file__).parents[1]))  # it runs as a script
from observed import telemetry_options

TARGET, REVISION = sys.argv[1:3]
SERVER = TARGET if TARGET.startswith("http") else [sys.executable, TARGET]


async def main():
    async with connect(SERVER, revisions=[REVISION], **telemetry_options()) as client:

        async def call():
            return (await client.call_tool("echo", {"text": TEXT})).content[0].text

        await take_turns(call)


with asyncio.Runner(loop_factory=asyncio.new_event_loop if "--asyncio" in sys.argv else new_event_loop) as runner:
    runner.run(main())
