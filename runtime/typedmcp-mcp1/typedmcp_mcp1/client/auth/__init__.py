"""Clients that sign in, under the names of `mcp.client.auth`."""

from typedmcp_mcp1.client.auth.provider import OAuthClientProvider, TokenStorage

__all__ = ["OAuthClientProvider", "TokenStorage"]
