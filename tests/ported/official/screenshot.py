"""examples/mcpserver/screenshot.py: a tool that returns an `Image` made of bytes. A buffer in place of the screen."""

import io

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.utilities.types import Image

mcp = MCPServer("Camera")


@mcp.tool()
def take_picture() -> Image:
    """Take a picture.

    Use this whenever the user asks what is to be seen.
    """
    buffer = io.BytesIO()
    buffer.write(b"\xff\xd8\xff\xe0 a picture")
    return Image(data=buffer.getvalue(), format="jpeg")
