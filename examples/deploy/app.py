"""A server for any number of workers: `uvicorn app:app --workers 4`. Environment variables configure key and store."""

import asyncio
import os
from typing import Any

import typedmcp
import typedmcp_redis
from typedmcp.dialect import structs

TOOL = structs.Tool(name="count", description="Count to five, twice a second", input_schema={"type": "object"})


class Clock:
    def list_tools(self, params: structs.PaginatedRequestParams, ctx: typedmcp.Context) -> structs.ListToolsResult:
        return structs.ListToolsResult(tools=[TOOL])

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        for number in range(5):
            await ctx.progress(number + 1, total=5)
            await asyncio.sleep(0.5)
        text = structs.TextContent(text=f"worker {os.getpid()} counted to five")
        return structs.CallToolResult(content=[text])


async def serve_health(send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


app = typedmcp.asgi(
    Clock(),
    name="clock",
    hosts=os.environ["MCP_HOSTS"].split(),
    state_signer=typedmcp.StateSigner(os.environ["MCP_KEY"].encode()),
    store=typedmcp_redis.RedisStore(os.environ["MCP_REDIS"]),
)
app.routes = {"/health": serve_health}
