"""fastmcp over HTTP, with JSON responses (`app`) and with streams. Results are plain text, as everywhere."""

import logging

from fastmcp import Context, FastMCP

server = FastMCP("echo", version="1")


@server.tool(output_schema=None)
async def echo(text: str) -> str:
    return text


@server.tool(output_schema=None)
async def report(text: str, ctx: Context) -> str:
    await ctx.report_progress(1)
    return text


logging.disable(logging.INFO)
app = server.http_app(json_response=True)
streams = server.http_app()
