"""The access token of a request, under the names of `mcp.server.auth.middleware.auth_context`."""

from __future__ import annotations

from typedmcp_mcp1.server.auth.provider import AccessToken
from typedmcp_mcp1.server.session import served_request

__all__ = ["get_access_token"]


def get_access_token() -> AccessToken | None:
    """Return the access token of the request that is handled; None without one."""
    ctx = served_request.get(None)
    principal = None if ctx is None else ctx.principal
    found = None if principal is None else principal.claims.get("access_token")
    return found if isinstance(found, AccessToken) else None
