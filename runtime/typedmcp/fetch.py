"""Requests for documents and tokens, on behalf of clients that sign in and of servers that verify tokens."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final
from urllib.parse import urljoin, urlsplit

from typedmcp.auth import AuthRequest, AuthResponse
from typedmcp.errors import SignInError, UsageError
from typedmcp.limits import Limits
from typedmcp.protocol.text import visible
from typedmcp.transports.http1 import ConnectionPool, parse_url
from typedmcp.transports.proxies import select_proxy

__all__ = ["FetchClient"]

_TIMEOUT: Final = 30.0
"""Seconds for one request, with its redirects."""

_REDIRECTS: Final = (301, 302, 303, 307, 308)


class FetchClient:
    """Sends requests, each on a connection of its own, within bounds of time and bytes.

    `proxy` is the one of the option of clients; None takes that of the environment. `timeout` is the number of seconds
    for one request with its redirects, 30 by default. Without `follows_redirects`, a redirect is an error.
    """

    def __init__(
        self,
        get_tls_context: Callable[[], ssl.SSLContext],
        limits: Limits,
        *,
        proxy: str | None = None,
        timeout: float | None = None,
        follows_redirects: bool = True,
    ) -> None:
        self._get_tls_context = get_tls_context
        self._limits = limits
        self._proxy = proxy
        self._timeout = _TIMEOUT if timeout is None else timeout
        self._follows_redirects = follows_redirects

    async def fetch(self, request: AuthRequest) -> AuthResponse:
        """Send a request. A GET follows redirects within its origin; other redirects raise `SignInError`."""
        url = request.url
        shown = url.partition("?")[0]
        try:
            async with asyncio.timeout(self._timeout):
                for _ in range(self._limits.http_redirects):
                    found = await self._send(url, request)
                    status, location = found.status, found.headers.get("location", "")
                    if status not in _REDIRECTS:
                        return found
                    if not self._follows_redirects:
                        raise SignInError(f"{shown} redirects, with status {status}, which is not followed")
                    url = _follow(url, location, is_post=request.body is not None)
        except TimeoutError:
            raise SignInError(f"{shown}: no response within {self._timeout:g} s") from None
        except (OSError, ValueError, UsageError) as error:
            raise SignInError(f"{shown}: {visible(str(error), 300)}") from None
        raise SignInError(f"{shown} redirects more than {self._limits.http_redirects} times")

    async def _send(self, url: str, request: AuthRequest) -> AuthResponse:
        address, parts = parse_url(url)
        proxy = select_proxy(self._proxy, address)
        pool = ConnectionPool(address, self._get_tls_context, proxy, self._limits.http_response_head_bytes)
        target = f"{pool.origin}{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
        lines = [
            f"{'GET' if request.body is None else 'POST'} {target} HTTP/1.1",
            f"host: {address.authority}",
            "user-agent: typedmcp",
            "accept-encoding: identity",
            *(f"{name}: {value}" for name, value in (*request.headers.items(), *pool.headers.items())),
            *([] if request.body is None else [f"content-length: {len(request.body)}"]),
        ]
        head = "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1")
        try:
            response = await pool.send(head + (request.body or b""))
            body = await response.read_all(self._limits.oauth_document_bytes)
            return AuthResponse(response.status, body, response.headers)
        finally:
            pool.close()


def _follow(url: str, location: str, *, is_post: bool) -> str:
    """Return the location of a redirect within the origin. Raises `SignInError` for any other."""
    target = urljoin(url, location)
    shown = visible(target.partition("?")[0], 200)
    if is_post:
        raise SignInError(f"{url} redirects to {shown}; requests with credentials are not redirected")
    if parse_url(target)[0] != parse_url(url)[0] or urlsplit(target).username is not None:
        raise SignInError(f"{url} redirects to {shown}, another origin")
    return target
