"""MCP over HTTP: what both ends share, and the server's end."""
