"""examples/mcpserver/direct_call_tool_result_return.py: a whole result with `_meta`, and a model for its schema."""

from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel

mcp = MCPServer("Direct")


class Shouted(BaseModel):
    text: str


@mcp.tool()
def shout(text: str) -> Annotated[CallToolResult, Shouted]:
    """Shout a text."""
    loud = text.upper()
    return CallToolResult(
        content=[TextContent(type="text", text=loud)], structured_content={"text": loud}, _meta={"letters": len(text)}
    )
