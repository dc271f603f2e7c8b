"""servers/providers/mounting: servers below a namespace."""

from fastmcp import FastMCP

harbour = FastMCP("Harbour")
mcp = FastMCP("Town")


@harbour.tool
def ships() -> list[str]:
    """List the ships."""
    return ["Elise"]


@harbour.resource(uri="data://tide")
async def tide():
    """Read the tide."""
    return {"metres": 1.5}


@mcp.tool
def state() -> dict[str, str]:
    """Describe the town."""
    return {"state": "quiet"}


mcp.mount(harbour, namespace="harbour")
