"""The description of a server, under the names of `mcp.server.models`."""

from __future__ import annotations

from pydantic import BaseModel

from typedmcp_mcp1 import types

__all__ = ["InitializationOptions"]


class InitializationOptions(BaseModel):
    """The name and the capabilities that a server declares."""

    server_name: str
    server_version: str
    capabilities: types.ServerCapabilities
    instructions: str | None = None
    website_url: str | None = None
    icons: list[types.Icon] | None = None
