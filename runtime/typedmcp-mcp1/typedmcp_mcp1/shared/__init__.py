"""The modules that clients and servers share, under the names of `mcp.shared`."""
