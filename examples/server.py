"""A server over standard input and output."""

import typedmcp
from typedmcp.dialect import handlers, structs


class Greeter(handlers.ServerStub[typedmcp.Context]):
    async def list_tools(self, params: structs.PaginatedRequestParams, ctx: typedmcp.Context) -> structs.ListToolsResult:
        greet = structs.Tool(name="greet", description="Say hello.", input_schema=structs.ToolInputSchema())
        return structs.ListToolsResult(tools=[greet], ttl_ms=0, cache_scope="public", result_type="complete")

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        await ctx.log("info", f"greeting a client that speaks {ctx.revision}")
        return structs.CallToolResult(content=[structs.TextContent(text="Hello!")], result_type="complete")


if __name__ == "__main__":
    typedmcp.serve(Greeter(), name="greeter", version="1.0")
