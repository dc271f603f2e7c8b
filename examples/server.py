"""A server over standard input and output."""

from typedmcp import Context, serve
from typedmcp.dialect import handlers, structs


class Greeter(handlers.ServerStub[Context]):
    async def list_tools(self, params: structs.PaginatedRequestParams, ctx: Context) -> structs.ListToolsResult:
        greet = structs.Tool(name="greet", description="Say hello.", input_schema=structs.ToolInputSchema())
        return structs.ListToolsResult(tools=[greet], ttl_ms=0, cache_scope="public", result_type="complete")

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
        await ctx.log("info", f"greeting a client that speaks {ctx.revision}")
        return structs.CallToolResult(content=[structs.TextContent(text="Hello!")], result_type="complete")


if __name__ == "__main__":
    serve(Greeter(), name="greeter", version="1.0")
