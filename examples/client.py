"""A server and its client in one file: `client.py serve` serves, `client.py` starts itself so, and calls it."""

import asyncio
import sys

import typedmcp
from typedmcp.dialect import structs

COMMAND = [sys.executable, __file__, "serve"]
SCHEMA = structs.from_builtins({"type": "object"}, structs.ToolInputSchema)


class Greeter:
    def list_tools(self, params: structs.PaginatedRequestParams, ctx: typedmcp.Context) -> structs.ListToolsResult:
        tool = structs.Tool(name="greet", input_schema=SCHEMA)
        return structs.ListToolsResult(tools=[tool], ttl_ms=0, cache_scope="public", result_type="complete")

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        answer = await ctx.elicit("Who are you?", {"type": "object", "properties": {"name": {"type": "string"}}})
        name = answer.content["name"] if answer.content else "whoever you are"
        return structs.CallToolResult(content=[structs.TextContent(text=f"Hello, {name}!")], result_type="complete")


async def main() -> None:
    async with typedmcp.connect(COMMAND, elicit=lambda params: {"name": "Ada"}) as client:
        print([tool.name async for tool in client.tools()], "on", client.revision)
        result = await client.call_tool("greet")
        print(result.content[0])


def blocking() -> None:
    with typedmcp.sync.connect(COMMAND) as client:
        try:
            client.call_tool("greet")
        except typedmcp.MissingCapability as error:
            print(error)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        typedmcp.serve(Greeter())
    else:
        asyncio.run(main())
        blocking()
