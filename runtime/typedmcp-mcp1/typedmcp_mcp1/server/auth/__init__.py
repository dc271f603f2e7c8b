"""Servers that require access tokens, under the names of `mcp.server.auth`."""
