"""typedmcp: a handler object over HTTP, with its defaults."""

import typedmcp
from typedmcp.dialect import handlers, structs


class Echo(handlers.ServerStub[typedmcp.Context]):
    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        text = params.arguments["text"] if params.arguments else ""
        return structs.CallToolResult(content=[structs.TextContent(text=text)], result_type="complete")


app = typedmcp.asgi(Echo(), name="echo", version="1")
