"""A server and its client over HTTP: `over_http.py serve` serves until it is told to end, `over_http.py` calls it."""

import asyncio
import os
import sys

import typedmcp
from typedmcp.dialect import structs

PORT = int(os.environ.get("PORT", "8000"))
SCHEMA = structs.from_builtins({"type": "object"}, structs.ToolInputSchema)


class Greeter:
    def list_tools(self, params: structs.PaginatedRequestParams, ctx: typedmcp.Context) -> structs.ListToolsResult:
        tool = structs.Tool(name="greet", input_schema=SCHEMA)
        return structs.ListToolsResult(tools=[tool], ttl_ms=0, cache_scope="public", result_type="complete")

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        await ctx.progress(1, total=2)  # from here on, the response is a stream of events
        return structs.CallToolResult(content=[structs.TextContent(text="Hello!")], result_type="complete")


async def main() -> None:
    async with typedmcp.connect(f"http://127.0.0.1:{PORT}/mcp") as client:
        result = await client.call_tool("greet", on_progress=lambda step: print("progress", step.progress))
        print(result.content[0])


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        typedmcp.serve(Greeter(), "http", port=PORT)
    else:
        asyncio.run(main())
