"""Options of tools, resources and prompts that there are not, or are something else."""

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


async def told(ctx: Context) -> None:
    await ctx.log("loud", "x")  # E
    await ctx.progress("half")  # E
    raise ToolError(3)  # E
