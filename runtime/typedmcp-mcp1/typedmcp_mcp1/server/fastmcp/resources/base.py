"""The base class of resources, under the names of `mcp.server.fastmcp.resources.base`."""

from typedmcp_mcp1.server.fastmcp.resources.types import Resource

__all__ = ["Resource"]
