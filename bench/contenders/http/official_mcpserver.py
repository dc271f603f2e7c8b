"""The official Python SDK, its high-level `MCPServer` over HTTP: answering in JSON, and in streams.

Results are plain text, as the others give them.
"""

import logging

from mcp.server.mcpserver import Context, MCPServer


async def echo(text: str) -> str:
    return text


async def report(text: str, ctx: Context) -> str:
    await ctx.report_progress(1)
    return text


def server():
    made = MCPServer("echo", version="1", log_level="WARNING")
    for tool in (echo, report):
        made.add_tool(tool, structured_output=False)
    return made


logging.disable(logging.INFO)
app = server().streamable_http_app(json_response=True)
streams = server().streamable_http_app()
