"""servers/tools, ToolResult: content, structured content and metadata of one's own."""

from fastmcp import FastMCP
from fastmcp.tools import ToolResult

mcp = FastMCP("Counter")


@mcp.tool
def count(text: str) -> ToolResult:
    """Count letters and words."""
    return ToolResult(
        content=f"Counted: {text}",
        structured_content={"letters": len(text), "words": len(text.split())},
        meta={"took_ms": 0},
    )
