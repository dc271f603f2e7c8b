"""The claims of a token: whether it is meant for this server, and who it was issued to.

https://www.rfc-editor.org/rfc/rfc9068#section-2.2
https://www.rfc-editor.org/rfc/rfc7662#section-2.2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from typedmcp import Principal
from typedmcp.building import is_array
from typedmcp.errors import UsageError

__all__ = ["Audience", "canonical_url", "check_issuer", "is_time", "to_principal"]

_PORTS: Final = {"http": 80, "https": 443}
_LAST_TIME: Final = 1e15
"""Seconds since 1970 that no token lives to. Numbers in JSON may be too large to calculate with."""


class Audience:
    """The names under which authorization servers know this server. Raises `UsageError` if there is none.

    URLs are compared in their canonical form: scheme and host in lower case, without a default port, without a slash
    at the end. https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#canonical-server-uri
    """

    def __init__(self, audience: str | Sequence[str]) -> None:
        names: list[Any] = [audience] if isinstance(audience, str) else [*audience]
        if not names or not all(isinstance(name, str) and name for name in names):
            raise UsageError(f"audience must be the URL of the endpoint, or a list of names, not {audience!r}")
        self._names = frozenset(map(canonical_url, names))

    def includes(self, claim: object) -> bool:
        """Return whether the claim `aud`, a string or a list of strings, names this server."""
        names: Sequence[Any] = [claim] if isinstance(claim, str) else claim if is_array(claim) else []
        return any(isinstance(name, str) and canonical_url(name) in self._names for name in names)


def canonical_url(name: str) -> str:
    """Return a URL in its canonical form, and another name as it is."""
    try:
        parts = urlsplit(name)
        port = parts.port
    except ValueError:
        return name
    if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc or parts.fragment:
        return name
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown_port = "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{host}{shown_port}{parts.path.removesuffix('/')}{query}"


def check_issuer(issuer: str, name: str = "issuer") -> None:
    """Raise `UsageError` for an issuer, or another option, that is not a URL of a web server."""
    try:
        parts = urlsplit(issuer)
        is_valid = parts.scheme in _PORTS and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        is_valid = False
    if not is_valid or " " in issuer:
        of = "an authorization server" if name == "issuer" else "the endpoint"
        raise UsageError(f"{name} must be the URL of {of}, not {issuer!r}")


def is_time(value: object) -> bool:
    """Return whether a claim is a time in seconds since 1970."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LAST_TIME


def to_principal(claims: Mapping[str, Any], issuer: str, subject_claim: str, expires: float | None) -> Principal | None:
    """Return the principal that claims describe, or None if they name no subject."""
    subject = claims.get(subject_claim)
    if not isinstance(subject, str) or not subject:
        return None
    client = claims.get("client_id", claims.get("azp"))
    return Principal(subject, _scopes_of(claims), expires, issuer, client if isinstance(client, str) else None, claims)


def _scopes_of(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the scopes: `scope` is a text by RFC 9068, and `scp` a list or a text of some authorization servers."""
    value: Any = claims.get("scope", claims.get("scp"))
    if isinstance(value, str):
        return frozenset(value.split())
    return frozenset(scope for scope in value if isinstance(scope, str)) if is_array(value) else frozenset()
