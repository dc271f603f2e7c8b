"""Clients, under the names of `mcp.client`."""
