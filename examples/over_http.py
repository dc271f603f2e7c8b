"""A handler over HTTP. Run `python over_http.py serve`, then `python over_http.py` to call it."""

import asyncio
import os
import sys

import typedmcp
from typedmcp.dialect import structs

PORT = int(os.environ.get("PORT", "8000"))
TOOL = structs.Tool(name="greet", input_schema={"type": "object"})


class Greeter:
    def list_tools(self, params: structs.PaginatedRequestParams, ctx: typedmcp.Context) -> structs.ListToolsResult:
        return structs.ListToolsResult(tools=[TOOL])

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        await ctx.progress(1, total=2)  # this makes the response an event stream
        return structs.CallToolResult(content=[structs.TextContent(text="Hello!")])


async def main() -> None:
    async with typedmcp.connect(f"http://127.0.0.1:{PORT}/mcp") as client:
        result = await client.call_tool("greet", on_progress=lambda step: print("progress", step.progress))
        print(typedmcp.text_of(result))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        typedmcp.serve(Greeter(), "http", port=PORT)
    else:
        asyncio.run(main())
