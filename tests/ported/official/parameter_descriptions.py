"""examples/mcpserver/parameter_descriptions.py: descriptions and defaults in `Field`s in place of defaults."""

from mcp.server.mcpserver import MCPServer
from pydantic import Field

mcp = MCPServer("Labels")


@mcp.tool()
def label(
    name: str = Field(description="What is in the jar"),
    prefix: str = Field(description="Something before the name", default=""),
    copies: int = Field(description="How many labels", default=1),
) -> str:
    """Print labels for a jar."""
    return "\n".join([f"{prefix + ' ' if prefix else ''}{name}"] * copies)
