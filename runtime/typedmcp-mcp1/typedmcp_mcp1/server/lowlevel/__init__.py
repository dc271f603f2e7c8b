"""Servers whose functions take and return the types of the protocol, under the names of `mcp.server.lowlevel`."""

from typedmcp_mcp1.server.lowlevel.server import NotificationOptions, Server

__all__ = ["NotificationOptions", "Server"]
