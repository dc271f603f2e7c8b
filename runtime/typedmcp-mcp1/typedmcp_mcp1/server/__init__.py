"""Servers, under the names of `mcp.server`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp.building import lazy_names

if TYPE_CHECKING:
    from typedmcp_mcp1.server.fastmcp import FastMCP as FastMCP
    from typedmcp_mcp1.server.lowlevel import NotificationOptions as NotificationOptions
    from typedmcp_mcp1.server.lowlevel import Server as Server
    from typedmcp_mcp1.server.models import InitializationOptions as InitializationOptions

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(globals(), {
        ".fastmcp": ["FastMCP"],
        ".lowlevel": ["NotificationOptions", "Server"],
        ".models": ["InitializationOptions"],
    })  # fmt: skip

__all__ = ["FastMCP", "InitializationOptions", "NotificationOptions", "Server"]
