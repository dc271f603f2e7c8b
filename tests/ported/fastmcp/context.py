"""servers/context and servers/logging: log messages, the request, reading a resource of the same server."""

from fastmcp import Context, FastMCP

mcp = FastMCP(name="Kitchen")


@mcp.resource("kitchen://recipe")
def recipe() -> str:
    return "flour, water, salt"


@mcp.tool
async def bake(loaves: int, ctx: Context) -> dict:
    """Bake bread."""
    await ctx.debug("looking at the recipe")
    await ctx.info(f"baking {loaves} loaves")
    if loaves > 3:
        await ctx.warning("that is a lot")
    result = await ctx.read_resource("kitchen://recipe")
    return {"loaves": loaves, "recipe": result.contents[0].content, "has_id": bool(ctx.request_id)}
