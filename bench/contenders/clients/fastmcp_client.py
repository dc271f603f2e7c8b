"""The client of fastmcp.

Usage: `fastmcp_client.py TARGET REVISION`. TARGET is a URL or the script of a server.
"""

import sys
from pathlib import Path

import uvloop
from fastmcp import Client
from pacing import TEXT, take_turns

TARGET, REVISION = sys.argv[1:3]


async def main():
    server = TARGET if TARGET.startswith("http") else Path(TARGET)
    async with Client(server, mode="auto" if REVISION == "2026-07-28" else "legacy") as client:
        assert client.protocol_version == REVISION

        async def call():
            return (await client.call_tool("echo", {"text": TEXT})).content[0].text

        await take_turns(call)


uvloop.run(main())
