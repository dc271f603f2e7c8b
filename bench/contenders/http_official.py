"""The official Python SDK, low-level server over HTTP, answering in JSON: its faster way on the older revisions."""

import logging

from mcp import types
from mcp.server.lowlevel import Server


async def call_tool(ctx, params):
    return types.CallToolResult(content=[types.TextContent(type="text", text=params.arguments["text"])])


async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema={"type": "object"})])


logging.disable(logging.INFO)
app = Server("echo", version="1", on_call_tool=call_tool, on_list_tools=list_tools).streamable_http_app(
    json_response=True
)
