"""examples/mcpserver/complex_inputs.py: nested Pydantic models, and `Field` in `Annotated`."""

from typing import Annotated

from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel, Field

mcp = MCPServer("Orchard")


class Orchard(BaseModel):
    class Tree(BaseModel):
        kind: Annotated[str, Field(max_length=8)]

    trees: list[Tree]


@mcp.tool()
def kinds(orchard: Orchard, more: Annotated[list[str], Field(max_length=2)]) -> list[str]:
    """List the kinds of all trees."""
    return [tree.kind for tree in orchard.trees] + more
