"""The handler of typedmcp's contenders. It responds with JSON, or with a stream if there is progress."""

from typing import Any

import typedmcp
from typedmcp.dialect import exact, handlers, structs

TOOLS = [structs.Tool(name=name, input_schema={"type": "object"}) for name in ("echo", "report")]


class HttpEchoHandler(handlers.ServerStub[typedmcp.Context]):
    types: Any = structs
    """The module with the types of results."""

    async def list_tools(self, params: object, ctx: typedmcp.Context) -> structs.ListToolsResult:
        return structs.ListToolsResult(tools=TOOLS, result_type="complete", ttl_ms=60_000, cache_scope="public")

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        if params.name == "report":
            await ctx.progress(1)
        text = params.arguments["text"] if params.arguments else ""
        return self.types.CallToolResult(content=[self.types.TextContent(text=text)], result_type="complete")


class ExactHttpEchoHandler(HttpEchoHandler):
    types = exact
