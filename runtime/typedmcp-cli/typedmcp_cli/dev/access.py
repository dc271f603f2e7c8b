"""Access to the page: only for the browser of the user who started the command.

The address of the page holds a random token, which other programs and web pages do not know. It stands in the path, and
not in a cookie: the browser would send a cookie to every server on this machine. `Host` keeps out pages that resolve
their own name to this machine; `Origin` and `Sec-Fetch-Site` keep out pages of other origins that know the address.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

__all__ = ["SECURITY_HEADERS", "AccessDeniedError", "AccessGuard", "Receive", "Scope", "Send"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
"""The types of ASGI."""

_TOKEN_BYTES = 32
_OWN_SITE = (b"", b"none", b"same-origin")
"""Values of `Sec-Fetch-Site`: of no browser, of an address that the user entered, and of the page itself."""

SECURITY_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; media-src data:; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""Headers of every response. Scripts and styles are files of the page; pictures and sound are `data:` URLs alone."""


class AccessDeniedError(Exception):
    """A request that is refused, with its status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class AccessGuard:
    """Checks each request to the page at a port of this machine."""

    def __init__(self, port: int, token: str = "") -> None:
        self._token = token or secrets.token_urlsafe(_TOKEN_BYTES)
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
        self.url: str = f"http://127.0.0.1:{port}/{self._token}/"
        """The address of the page."""

    def check(self, scope: Scope) -> str:
        """Return the path below the token. Raises `AccessDeniedError`."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        host = headers.get(b"host", b"")
        if host not in self._hosts:
            raise AccessDeniedError(421, "this page is at 127.0.0.1 only")
        if headers.get(b"origin", b"http://" + host) != b"http://" + host:
            raise AccessDeniedError(403, "pages of other origins have no access")
        if headers.get(b"sec-fetch-site", b"") not in _OWN_SITE:
            raise AccessDeniedError(403, "pages of other sites have no access; enter the address in the browser")
        path: str = scope["path"]
        given, _, rest = path.removeprefix("/").partition("/")
        if not hmac.compare_digest(given.encode(errors="replace"), self._token.encode()):
            raise AccessDeniedError(403, "open the address that typedmcp dev printed: it holds a token")
        return rest
