"""The official Python SDK's client over HTTP: `http_client_official.py URL REVISION CALLS DEPTH`."""

import asyncio
import json
import sys

import uvloop
from mcp import Client
from measuring import rates

URL, REVISION, COUNT, DEPTH = sys.argv[1:]
TEXT = {"text": "x" * 20}


async def main():
    async with Client(URL, mode="auto" if REVISION == "2026-07-28" else "legacy") as client:
        assert client.protocol_version == REVISION
        result = await client.call_tool("echo", TEXT)
        assert result.content[0].text == TEXT["text"]
        return await rates(lambda: client.call_tool("echo", TEXT), int(COUNT), int(DEPTH))


with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    print(json.dumps(runner.run(main())))
