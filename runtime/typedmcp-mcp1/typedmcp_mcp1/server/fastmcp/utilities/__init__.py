"""Helpers, under the names of `mcp.server.fastmcp.utilities`."""
