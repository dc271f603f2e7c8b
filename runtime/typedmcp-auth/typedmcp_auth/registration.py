"""Dynamic client registration.

https://www.rfc-editor.org/rfc/rfc7591
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from typedmcp.auth import AuthRequest
from typedmcp_auth.discovery import ServerMetadata, Steps, decode_document
from typedmcp_auth.tokens import ClientCredential, read_error

__all__ = ["register"]


class _Registration(Struct):
    client_id: str
    client_secret: str | None = None
    client_secret_expires_at: float = 0
    token_endpoint_auth_method: str | None = None


def register(server: ServerMetadata, redirect_uri: str, name: str, scopes: tuple[str, ...]) -> Steps[ClientCredential]:
    """Register the client. Raises `SignInError` if the authorization server rejects that."""
    assert server.registration_endpoint is not None
    supported = server.token_endpoint_auth_methods_supported or ["none"]
    known = ("none", "client_secret_basic", "client_secret_post")
    metadata = {
        "client_name": name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": next((method for method in known if method in supported), "none"),
        "application_type": "web" if redirect_uri.startswith("https:") else "native",
        **({"scope": " ".join(scopes)} if scopes else {}),
    }
    headers = {"accept": "application/json", "content-type": "application/json"}
    response = yield AuthRequest(server.registration_endpoint, headers, msgspec.json.encode(metadata))
    if response.status not in (200, 201):
        raise read_error(response, server.registration_endpoint)
    found = yield from decode_document(response, _Registration, server.registration_endpoint)
    return ClientCredential(
        client_id=found.client_id,
        client_secret=found.client_secret,
        method=found.token_endpoint_auth_method,
        redirect_uri=redirect_uri,
        secret_expires=found.client_secret_expires_at,
        scopes=scopes,
    )
