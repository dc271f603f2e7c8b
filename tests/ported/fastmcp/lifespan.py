"""servers/lifespan: shared state that a tool reads."""

from fastmcp import Context, FastMCP
from fastmcp.server.lifespan import lifespan


@lifespan
async def opened(server):
    yield {"keys": ["front", "back"]}


mcp = FastMCP("House", lifespan=opened)


@mcp.tool
def keys(ctx: Context) -> list[str]:
    """List the keys."""
    return ctx.lifespan_context["keys"]
