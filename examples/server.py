"""A handler over standard input and output."""

from typedmcp import Context, serve
from typedmcp.dialect import handlers, structs

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
GREET = structs.Tool(name="greet", input_schema=SCHEMA)


class Greeter(handlers.ServerStub[Context]):
    async def list_tools(self, params: structs.PaginatedRequestParams, ctx: Context) -> structs.ListToolsResult:
        return structs.ListToolsResult(tools=[GREET])

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
        arguments = params.arguments or {}
        await ctx.log("info", f"greeting a client that speaks {ctx.revision}")
        greeting = structs.TextContent(text=f"Hello, {arguments['name']}!")
        return structs.CallToolResult(content=[greeting])


if __name__ == "__main__":
    serve(Greeter(), name="greeter", version="1.0")
