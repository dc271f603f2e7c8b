"""servers/resources: JSON, options of the decorator, the context, templates with several segments and a query."""

import json

from fastmcp import Context, FastMCP

mcp = FastMCP(name="Library")


@mcp.resource("library://hours")
def hours() -> str:
    """Tell the opening hours."""
    return "9 to 17"


@mcp.resource(
    uri="library://status",
    name="LibraryStatus",
    description="The state of the library.",
    mime_type="application/json",
    meta={"floor": 2},
)
def status() -> str:
    """Describe the state, see the decorator."""
    return json.dumps({"open": True})


@mcp.resource("library://{shelf}/books")
async def books(shelf: str, ctx: Context) -> str:
    """List the books of a shelf."""
    return json.dumps({"shelf": shelf, "asked": bool(ctx.request_id)})


@mcp.resource("files://{path*}")
def file(path: str) -> str:
    """Read a file."""
    return f"file {path}"


@mcp.resource("find://{word}{?limit}")
def find(word: str, limit: int = 3) -> str:
    """Find books."""
    return f"{word} {limit + 1}"
