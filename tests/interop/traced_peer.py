"""A client or server of the official Python SDK in a trace that is given, without an SDK of OpenTelemetry.

    python traced_peer.py client modern|legacy TRACEPARENT URL|COMMAND [ARGUMENT …]
    python traced_peer.py server

The client calls the tool `work` of a server in the trace. The server has a tool that returns the trace it runs in.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from typing import Any

mcp: Any = importlib.import_module("mcp")  # by name: type checkers run where it is not installed
otel: Any = importlib.import_module("opentelemetry.trace")
propagate: Any = importlib.import_module("opentelemetry.propagate")
context: Any = importlib.import_module("opentelemetry.context")


async def call(mode: str, traceparent: str, target: list[str]) -> None:
    context.attach(propagate.extract({"traceparent": traceparent}))
    over_http = target[0].startswith("http")
    server: Any = target[0] if over_http else mcp.StdioServerParameters(command=target[0], args=target[1:])
    if not over_http:
        server = importlib.import_module("mcp.client.stdio").stdio_client(server)
    async with mcp.Client(server, mode="auto" if mode == "modern" else "legacy") as client:
        result = await client.call_tool("work", {})
        print(result.content[0].text)


def serve() -> None:
    server = importlib.import_module("mcp.server.mcpserver").MCPServer("traced")

    async def trace() -> str:
        return f"{otel.get_current_span().get_span_context().trace_id:032x}"

    server.tool()(trace)
    server.run()


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve()
    else:
        asyncio.run(call(sys.argv[2], sys.argv[3], sys.argv[4:]))
