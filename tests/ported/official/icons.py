"""examples/mcpserver/icons_demo.py: icons of a server, a tool, a resource and a prompt, as `data:` URIs."""

import base64

from mcp.server.mcpserver import Icon, MCPServer

PIXEL = base64.standard_b64encode(b"\x89PNG\r\n\x1a\n").decode()
icon = Icon(src=f"data:image/png;base64,{PIXEL}", mime_type="image/png", sizes=["64x64"])

mcp = MCPServer("Icons", website_url="https://example.com/icons", icons=[icon])


@mcp.tool(icons=[icon, Icon(src=icon.src, mime_type="image/png", sizes=["16x16"])])
def draw(shape: str) -> str:
    """Draw a shape."""
    return f"a {shape}"


@mcp.resource("demo://about", icons=[icon])
def about() -> str:
    """Describe the icons."""
    return "one pixel"


@mcp.prompt("painting", icons=[icon])
def painting(motif: str) -> str:
    """Ask for a painting."""
    return f"Paint {motif}."


if __name__ == "__main__":
    mcp.run()
