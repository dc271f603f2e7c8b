"""Several workers that share what has to be shared, in Redis: a client of one hears what a client of another does.

Run `MCP_REDIS=redis://127.0.0.1:6379 python several_workers.py`: it starts two workers, and connects to both. In
`deploy/` is the same for uvicorn with nginx before it. Needs Redis, and the extras `http` and `redis`.
"""

import asyncio
import os
import re
import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import typedmcp
from typedmcp import Server, text_of

server = Server("board", version="1.0")
NEWS = "board://news"


@server.resource(NEWS)
async def news() -> str:
    """What there is to know. A real server has it in a database that all workers use."""
    return "nothing"


@server.tool
async def announce() -> str:
    """Tell everybody that there are news, whichever worker they are connected to."""
    server.resource_updated(NEWS)
    return f"announced by worker {os.getpid()}"


def work() -> None:
    """One worker of many. They share a store, and the key that seals what clients bring back to any of them."""
    store = typedmcp.RedisStore(os.environ["MCP_REDIS"])
    sealer = typedmcp.Sealer(os.environ["MCP_KEY"].encode())
    server.run("http", port=0, store=store, sealer=sealer)


@asynccontextmanager
async def worker(key: str) -> AsyncGenerator[str]:
    """Start one. It says its URL once it serves."""
    environment = {**os.environ, "MCP_KEY": key}
    command = [sys.executable, __file__, "work"]
    process = await asyncio.create_subprocess_exec(*command, env=environment, stderr=asyncio.subprocess.PIPE)
    try:
        yield await url_of(process)
    finally:
        process.terminate()
        await process.wait()


async def url_of(process: asyncio.subprocess.Process) -> str:
    said = ""
    assert process.stderr is not None
    async for line in process.stderr:
        said += line.decode()
        if found := re.search(r"http://[0-9.:]+", said):
            return f"{found[0]}/mcp"
    raise RuntimeError(f"the worker did not start: {said}")


async def main() -> None:
    key = secrets.token_hex(32)
    async with (
        worker(key) as one,
        worker(key) as other,
        typedmcp.connect(one) as listener,
        typedmcp.connect(other, revisions=["2025-11-25"]) as speaker,
        listener.listen(uris=[NEWS]) as changes,
    ):
        print(f"speaking {speaker.revision} to {other}:", text_of(await speaker.call_tool("announce")))
        changed = await anext(changes)
        print(f"listening on {listener.revision} to {one}:", changed.uri, "has changed")


if __name__ == "__main__":
    if sys.argv[1:] == ["work"]:
        work()
    elif "MCP_REDIS" in os.environ:
        asyncio.run(main())
    else:
        print("Say where Redis is: MCP_REDIS=redis://127.0.0.1:6379 python several_workers.py")
