"""Who may talk to a server over HTTP: hosts, origins and credentials.

A page that a browser shows must not reach a server on the same machine by giving its address another name (DNS
rebinding), so requests are taken only for hosts, and from pages of origins, that the operator knows of.
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#security-%26-endpoint
https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from typedmcp.dispatch import is_awaitable
from typedmcp.errors import UsageError

__all__ = ["Access", "Auth", "Principal", "Refused", "Verifier"]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The hosts that are taken unless told otherwise."""


class Refused(Exception):  # noqa: N818  # named for the state
    """A request is refused before anybody looks at what is in it, with a status and perhaps some headers."""

    def __init__(self, status: int, text: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(text)
        self.status: int = status
        self.text: str = text
        self.headers: Sequence[tuple[bytes, bytes]] = headers


class Access:
    """Which hosts and origins are taken.

    `hosts` are names with or without a port; `*` takes all. `origins` are more than those of the hosts, such as
    `https://app.example.com`; `*` takes all.
    """

    def __init__(self, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._hosts = _listed("hosts", hosts)
        self._origins = {origin.rstrip("/") for origin in _listed("origins", origins)}
        # Most requests say the same: what was found of the last ones is remembered.
        self._takes_host = lru_cache(256)(self._check_host)
        self._takes_origin = lru_cache(256)(self._check_origin)

    def check(self, headers: Mapping[bytes, bytes]) -> None:
        """Raises `Refused` for a request to a host, or from a page of an origin, that is not taken."""
        host = headers.get(b"host", b"")
        if not self._takes_host(host):
            name = _shown(host)
            raise Refused(421, f"the host {name} is not served here; asgi(…, hosts=[{name}]) allows it")
        origin = headers.get(b"origin")
        if origin is not None and not self._takes_origin(origin):
            name = _shown(origin)
            raise Refused(403, f"pages of {name} have no access; asgi(…, origins=[{name}]) gives it")

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


def _listed(option: str, given: Iterable[str]) -> set[str]:
    if isinstance(given, str):
        raise UsageError(f"{option} are a list, such as [{given!r}]")
    return {each.lower() for each in given}


def _without_port(host: str) -> str:
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdigit() and not name.endswith(":") else host


def _shown(value: bytes) -> str:
    """What a header says, short and harmless enough for an error."""
    return ascii(value[:100].decode("latin-1"))


class Principal(msgspec.Struct, frozen=True):
    """Who a token stands for. `expires` is in seconds since 1970."""

    name: str
    scopes: frozenset[str] = frozenset()
    expires: float | None = None


Verifier: TypeAlias = Callable[[str], "Principal | Awaitable[Principal | None] | None"]
"""Tells whom a bearer token stands for; None where it is not (any more) one for this server."""


class Auth:
    """Has requests bring a bearer token.

    `verify` must also see to it that a token was issued for this server. `resource` is the URL of the MCP endpoint as
    clients know it, `issuers` are the URLs of the authorization servers, `scopes` what every request needs.
    """

    def __init__(self, verify: Verifier, *, resource: str, issuers: Sequence[str], scopes: Sequence[str] = ()) -> None:
        parts = urlsplit(resource)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.fragment:
            raise UsageError(f"resource is the URL of the endpoint, without a fragment; not {resource!r}")
        if isinstance(issuers, str) or not issuers:
            raise UsageError("issuers are a list of the URLs of authorization servers, at least one")
        if isinstance(scopes, str):
            raise UsageError(f"scopes are a list, such as {scopes.split()!r}")
        self._verify = verify
        self._scopes = list(scopes)
        path = parts.path.rstrip("/")
        self.metadata_paths: tuple[str, ...] = (_WELL_KNOWN + path, _WELL_KNOWN)
        """Where clients look for the metadata."""
        self._metadata_url = f"{parts.scheme}://{parts.netloc}{_WELL_KNOWN}{path}"
        self.metadata: bytes = msgspec.json.encode(self._described(resource, issuers))
        """What a client has to know to get a token (RFC 9728)."""

    def _described(self, resource: str, issuers: Sequence[str]) -> dict[str, Any]:
        described: dict[str, Any] = {
            "resource": resource,
            "authorization_servers": list(issuers),
            "bearer_methods_supported": ["header"],
        }
        return {**described, "scopes_supported": self._scopes} if self._scopes else described

    async def principal(self, headers: Mapping[bytes, bytes]) -> Principal:
        """Who makes a request. Raises `Refused` with a challenge."""
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").strip(" \t").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise self.refused("a bearer token is needed")
        found = self._verify(token.strip())
        principal = await found if is_awaitable(found) else found
        if not isinstance(principal, Principal) or _has_expired(principal):
            raise self.refused("the token is not valid, or not valid any more", "invalid_token")
        missing = [scope for scope in self._scopes if scope not in principal.scopes]
        if missing:
            raise self.lacking(self._scopes)
        return principal

    def refused(self, text: str, error: str | None = None) -> Refused:
        """The refusal of a request without a valid token."""
        return Refused(401, text, [self._challenge(error, self._scopes)])

    def lacking(self, scopes: Sequence[str]) -> Refused:
        """The refusal of a request that needs these scopes."""
        text = f"this needs the scopes: {' '.join(scopes)}"
        return Refused(403, text, [self._challenge("insufficient_scope", scopes)])

    def _challenge(self, error: str | None, scopes: Sequence[str]) -> tuple[bytes, bytes]:
        parts = {"error": error, "scope": " ".join(scopes) or None, "resource_metadata": self._metadata_url}
        said = ", ".join(f'{name}="{_UNQUOTABLE.sub("", value)}"' for name, value in parts.items() if value)
        return b"www-authenticate", f"Bearer {said}".encode("ascii")


def _has_expired(principal: Principal) -> bool:
    return principal.expires is not None and principal.expires <= time.time()


_UNQUOTABLE = re.compile(r'[^\x20-\x7e]|["\\]')
_WELL_KNOWN = "/.well-known/oauth-protected-resource"
