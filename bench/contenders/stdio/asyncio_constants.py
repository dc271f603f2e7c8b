"""The floor for the start of a server: asyncio, and constant responses to `initialize` and to a call of `echo`."""

import asyncio
import sys

INITIALIZED = (
    b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
    b'"serverInfo":{"name":"floor","version":"1"}}}\n'
)
CALLED = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"xxxxxxxxxxxxxxxxxxxx"}]}}\n'


async def serve() -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async for line in lines:
        if b'"initialize"' in line:
            sys.stdout.buffer.write(INITIALIZED)
        elif b'"tools/call"' in line:
            sys.stdout.buffer.write(CALLED)
        sys.stdout.flush()


asyncio.run(serve())
