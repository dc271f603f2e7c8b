"""`FastMCP`: functions as tools, resources and prompts, under the names of `mcp.server.fastmcp`."""

from __future__ import annotations

from typedmcp_mcp1.server.fastmcp.context import Context
from typedmcp_mcp1.server.fastmcp.server import FastMCP
from typedmcp_mcp1.server.fastmcp.utilities.types import Audio, Image
from typedmcp_mcp1.types import Icon

__all__ = ["Audio", "Context", "FastMCP", "Icon", "Image"]
