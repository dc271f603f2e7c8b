"""typedmcp: a handler object over stdio. `--asyncio` leaves uvloop out."""

import asyncio
import sys

if "--asyncio" in sys.argv:
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # as if it were not installed

import typedmcp
from typedmcp.dialect import handlers, structs


class Tools(handlers.ServerStub[typedmcp.Context]):
    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        arguments = params.arguments or {}
        if params.name == "wait":
            await asyncio.Event().wait()
        text = arguments["text"] if params.name == "echo" else "x" * arguments["size"]
        return structs.CallToolResult(content=[structs.TextContent(text=text)], result_type="complete")


typedmcp.serve(Tools(), name="echo", version="1")
