"""The authorization of a server, under the names of `mcp.server.auth.settings`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import AnyHttpUrl, BaseModel

from typedmcp import Auth, Principal
from typedmcp.errors import UsageError
from typedmcp_mcp1.missing import missing_names
from typedmcp_mcp1.server.auth.provider import AccessToken, TokenVerifier

__all__ = ["AuthSettings", "to_auth"]


if not TYPE_CHECKING:
    __getattr__ = missing_names(
        __name__, "typedmcp has no authorization server; use any provider, and pass a token_verifier for its tokens"
    )


class AuthSettings(BaseModel):
    """The authorization server whose tokens are accepted, and the scopes that every request needs."""

    issuer_url: AnyHttpUrl
    service_documentation_url: AnyHttpUrl | None = None
    client_registration_options: Any = None
    revocation_options: Any = None
    required_scopes: list[str] | None = None
    resource_server_url: AnyHttpUrl | None = None
    validate_token_resource: bool = False


def to_auth(verifier: TokenVerifier, settings: AuthSettings | None) -> Auth:
    """Return the option `auth` of `typedmcp.asgi` for a verifier. Raises `UsageError` without settings."""
    if settings is None or settings.resource_server_url is None:
        raise UsageError("token_verifier needs auth=AuthSettings(issuer_url=…, resource_server_url=…)")

    async def verify(token: str) -> Principal | None:
        found = await verifier.verify_token(token)
        return None if found is None else _principal_of(found)

    return Auth(
        verify,
        resource=str(settings.resource_server_url),
        issuers=[str(settings.issuer_url)],
        scopes=settings.required_scopes or [],
    )


def _principal_of(token: AccessToken) -> Principal:
    claims = {**(token.claims or {}), "access_token": token}
    expires = None if token.expires_at is None else float(token.expires_at)
    return Principal(token.subject or token.client_id, frozenset(token.scopes), claims=claims, expires=expires)
