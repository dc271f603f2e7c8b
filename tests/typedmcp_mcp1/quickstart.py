"""The first server of most texts about mcp 1.x."""

from __future__ import annotations

from typedmcp_mcp1.server.fastmcp import FastMCP

mcp = FastMCP("Demo")


@mcp.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if __name__ == "__main__":
    mcp.run()
