"""Several workers that share a store in Redis: a client of one worker is notified of a change in another.

Run `MCP_REDIS=redis://127.0.0.1:6379 python several_workers.py`. It starts two workers and connects to both. `deploy/`
has the same for uvicorn behind nginx. Needs Redis, and the extras `http` and `redis` (`typedmcp-redis`).
"""

import asyncio
import os
import re
import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import typedmcp
import typedmcp_redis
from typedmcp import Server, text_of

server = Server("board", version="1.0")
NEWS = "board://news"


@server.resource(NEWS)
async def news() -> str:
    """Return the news. A real server would read it from a database that all workers share."""
    return "no news"


@server.tool
async def announce() -> str:
    """Notify the clients of all workers that the news has changed."""
    server.resource_updated(NEWS)
    return f"announced by worker {os.getpid()}"


def serve() -> None:
    """Serve as one of several workers. All share a store, and a key that signs the state clients hold."""
    store = typedmcp_redis.RedisStore(os.environ["MCP_REDIS"])
    state_signer = typedmcp.StateSigner(os.environ["MCP_KEY"].encode())
    server.run("http", port=0, store=store, state_signer=state_signer)


@asynccontextmanager
async def start_worker(key: str) -> AsyncGenerator[str]:
    """Start a worker, and yield its URL once it serves."""
    environment = {**os.environ, "MCP_KEY": key}
    command = [sys.executable, __file__, "serve"]
    process = await asyncio.create_subprocess_exec(*command, env=environment, stderr=asyncio.subprocess.PIPE)
    try:
        yield await url_of(process)
    finally:
        process.terminate()
        await process.wait()


async def url_of(process: asyncio.subprocess.Process) -> str:
    log = ""
    assert process.stderr is not None
    async for line in process.stderr:
        log += line.decode()
        if found := re.search(r"http://[0-9.:]+", log):
            return f"{found[0]}/mcp"
    raise RuntimeError(f"the worker did not start: {log}")


async def main() -> None:
    key = secrets.token_hex(32)
    async with (
        start_worker(key) as first,
        start_worker(key) as second,
        typedmcp.connect(first) as listener,
        typedmcp.connect(second, revisions=["2025-11-25"]) as caller,
        listener.listen(uris=[NEWS]) as changes,
    ):
        print(f"calling {second} on {caller.revision}:", text_of(await caller.call_tool("announce")))
        change = await anext(changes)
        print(f"listening to {first} on {listener.revision}:", change.uri, "has changed")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    elif "MCP_REDIS" in os.environ:
        asyncio.run(main())
    else:
        print("Set the URL of Redis: MCP_REDIS=redis://127.0.0.1:6379 python several_workers.py")
