"""One worker of several, under uvicorn: prints its address once it listens. What they share is in the environment."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

import uvicorn

import typedmcp
import typedmcp_redis
from typedmcp.dialect import structs


class Steps:
    """A slow tool that reports progress."""

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        arguments: Any = params.arguments
        for step in range(1, arguments["steps"] + 1):
            await ctx.progress(step, message=str(arguments["number"]))
            await asyncio.sleep(arguments["pause"])
        return structs.CallToolResult(content=[structs.TextContent(text="done")], result_type="complete")


def main() -> None:
    environment = os.environ
    store = typedmcp_redis.RedisStore(
        environment["WORKER_REDIS"],
        prefix=environment["WORKER_PREFIX"],
        lease=float(environment["WORKER_LEASE"]),
    )
    app = typedmcp.asgi(
        Steps(),
        store=store,
        state_signer=typedmcp.StateSigner(b"a key of all workers"),
        limits=typedmcp.Limits(http_stream_buffer_bytes=1 << 20),
    )
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)).run(sockets=[listening])


if __name__ == "__main__":
    main()
