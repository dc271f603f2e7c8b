"""Doubles of identity providers, and the table of docs/authorization.md: `python -m tests.docs.providers`.

Each double answers as the provider does by its published metadata and its documented errors, as far as a sign-in
depends on that. Nothing here was recorded from the services.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.client.http.scripted_http import Request, Wire
from tests.docs.markdown import replace_block
from tests.paths import ROOT
from tests.typedmcp_auth.scripted import AuthorizationServer

__all__ = ["BLOCK", "PAGE", "PROVIDERS", "Provider", "render"]

PAGE: Final = ROOT / "docs" / "authorization.md"
BLOCK: Final = "providers"
OAUTH, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
INVALID_GRANT: Final = {"error": "invalid_grant", "error_description": "The refresh token is invalid or has expired."}


@dataclass(frozen=True)
class Provider:
    """An identity provider: what it publishes, and how it answers."""

    name: str
    issuer: str
    """The path of its issuer."""
    documents: tuple[str, ...]
    """The well-known paths at which it has metadata."""
    registration: tuple[int, dict[str, Any]] | None
    """How it answers a registration without credentials. None: it has no endpoint for that."""
    refusal: tuple[int, dict[str, Any]]
    """How it answers an ended refresh token."""
    deviates: str
    """How it deviates from the standards, in words."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """The options that `OAuth` needs."""
    without: str = ""
    """A part of the error without these options."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    token: dict[str, Any] = field(default_factory=dict[str, Any])
    """Members of its tokens. None: it leaves the member out."""
    named: str | None = None
    """The path of the issuer as MCP servers name it, if that differs."""
    refuses_resource: bool = False

    def serve(self, server: AuthorizationServer) -> None:
        """Let a scripted server answer as the provider does."""
        has_issuer = "authorization_response_iss_parameter_supported"
        server.metadata = {
            "issuer": f"{server.url}{self.issuer}",
            has_issuer: None,
            **({"registration_endpoint": None} if self.registration is None else {}),
            **self.metadata,
        }
        server.redirect = {"iss": f"{server.url}{self.issuer}" if self.metadata.get(has_issuer) else None}
        server.token = self.token
        server.handle = lambda request, wire: self._answer(server, request, wire)

    def _answer(self, server: AuthorizationServer, request: Request, wire: Wire) -> bool:
        target = urlsplit(request.target)
        form = dict(parse_qsl(request.body.decode()))
        if "/.well-known/" in target.path:
            if target.path in self.documents:
                wire.json(server.describe())
            else:
                wire.reply(404)
        elif target.path == "/register" and self.registration is not None:
            status, body = self.registration
            wire.json(body, status)
        elif target.path == "/authorize" and self.refuses_resource and "resource=" in target.query:
            asked = dict(parse_qsl(target.query))
            refused = urlencode({"error": "invalid_target", "state": asked["state"]})
            wire.reply(302, location=f"{asked['redirect_uri']}?{refused}")
        elif form.get("grant_type") == "refresh_token":
            status, body = self.refusal
            wire.json(body, status)
        elif form.get("grant_type") == "authorization_code":
            code = server.codes.pop(form["code"])
            server.issue(code.get("scope", ""), wire)
        else:
            return False
        return True


_REGISTERED: Final = (201, {"client_id": "registered", "client_secret_expires_at": 0})
_CLIENT: Final = {"client_id": "app"}
_SECRET: Final = {"client_id": "app", "client_secret": "secret"}

PROVIDERS: Final = [
    Provider(
        "Keycloak", "/realms/main", (f"/realms/main{OPENID}",),
        (403, {"error": "insufficient_scope", "error_description": "Policy 'Trusted Hosts' rejected the request"}),
        (400, {"error": "invalid_grant", "error_description": "Token is not active"}),
        "registers clients of trusted hosts alone, in its default policy",
        _CLIENT, "insufficient_scope",
        {"authorization_response_iss_parameter_supported": True, "code_challenge_methods_supported": ["plain", "S256"]},
        {"refresh_expires_in": 1800, "not-before-policy": 0, "session_state": "s"},
    ),
    Provider(
        "Entra ID", "/tenant/v2.0", (f"/tenant/v2.0{OPENID}",), None,
        (400, {"error": "invalid_grant", "error_description": "AADSTS700082", "error_codes": [700082]}),
        "registers no clients, does not announce PKCE, refuses `resource` beside scopes of an API (AADSTS9010010)",
        {**_CLIENT, "scopes": ["api://app/use", "offline_access"], "assume_pkce": True, "send_resource": False},
        "PKCE",
        {"code_challenge_methods_supported": None, "scopes_supported": ["openid", "offline_access"]},
        {"ext_expires_in": 3599}, refuses_resource=True,
    ),
    Provider(
        "Google", "", (OPENID,), None,
        (400, {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}),
        "registers no clients, wants a secret of desktop clients, too; its servers name the issuer with a slash; no "
        "refresh token, since it has no `offline_access`",
        _SECRET, "client_id=",
        {"token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"]},
        {"refresh_token": None, "scope": "openid https://www.googleapis.com/auth/drive"}, named="/",
    ),
    Provider(
        "GitHub", "/login/oauth", (f"{OAUTH}/login/oauth",), None,
        (200, {"error": "bad_refresh_token", "error_description": "The refresh token is incorrect or expired."}),
        "registers no clients; errors have the status 200; scopes have commas; tokens of OAuth apps do not expire",
        _SECRET, "client_id=",
        {"token_endpoint_auth_methods_supported": None},
        {"token_type": "bearer", "scope": "repo,gist", "expires_in": None},
    ),
    Provider(
        "Auth0", "/", (OAUTH, OPENID), _REGISTERED,
        (403, {"error": "invalid_grant", "error_description": "Unknown or invalid refresh token."}),
        "the issuer ends with a slash; a refused refresh token has the status 403; registration has to be switched on",
        metadata={"code_challenge_methods_supported": ["S256", "plain"]},
    ),
    Provider(
        "Okta", "/oauth2/default", (f"/oauth2/default{OPENID}", f"/oauth2/default{OAUTH}"),
        (403, {"errorCode": "E0000005", "errorSummary": "Invalid session"}),
        (400, {"error": "invalid_grant", "error_description": "The refresh token is invalid or expired."}),
        "registers clients of administrators alone, with an error of its own form",
        _CLIENT, "answered 403",
    ),
    Provider(
        "Amazon Cognito", "/us-east-1_pool", (f"/us-east-1_pool{OPENID}",), None,
        (400, {"error": "invalid_grant"}),
        "registers no clients, does not announce PKCE",
        {**_CLIENT, "assume_pkce": True}, "PKCE",
        {"code_challenge_methods_supported": None},
    ),
    Provider(
        "WorkOS AuthKit", "", (OAUTH,), _REGISTERED, (400, INVALID_GRANT), "–",
        metadata={"client_id_metadata_document_supported": True},
    ),
    Provider(
        "GitLab", "", (OAUTH, OPENID), (201, {"client_id": "registered", "scope": "mcp"}), (400, INVALID_GRANT), "–",
        metadata={"code_challenge_methods_supported": ["plain", "S256"]}, token={"created_at": 1_790_000_000},
    ),
    Provider(
        "Ory Hydra", "/", (OPENID,),
        (201, {"client_id": "registered", "client_secret_expires_at": 0, "contacts": None, "client_uri": ""}),
        (400, INVALID_GRANT), "the issuer may end with a slash; registration has to be switched on",
        metadata={"code_challenge_methods_supported": ["plain", "S256"]}, token={"token_type": "bearer"},
    ),
]  # fmt: skip


def render() -> str:
    """Render the table of the documentation."""
    rows = ["| provider | deviates | `OAuth` needs |", "|---|---|---|"]
    for one in PROVIDERS:
        options = ", ".join(
            f"`{name}{f'={value}' if isinstance(value, bool) else ''}`" for name, value in one.options.items()
        )
        rows.append(f"| {one.name} | {one.deviates} | {options or 'nothing'} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replace_block(text, BLOCK, render()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
