"""The low-level server of the official Python SDK over stdio."""

import asyncio
import logging

import uvloop
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def call_tool(ctx, params):
    if params.name == "wait":
        await asyncio.Event().wait()
    text = params.arguments["text"] if params.name == "echo" else "x" * params.arguments["size"]
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=SCHEMA) for name in TOOLS])


async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


SCHEMA = {"type": "object"}
TOOLS = ("echo", "large", "wait")
logging.disable(logging.INFO)
server = Server("echo", version="1", on_call_tool=call_tool, on_list_tools=list_tools)
uvloop.run(main())
