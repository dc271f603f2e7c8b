"""A server over HTTP that shows what it keeps: `over_http.py [BODY_LIMIT]` prints its address once it listens.

`/held` returns the number of objects and the memory of the process, after a garbage collection. `/changed` notifies all
listeners that the tools have changed. With `--own-class` in place of a limit, uvicorn runs the application alone, with
the protocol class of `run("http")`; the tool `held` returns the same as `/held`.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import logging
import os
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn

import typedmcp
from typedmcp.dialect import handlers, structs
from typedmcp.errors import MissingCapabilityError
from typedmcp.stores import StoreLimits
from typedmcp_http import HttpProtocol

logging.getLogger("typedmcp").setLevel(logging.ERROR)  # tests send thousands of wrong requests, and look for failures
trim = getattr(ctypes.CDLL(None), "malloc_trim", None)

PROPERTIES = {"region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer"}}
SCHEMA = {"type": "object", "properties": PROPERTIES}


TOOLS = ("echo", "other", "many", "large", "asks", "fails", "count", "held")


class Handler(handlers.ServerStub[typedmcp.Context]):
    """Tools that return their own name, or as many texts as the call wants."""

    def __init__(self) -> None:
        self.progress_count = self.call_count = 0

    async def list_tools(
        self, _params: structs.PaginatedRequestParams, _ctx: typedmcp.Context
    ) -> structs.ListToolsResult:
        tools = [structs.Tool(name=name, input_schema=SCHEMA) for name in TOOLS]
        return structs.ListToolsResult(tools=tools, result_type="complete", ttl_ms=60_000, cache_scope="public")

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        arguments = params.arguments or {}
        if params.name == "asks":
            raise MissingCapabilityError({"sampling": {}})
        if params.name == "fails":
            raise RuntimeError("a secret that is nobody's business")
        if params.name == "many":
            for number in range(1, int(arguments["n"]) + 1):
                self.progress_count += 1
                await ctx.progress(number, message="x" * 1000)
        text = f"I am {params.name}"
        if params.name == "large":
            await asyncio.sleep(0)
            text = "x" * int(arguments["n"])
        if params.name == "count":
            self.call_count += 1
            await ctx.progress(self.call_count)
            text = f"counted {arguments['n']}"
        if params.name == "held":
            text = json.dumps(await self.held(int(arguments["n"])))
        return structs.CallToolResult(content=[structs.TextContent(text=text)], result_type="complete")

    async def held(self, readings: int = 1) -> dict[str, int]:
        """Return what the process holds, and what the handler has counted. Memory is the least of some readings."""
        for _ in range(3):
            gc.collect()
            await asyncio.sleep(0)
        memory = [await held_memory() for _ in range(readings)]
        counted = {"progress": self.progress_count, "calls": self.call_count}
        process = {"memory": min(memory), "most": status("VmHWM"), "files": len(os.listdir("/proc/self/fd"))}
        return {"objects": len(gc.get_objects()), "tasks": len(asyncio.all_tasks()), **counted, **process}

    async def list_resources(
        self, _params: structs.PaginatedRequestParams, _ctx: typedmcp.Context
    ) -> structs.ListResourcesResult:
        return structs.ListResourcesResult(resources=[], result_type="complete", ttl_ms=60_000, cache_scope="public")


async def held_memory() -> int:
    """Return the memory that the process has, without that which it has freed, and let others run."""
    if trim is not None:
        trim(0)
    memory = status("VmRSS")
    await asyncio.sleep(0.02)
    return memory


def status(name: str) -> int:
    """Return a number of bytes from the status that the system has of this process."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) << 10


def print_diagnostic(report: typedmcp.Diagnostic) -> None:
    """Print diagnostics about the server. Diagnostics about clients are expected."""
    if report.kind is typedmcp.DiagnosticKind.CONNECTION_ERROR:
        print(report, file=sys.stderr, flush=True)


class App:
    """The application under test, with two paths that show its state."""

    def __init__(self, body_limit: int) -> None:
        self.handler = Handler()
        # One address has all clients, and some of their calls send many messages.
        limits = typedmcp.Limits(
            http_body_bytes=body_limit, client_share_percent=100, request_messages_per_second=1_000_000
        )
        self.config = typedmcp.ServerConfig(
            self.handler, name="over-http", version="1", on_diagnostic=print_diagnostic, limits=limits
        )
        store = typedmcp.MemoryStore(limits=StoreLimits(client_share_percent=100, kept_bytes=16 << 20))
        self.app: Any = typedmcp.asgi(self.config, sse_path="/sse", store=store)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path")
        if path == "/held":
            await self.answer(send, await self.handler.held())
        elif path == "/changed":
            self.config.changes.tools_changed()
            await self.answer(send, {})
        else:
            await self.app(scope, receive, send)

    async def answer(self, send: Any, value: dict[str, int]) -> None:
        body = json.dumps(value).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def main() -> None:
    argument = sys.argv[1] if len(sys.argv) > 1 else str(4 << 20)
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        options: dict[str, Any] = {"log_level": "warning", "access_log": False, "ws": "none"}
        if argument == "--own-class":
            app, options["http"] = App(4 << 20).app, HttpProtocol
        else:
            app, options["http"] = App(int(argument)), "httptools"
        config = uvicorn.Config(app, timeout_graceful_shutdown=2, **options)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
