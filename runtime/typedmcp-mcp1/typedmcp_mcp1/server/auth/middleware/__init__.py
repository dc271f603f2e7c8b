"""The access token of a request, under the names of `mcp.server.auth.middleware`."""
