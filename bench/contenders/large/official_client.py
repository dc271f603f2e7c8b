"""The client of the official Python SDK.

Usage: `official_client.py TARGET REVISION`. TARGET is a URL or the script of a server.
"""

import sys

import uvloop
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from turns import take_turns

TARGET, REVISION = sys.argv[1:3]


async def main():
    is_url = TARGET.startswith("http")
    server = TARGET if is_url else stdio_client(StdioServerParameters(command=sys.executable, args=[TARGET]))
    async with Client(server, mode="auto" if REVISION == "2026-07-28" else "legacy") as client:
        assert client.protocol_version == REVISION

        async def call(tool, arguments):
            return (await client.call_tool(tool, arguments)).content[0].text

        await take_turns(call)


uvloop.run(main())
