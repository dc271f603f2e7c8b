"""The low-level server of the official Python SDK over HTTP, with JSON responses (`app`) and with streams."""

import logging

from mcp import types
from mcp.server.lowlevel import Server


async def call_tool(ctx, params):
    if params.name == "report":
        await ctx.session.report_progress(1)
    return types.CallToolResult(content=[types.TextContent(type="text", text=params.arguments["text"])])


async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=schema) for name, schema in TOOLS.items()])


def make_server():
    # Without `get_tool_input_schema`, the server lists its tools for each call, to check headers against arguments.
    return Server(
        "echo", version="1", on_call_tool=call_tool, on_list_tools=list_tools, get_tool_input_schema=TOOLS.get
    )


TOOLS = {name: {"type": "object"} for name in ("echo", "report")}
logging.disable(logging.INFO)
app = make_server().streamable_http_app(json_response=True)
streams = make_server().streamable_http_app()
