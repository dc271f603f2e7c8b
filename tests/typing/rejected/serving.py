"""Unknown options of tools, resources and prompts, and options of wrong types."""

from __future__ import annotations

from typedmcp import Context, Server, ToolError

server = Server("typed", debug="yes")  # E


@server.tool(timeout="3")  # E
def add(a: int) -> int:
    return a


@server.tool(tags={"a"})  # E
def tagged(a: int) -> int:
    return a


@server.resource(title="no URI")  # E
def weather() -> str:
    return ""


async def report_progress(ctx: Context) -> None:
    await ctx.log("loud", "x")  # E
    await ctx.progress("half")  # E
    raise ToolError(3)  # E
