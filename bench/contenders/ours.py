"""typedmcp: a handler object over stdio. `--asyncio` leaves uvloop out."""

import sys

if "--asyncio" in sys.argv:
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # as if it were not installed

import typedmcp
from typedmcp.dialect import handlers, structs


class Echo(handlers.ServerStub[typedmcp.Context]):
    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        text = params.arguments["text"] if params.arguments else ""
        return structs.CallToolResult(content=[structs.TextContent(text=text)], result_type="complete")


typedmcp.serve(Echo(), name="echo", version="1")
