"""servers/sampling: a message of the client's model, with a system prompt and a temperature."""

from fastmcp import Context, FastMCP

mcp = FastMCP("Poet")


@mcp.tool
async def haiku(topic: str, ctx: Context) -> str:
    """Write a haiku."""
    result = await ctx.sample(
        messages=f"A haiku about {topic}", system_prompt="Only the haiku.", temperature=0.2, max_tokens=100
    )
    return result.text or ""
