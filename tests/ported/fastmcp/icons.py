"""servers/icons: icons and a website, with the names on the wire."""

from fastmcp import FastMCP
from mcp.types import Icon

mcp = FastMCP(
    name="Signs",
    website_url="https://example.com/signs",
    icons=[Icon(src="https://example.com/48.png", mimeType="image/png", sizes=["48x48"])],
)


@mcp.tool(icons=[Icon(src="https://example.com/tool.png")])
def paint(colour: str) -> str:
    """Paint a sign."""
    return f"a {colour} sign"


@mcp.resource("signs://{number}", icons=[Icon(src="https://example.com/sign.png")])
def sign(number: str) -> dict:
    """Read a sign."""
    return {"number": number}


@mcp.prompt(icons=[Icon(src="https://example.com/prompt.png")])
def motto(place: str):
    """Ask for a motto."""
    return f"A motto for {place}"
