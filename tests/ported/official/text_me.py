"""examples/mcpserver/text_me.py: a name and a description in the decorator, validated settings. No SMS is sent."""

from typing import Annotated

from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel, BeforeValidator


class Settings(BaseModel):
    number: Annotated[str, BeforeValidator(lambda value: value if value.startswith("+") else f"+{value}")]


mcp = MCPServer("Messages")
settings = Settings(number="4700000000")


@mcp.tool(name="textme", description="Send me a text message")
def send(content: str) -> str:
    """Send a message to the number in the settings."""
    return f"{settings.number} got: {content}"
