"""typedmcp's client over HTTP: `http_client_ours.py URL REVISION CALLS DEPTH`."""

import asyncio
import json
import sys

from measuring import rates

from typedmcp import connect
from typedmcp.serving import loop_factory

URL, REVISION, COUNT, DEPTH = sys.argv[1:]
TEXT = {"text": "x" * 20}


async def main():
    async with connect(URL, revisions=[REVISION]) as client:
        result = await client.call_tool("echo", TEXT)
        assert result.content[0].text == TEXT["text"]
        return await rates(lambda: client.call_tool("echo", TEXT), int(COUNT), int(DEPTH))


with asyncio.Runner(loop_factory=loop_factory()) as runner:
    print(json.dumps(runner.run(main())))
