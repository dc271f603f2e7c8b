"""examples/mcpserver/desktop.py: a folder as a resource that is a list, and a tool named like a builtin."""

from pathlib import Path

from mcp.server.mcpserver import MCPServer

mcp = MCPServer("Folder")


@mcp.resource("dir://here")
def here() -> list[str]:
    """List the programs in this folder."""
    return sorted(file.name for file in Path(__file__).parent.glob("d*.py"))


@mcp.tool()
def sum(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
