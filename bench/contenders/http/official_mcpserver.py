"""`MCPServer` of the official Python SDK over HTTP, with JSON responses (`app`) and with streams.

Results are plain text, as everywhere.
"""

import logging

from mcp.server.mcpserver import Context, MCPServer


async def echo(text: str) -> str:
    return text


async def report(text: str, ctx: Context) -> str:
    await ctx.report_progress(1)
    return text


def make_server():
    server = MCPServer("echo", version="1", log_level="WARNING")
    for tool in (echo, report):
        server.add_tool(tool, structured_output=False)
    return server


logging.disable(logging.INFO)
app = make_server().streamable_http_app(json_response=True)
streams = make_server().streamable_http_app()
