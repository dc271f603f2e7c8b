"""A server of the official Python SDK 1.x, whose tasks are experimental, over standard input and output or over HTTP.

    python official_tasks.py
    python official_tasks.py http

Over HTTP it prints its address as soon as connections are accepted.
"""

from __future__ import annotations

import asyncio
import importlib
import socket
import sys
import warnings
from typing import Any

lowlevel: Any = importlib.import_module("mcp.server.lowlevel")  # by name: type checkers run where it is not installed
types: Any = importlib.import_module("mcp.types")

warnings.simplefilter("ignore")  # its tasks are deprecated, as in the specification

server = lowlevel.Server("official", version="1")
server.experimental.enable_tasks()

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SUPPORT = {"greet": "required", "fail": "required", "wait": "optional", "quick": "forbidden"}


async def list_tools() -> Any:
    """List the tools, with their support for tasks."""
    return [
        types.Tool(name=name, inputSchema={"type": "object"}, execution=types.ToolExecution(taskSupport=support))
        for name, support in SUPPORT.items()
    ]


async def call_tool(name: str, _arguments: dict[str, Any]) -> Any:
    """Run a tool, as a task if the client wants that."""
    context = server.request_context.experimental
    if not context.is_task:
        return text(f"{name} within the request")

    async def work(task: Any) -> Any:
        if name == "fail":
            raise RuntimeError("out of paper")
        if name == "wait":
            await asyncio.Event().wait()
        await task.update_status("asking")
        answer = await task.elicit("Your name?", FORM)
        return text(f"Hello, {answer.content['name']}!")

    return await context.run_task(work)


def text(value: str) -> Any:
    """Return a result with a text."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=value)])


server.list_tools()(list_tools)
server.call_tool()(call_tool)


async def serve_stdio() -> None:
    """Serve the client that has started the process."""
    stdio: Any = importlib.import_module("mcp.server.stdio")
    async with stdio.stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def serve_http() -> None:
    """Serve over HTTP."""
    manager: Any = importlib.import_module("mcp.server.streamable_http_manager").StreamableHTTPSessionManager(server)
    starlette: Any = importlib.import_module("starlette.applications")
    routing: Any = importlib.import_module("starlette.routing")
    uvicorn: Any = importlib.import_module("uvicorn")
    app = starlette.Starlette(routes=[routing.Mount("/mcp", app=manager.handle_request)])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp/", flush=True)
        async with manager.run():
            await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve([listening])


if __name__ == "__main__":
    asyncio.run(serve_http() if sys.argv[1:] == ["http"] else serve_stdio())
