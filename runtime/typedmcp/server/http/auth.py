"""Access to a server over HTTP: hosts, origins and credentials.

A web page must not reach a server on the visitor's machine by resolving its own host name to that address (DNS
rebinding). So requests are accepted only for the configured hosts, and from pages of the configured origins.
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#security-%26-endpoint
https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import msgspec

from typedmcp.errors import UsageError
from typedmcp.protocol.option_checks import check_list
from typedmcp.server.http.messages import Headers, HTTPException
from typedmcp.transports.concurrency import is_awaitable

__all__ = ["LOOPBACK", "AllowedHosts", "Auth", "Principal", "Verifier"]

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
"""The hosts that are accepted by default."""

_WELL_KNOWN = "/.well-known/oauth-protected-resource"
_UNQUOTABLE = re.compile(r'[^\x20-\x7e]|["\\]')
_CHECKED_VALUES = 256
"""Values of `Host` and of `Origin` whose check is cached."""


class AllowedHosts:
    """The hosts and origins that are accepted.

    `hosts` are names with or without a port; "*" accepts all. `origins` are accepted in addition to those of the hosts,
    such as `https://app.example.com`; "*" accepts all.
    """

    def __init__(self, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._hosts = _lowered("hosts", hosts)
        self._origins = {origin.rstrip("/") for origin in _lowered("origins", origins)}
        self._allows_host = lru_cache(_CHECKED_VALUES)(self._check_host)
        self._allows_origin = lru_cache(_CHECKED_VALUES)(self._check_origin)

    def check(self, headers: Headers) -> None:
        """Raise `HTTPException` for a request to a host, or from a page of an origin, that is not accepted."""
        host = headers.get(b"host", b"")
        if not self._allows_host(host):
            name = _quoted(host)
            raise HTTPException(421, f"the host {name} is not served here; asgi(…, hosts=[{name}]) allows it")
        origin = headers.get(b"origin")
        if origin is not None and not self._allows_origin(origin):
            name = _quoted(origin)
            raise HTTPException(403, f"pages of {name} have no access; asgi(…, origins=[{name}]) allows it")

    def _check_host(self, host: bytes) -> bool:
        if "*" in self._hosts:
            return True
        text = host.decode("latin-1").lower()
        return text in self._hosts or _without_port(text) in self._hosts

    def _check_origin(self, origin: bytes) -> bool:
        text = origin.decode("latin-1").lower()
        if "*" in self._origins or text in self._origins:
            return True
        scheme, _, host = text.partition("://")
        return scheme in ("http", "https") and "*" not in self._hosts and self._check_host(host.encode("latin-1"))


def _lowered(option: str, values: Iterable[str]) -> set[str]:
    check_list(option, values)
    return {value.lower() for value in values}


def _without_port(host: str) -> str:
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdigit() and not name.endswith(":") else host


def _quoted(value: bytes) -> str:
    """Quote the value of a header for an error message: shortened, and in ASCII."""
    return ascii(value[:100].decode("latin-1"))


class Principal(msgspec.Struct, frozen=True):
    """The user or program that a token was issued to.

    `name` identifies it, `scopes` are the token's scopes. The token is valid until `expires`, in seconds since 1970, or
    without end if that is None.
    """

    name: str
    scopes: frozenset[str] = frozenset()
    expires: float | None = None


Verifier: TypeAlias = Callable[[str], "Principal | Awaitable[Principal | None] | None"]
"""Returns the principal of a bearer token, or None for a token that is not valid for this server. Plain or async."""


class Auth:
    """Authentication with bearer tokens, required for every request. Raises `UsageError` for invalid options.

    `verify` returns the principal of a token, or None. It must also check that the token was issued for this server.
    `resource` is the URL of the MCP endpoint as clients know it, `issuers` are the URLs of the authorization servers,
    and `scopes` the scopes that every request needs.
    """

    def __init__(self, verify: Verifier, *, resource: str, issuers: Sequence[str], scopes: Sequence[str] = ()) -> None:
        parts = urlsplit(resource)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.fragment:
            raise UsageError(f"resource must be the URL of the endpoint, without a fragment, not {resource!r}")
        if isinstance(issuers, str) or not issuers:
            raise UsageError("issuers must be a list of URLs of authorization servers, with at least one")
        if isinstance(scopes, str):
            raise UsageError(f"scopes must be a list, such as {scopes.split()!r}, not a string")
        self._verify = verify
        self._scopes = list(scopes)
        path = parts.path.rstrip("/")
        self.metadata_paths: tuple[str, ...] = (_WELL_KNOWN + path, _WELL_KNOWN)
        """The paths at which clients look for the metadata."""
        self._metadata_url = f"{parts.scheme}://{parts.netloc}{_WELL_KNOWN}{path}"
        self.metadata: bytes = msgspec.json.encode(self._metadata(resource, issuers))
        """The protected resource metadata (RFC 9728), from which clients learn how to get a token."""

    def _metadata(self, resource: str, issuers: Sequence[str]) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            "resource": resource,
            "authorization_servers": list(issuers),
            "bearer_methods_supported": ["header"],
        }
        return {**metadata, "scopes_supported": self._scopes} if self._scopes else metadata

    async def principal(self, headers: Headers) -> Principal:
        """Return the principal of a request. Raises `HTTPException` with a challenge."""
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").strip(" \t").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise self._unauthorized("a bearer token is required")
        verified = self._verify(token.strip())
        principal = await verified if is_awaitable(verified) else verified
        if not isinstance(principal, Principal) or _has_expired(principal):
            raise self._unauthorized("the token is not valid, or has expired", "invalid_token")
        if any(scope not in principal.scopes for scope in self._scopes):
            raise self.insufficient_scope(self._scopes)
        return principal

    def _unauthorized(self, text: str, error: str | None = None) -> HTTPException:
        return HTTPException(401, text, [self._challenge(error, self._scopes)])

    def insufficient_scope(self, scopes: Sequence[str]) -> HTTPException:
        """Return the response to a request that lacks some of these scopes."""
        text = f"required scopes: {' '.join(scopes)}"
        return HTTPException(403, text, [self._challenge("insufficient_scope", scopes)])

    def _challenge(self, error: str | None, scopes: Sequence[str]) -> tuple[bytes, bytes]:
        parameters = {"error": error, "scope": " ".join(scopes) or None, "resource_metadata": self._metadata_url}
        quoted = (f'{name}="{_UNQUOTABLE.sub("", value)}"' for name, value in parameters.items() if value)
        return b"www-authenticate", f"Bearer {', '.join(quoted)}".encode("ascii")


def _has_expired(principal: Principal) -> bool:
    return principal.expires is not None and principal.expires <= time.time()
