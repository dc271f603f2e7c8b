"""The server side of MCP over HTTP: the ASGI application, sessions, event streams and access."""
