"""servers/progress: progress of a loop."""

from fastmcp import Context, FastMCP

mcp = FastMCP("Press")


@mcp.tool
async def press(pages: list[str], ctx: Context) -> dict:
    """Print pages."""
    done = []
    for number, page in enumerate(pages):
        await ctx.report_progress(progress=number, total=len(pages))
        done.append(page.upper())
    await ctx.report_progress(progress=len(pages), total=len(pages))
    return {"pages": len(done), "done": done}
