"""A handler of typedmcp over stdio. `--asyncio` disables uvloop; `--telemetry=sampled` observes it.

With `--exact`, its results are of the exact types.
"""

import asyncio
import sys
from pathlib import Path

if "--asyncio" in sys.argv:
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # as if it were not installed

import typedmcp
from typedmcp.dialect import exact, handlers, structs

sys.path.append(str(Path(__file__).parents[1]))  # it runs as a script
from observed import telemetry_options

types = exact if "--exact" in sys.argv else structs
TOOLS = [structs.Tool(name=name, input_schema={"type": "object"}) for name in ("echo", "large", "wait")]


class StdioEchoHandler(handlers.ServerStub[typedmcp.Context]):
    async def list_tools(self, params: object, ctx: typedmcp.Context) -> structs.ListToolsResult:
        return structs.ListToolsResult(tools=TOOLS, result_type="complete", ttl_ms=0, cache_scope="private")

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        arguments = params.arguments or {}
        if params.name == "wait":
            await asyncio.Event().wait()
        text = arguments["text"] if params.name == "echo" else "x" * arguments["size"]
        return types.CallToolResult(content=[types.TextContent(text=text)], result_type="complete")


typedmcp.serve(StdioEchoHandler(), name="echo", version="1", **telemetry_options())
