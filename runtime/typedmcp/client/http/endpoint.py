"""The URL of a server: requests to it, with their headers and credentials, and the meaning of statuses."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Final, TypeAlias
from urllib.parse import urljoin, urlunsplit
from urllib.request import getproxies_environment, proxy_bypass

from typedmcp.client.http.http1 import (
    ConnectionPool,
    HttpAddress,
    HttpResponse,
    StaleConnectionError,
    basic_authorization,
    parse_url,
)
from typedmcp.errors import (
    AuthorizationRequiredError,
    ConnectionLostError,
    Error,
    HttpStatusError,
    ServerBusyError,
    UsageError,
)
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.transports.concurrency import is_awaitable

__all__ = ["Credentials", "Endpoint", "HttpOptions", "encode_headers", "shorten_body"]

AuthValue: TypeAlias = "str | Mapping[str, str] | None"
"""A bearer token, or headers with credentials. None if there are none."""

Credentials: TypeAlias = "str | Callable[[AuthorizationRequiredError | None], AuthValue | Awaitable[AuthValue]]"
"""A bearer token, or a function that returns one, or headers.

The function is called with None first, and after that with the error of each request that the server rejected.
"""

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

_RESERVED_HEADERS: Final = frozenset(
    {
        "accept", "accept-encoding", "connection", "content-length", "content-type", "last-event-id", "mcp-method",
        "mcp-name", "mcp-protocol-version", "mcp-session-id", "transfer-encoding",
    }
)  # fmt: skip
"""Headers that the protocol sets on every request."""

_ERROR_TEXT_LENGTH: Final = 500
"""Characters of a body that an error quotes."""

_ERROR_BODY_BYTES: Final = 1 << 16
"""Bytes of a body that are read for an error."""

_DRAINED_BODY_BYTES: Final = 1 << 16
"""The maximum number of bytes of an unneeded body that are read so that the connection can be reused."""


@dataclass(frozen=True)
class HttpOptions:
    """The options for URLs. `ConnectOptions` describes them.

    Raises `UsageError` for an invalid header, `reconnects` or `proxy`.
    """

    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    auth: Credentials | None = None
    proxy: str | None = None
    tls: ssl.SSLContext | None = None
    reconnects: int = 5

    def __post_init__(self) -> None:
        if not hasattr(self.headers, "items"):
            raise UsageError(f"headers must be a mapping of names to values, not {self.headers!r}")
        for name, value in self.headers.items():
            _check_header(name, value)
            if name.lower() in _RESERVED_HEADERS or name.lower().startswith("mcp-param-"):
                raise UsageError(f"headers: {name} is set by the protocol and cannot be an option")
        if self.reconnects < 0:
            raise UsageError(f"reconnects must not be negative, got {self.reconnects}")
        if self.proxy:
            parse_url(self.proxy)


def _check_header(name: str, value: object) -> None:
    if not isinstance(value, str) or not _TOKEN.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
        raise UsageError(f"headers: {name!r} is not a valid header, or its value is not")


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Encode headers as lines. Raises `UsageError` for a header with a line break."""
    text = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if text.count("\r") != len(headers) or text.count("\n") != len(headers) or "\0" in text:
        raise UsageError(f"headers must not have line breaks; one of these has: {', '.join(map(repr, headers))}")
    return text.encode("latin-1", "replace")


class Endpoint:
    """Sends requests to one URL. Follows redirects within the origin of the URL, and no others."""

    def __init__(self, url: str, options: HttpOptions, limits: Limits = DEFAULT_LIMITS) -> None:
        self.address: HttpAddress
        self.address, parts = parse_url(url)
        self.url: str = f"{self.address.scheme}://{self.address.authority}{parts.path or '/'}"
        """The URL without parts that may be secret: user and password, and the query."""
        self.options: HttpOptions = options
        self.limits: Limits = limits
        self._basic = basic_authorization(parts)
        self._tls = options.tls
        proxy = _select_proxy(options.proxy, self.address)
        self._pool = ConnectionPool(self.address, self._tls_context, proxy, limits.http_response_head_bytes)
        self._path = parts.path or "/"
        if parts.query:
            self._path += f"?{parts.query}"
        self._credentials: dict[str, str] | None = None
        """The headers of the last credentials. None before they are first needed."""
        self._auth_lock = asyncio.Lock()
        self._heads: dict[str, bytes] = {}
        """The encoded head of requests by HTTP method, while credentials and path stay the same."""

    async def send(
        self, method: str, head: bytes = b"", body: bytes | None = None, *, is_idempotent: bool = False
    ) -> HttpResponse:
        """Send a request, with further headers in `head`. The caller closes the response.

        An idempotent request is repeated if a reused connection turns out to be closed. Raises `OSError`,
        `AuthorizationRequiredError`, and `HttpStatusError` for a redirect that is not followed.
        """
        if self._credentials is None:
            await self._renew_credentials(None)
        status = 0
        for _ in range(self.limits.http_redirects):
            response = await self._send_authorized(method, head, body, is_idempotent=is_idempotent)
            status = response.status
            if status not in (301, 302, 303, 307, 308):
                return response
            self._follow_redirect(response, method)
        raise HttpStatusError(status, f"{self.url} redirects more than {self.limits.http_redirects} times")

    async def _send_authorized(
        self, method: str, head: bytes, body: bytes | None, *, is_idempotent: bool
    ) -> HttpResponse:
        """Send a request. If the server rejects the credentials, send it once more with new ones."""
        used = self._credentials
        response = await self._send(method, head, body, is_idempotent=is_idempotent)
        if response.status not in (401, 403):
            return response
        error = await self._authorization_error(response)
        async with self._auth_lock:
            # Another request may have renewed them in the meantime.
            if used is self._credentials and not await self._renew_credentials(error):
                raise error
        response = await self._send(method, head, body, is_idempotent=is_idempotent)
        if response.status in (401, 403):
            raise await self._authorization_error(response)
        return response

    async def _send(self, method: str, head: bytes, body: bytes | None, *, is_idempotent: bool) -> HttpResponse:
        start = self._heads.get(method) or self._encode_start(method)
        if body is None:
            request = b"%b%b\r\n" % (start, head)
        else:
            request = b"%b%bcontent-length: %d\r\n\r\n%b" % (start, head, len(body), body)
        try:
            return await self._pool.send(request)
        except StaleConnectionError:
            if not is_idempotent:
                raise
            return await self._pool.send(request)

    def _encode_start(self, method: str) -> bytes:
        origin = f"{self.address.scheme}://{self.address.authority}" if self._pool.is_forwarded else ""
        headers = {"host": self.address.authority, "user-agent": "typedmcp", "accept-encoding": "identity"}
        if self._basic is not None:
            headers["authorization"] = self._basic
        if (authorization := self._pool.proxy_authorization) is not None:
            headers["proxy-authorization"] = authorization
        for name, value in (*self.options.headers.items(), *(self._credentials or {}).items()):
            headers[name.lower()] = value
        start = f"{method} {origin}{self._path} HTTP/1.1\r\n".encode() + encode_headers(headers)
        self._heads[method] = start
        return start

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def resolve(self, url: str) -> Endpoint:
        """Return the endpoint of another URL of the same server, with the same credentials.

        Raises `ValueError` for a URL of another origin.
        """
        absolute = urljoin(self.url, url)
        other = Endpoint(absolute, self.options, self.limits)
        if other.address != self.address:
            raise ValueError(f"{absolute} has a different origin from {self.url}")
        other._credentials, other._basic = self._credentials, self._basic
        return other

    def _follow_redirect(self, response: HttpResponse, method: str) -> None:
        """Send this and later requests to the location of a redirect."""
        status, location = response.status, response.headers.get("location", "")
        response.close()
        try:
            address, parts = parse_url(urljoin(self.url, location))
        except UsageError:
            raise HttpStatusError(status, f"{self.url} redirects to {location!r}, which is not a valid URL") from None
        if address != self.address:
            text = f"{self.url} redirects to {location}, another origin: connect to that if you trust it"
            raise HttpStatusError(status, text)
        if method == "POST" and status not in (307, 308):
            text = f"{self.url} redirects to {location} with {status}; a POST needs 307 or 308"
            raise HttpStatusError(status, text)
        self._path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
        self._heads.clear()

    # Credentials

    async def _renew_credentials(self, rejected: AuthorizationRequiredError | None) -> bool:
        """Get credentials from the option `auth`. Return whether there are new ones to try."""
        auth = self.options.auth
        if isinstance(auth, str):
            value: AuthValue = auth if rejected is None else None
        elif auth is None:
            value = None
        else:
            returned = auth(rejected)
            value = await returned if is_awaitable(returned) else returned
        if rejected is not None and value is None:
            return False
        headers = {"authorization": f"Bearer {value}"} if isinstance(value, str) else dict(value or {})
        for name, text in headers.items():
            _check_header(name, text)
        self._credentials = headers
        self._heads.clear()
        return True

    # Errors

    async def _authorization_error(self, response: HttpResponse) -> AuthorizationRequiredError:
        challenge = response.headers.get("www-authenticate", "")
        return AuthorizationRequiredError(response.status, challenge, await _read_error_text(response))

    async def post(self, head: bytes, body: bytes) -> None:
        """Post a message that the server accepts without a response. Raises the errors of `send` and `error_of`."""
        response = await self.send("POST", head, body)
        if response.status >= 300:
            raise await self.error_of(response)
        try:
            await response.read_all(_DRAINED_BODY_BYTES)
        except ValueError:  # longer than that: the connection is not reused
            pass
        finally:
            response.close()

    async def error_of(self, response: HttpResponse, text: str | None = None) -> Error:
        """Close a response that is not an MCP message, and return the error for its status.

        `text` is the body, if it has been read already.
        """
        text = await _read_error_text(response) if text is None else text
        response.close()
        if response.status in (401, 403):
            return AuthorizationRequiredError(response.status, response.headers.get("www-authenticate", ""), text)
        if response.status in (429, 503):
            return ServerBusyError(response.status, _parse_retry_after(response.headers.get("retry-after")), text)
        return HttpStatusError(response.status, f"{self.url} answered {response.status}", text)

    def connection_error(self, error: OSError) -> ConnectionLostError:
        """Return the error for a connection that could not be made, or ended."""
        reason = error.strerror if error.strerror and not isinstance(error, ssl.SSLError) else str(error)
        return ConnectionLostError(f"{self.url}: {reason}")

    def close_idle(self) -> None:
        """Close the idle connections."""
        self._pool.close_idle()

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


async def _read_error_text(response: HttpResponse) -> str:
    """Return the beginning of a body, for an error."""
    try:
        body = await response.read_all(_ERROR_BODY_BYTES)
    except (OSError, ValueError):
        return ""
    finally:
        response.close()
    return shorten_body(body)


def shorten_body(body: bytes) -> str:
    """Return the beginning of a body as one line of text, or an empty text for an HTML page."""
    text = " ".join(body[: 4 * _ERROR_TEXT_LENGTH].decode(errors="replace").split())
    if text[:1] == "<" or not text.isprintable():
        return ""
    return text if len(text) <= _ERROR_TEXT_LENGTH else f"{text[:_ERROR_TEXT_LENGTH]}…"


def _parse_retry_after(value: str | None) -> float | None:
    """Return the seconds that a `Retry-After` header gives, as a number or as a date."""
    if value is None:
        return None
    if value.isdigit() and value.isascii() and len(value) < 10:
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _select_proxy(option: str | None, address: HttpAddress) -> str | None:
    """Return the proxy from the option or the environment. Loopback addresses use none, and "" disables it."""
    if option is not None:
        return option or None
    if _is_loopback(address.host) or proxy_bypass(address.authority):
        return None
    proxies = getproxies_environment()
    return proxies.get(address.scheme) or proxies.get("all")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
