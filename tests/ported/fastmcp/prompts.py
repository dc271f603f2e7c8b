"""servers/prompts: texts, messages with roles, `Field`s, arguments with types."""

from fastmcp import FastMCP
from fastmcp.prompts import Message
from pydantic import Field

mcp = FastMCP(name="Teacher")


@mcp.prompt
def explain(topic: str) -> str:
    """Ask for an explanation."""
    return f"Explain {topic}."


@mcp.prompt
def rehearse(part: str, scene: str = "one") -> list[Message]:
    """Rehearse a scene."""
    return [Message(f"You are {part}, in scene {scene}."), Message("I am ready.", role="assistant")]


@mcp.prompt(name="check_sums", description="Check sums.", meta={"version": "1"})
def sums(
    numbers: list[int] = Field(description="The numbers"), limit: float = Field(default=10.0, description="The limit")
) -> str:
    """Check sums, see the decorator."""
    return f"{sum(numbers)} is {'above' if sum(numbers) > limit else 'below'} {limit:g}"
