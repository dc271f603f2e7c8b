"""Verifiers of access tokens, under the names of `mcp.server.auth.provider`.

There is no authorization server: use any provider, whose tokens a `TokenVerifier` checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from typedmcp_mcp1.missing import missing_names

__all__ = ["AccessToken", "TokenVerifier"]


if not TYPE_CHECKING:
    __getattr__ = missing_names(
        __name__, "typedmcp has no authorization server; use any provider, and pass a token_verifier for its tokens"
    )


class AccessToken(BaseModel):
    """An access token, as a verifier knows it."""

    token: str
    client_id: str
    scopes: list[str]
    expires_at: int | None = None
    resource: str | None = None
    subject: str | None = None
    claims: dict[str, Any] | None = None


class TokenVerifier(Protocol):
    """Verifies access tokens."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what is known of a token; None for one that is not valid."""
        ...
