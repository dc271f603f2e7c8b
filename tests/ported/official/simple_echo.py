"""examples/mcpserver/simple_echo.py: one tool."""

from mcp.server.mcpserver import MCPServer

mcp = MCPServer("Echo")


@mcp.tool()
def say(text: str) -> str:
    """Say a text."""
    return text
