"""servers/elicitation: a form of a dataclass, of a string, and a choice; what the user did."""

from dataclasses import dataclass

from fastmcp import Context, FastMCP

mcp = FastMCP("Reception")


@dataclass
class Guest:
    name: str
    nights: int


@mcp.tool
async def check_in(ctx: Context) -> str:
    """Check a guest in."""
    result = await ctx.elicit(message="Who are you?", response_type=Guest)
    if result.action == "accept":
        return f"{result.data.name} stays {result.data.nights} nights"
    if result.action == "decline":
        return "no guest"
    return "cancelled"


@mcp.tool
async def wake(ctx: Context) -> str:
    """Ask for the time of a call."""
    result = await ctx.elicit("When?", response_type=str)
    return f"at {result.data}" if result.action == "accept" else "never"


@mcp.tool
async def choose(ctx: Context) -> str:
    """Ask for a room."""
    result = await ctx.elicit("Which room?", response_type=["small", "large"])
    return f"room: {result.data}" if result.action == "accept" else "none"
