"""The low-level server of the official Python SDK, over stdio as a script, and over HTTP as `app`."""

import logging

import uvloop
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def call_tool(ctx, params):
    arguments = params.arguments
    text = "x" * arguments["size"] if params.name == "large" else str(len(arguments["text"]))
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=schema) for name, schema in TOOLS.items()])


async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


TOOLS = {name: {"type": "object"} for name in ("large", "length")}
logging.disable(logging.INFO)
# Without `get_tool_input_schema`, it lists its tools for each call over HTTP.
server = Server("large", version="1", on_call_tool=call_tool, on_list_tools=list_tools, get_tool_input_schema=TOOLS.get)
if __name__ == "__main__":
    uvloop.run(main())
else:
    app = server.streamable_http_app(json_response=True, max_request_body_size=64 << 20)
