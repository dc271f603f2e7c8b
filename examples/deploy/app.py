"""A server for any number of workers: `uvicorn app:app --workers 4`, with what they share in the environment."""

import asyncio
import os

import typedmcp
from typedmcp.dialect import structs

SCHEMA = structs.from_builtins({"type": "object"}, structs.ToolInputSchema)


class Clock:
    def list_tools(self, params: structs.PaginatedRequestParams, ctx: typedmcp.Context) -> structs.ListToolsResult:
        tool = structs.Tool(name="count", description="Counts to five, half a second each", input_schema=SCHEMA)
        return structs.ListToolsResult(tools=[tool], ttl_ms=0, cache_scope="public", result_type="complete")

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        for number in range(5):
            await ctx.progress(number + 1, total=5)
            await asyncio.sleep(0.5)
        text = structs.TextContent(text=f"worker {os.getpid()} has counted to five")
        return structs.CallToolResult(content=[text], result_type="complete")


app = typedmcp.asgi(
    Clock(),
    name="clock",
    hosts=os.environ["MCP_HOSTS"].split(),
    sealer=typedmcp.Sealer(os.environ["MCP_KEY"].encode()),
    store=typedmcp.RedisStore(os.environ["MCP_REDIS"]),
)
