"""examples/mcpserver/logging_and_progress.py: `ctx.report_progress` and `ctx.info` in a tool."""

import asyncio

from mcp.server.mcpserver import Context, MCPServer

mcp = MCPServer("Kettle")


@mcp.tool()
async def boil(litres: int, ctx: Context) -> str:
    """Boil water."""
    await ctx.report_progress(progress=0, total=100)
    await ctx.info(f"Heating {litres} litres")
    await asyncio.sleep(0.01)
    await ctx.info("Halfway")
    await ctx.report_progress(progress=50, total=100)
    await ctx.report_progress(progress=100, total=100)
    return "tea?"
