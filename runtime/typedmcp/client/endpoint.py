"""The URL of a server: requests to it, with what belongs into each, and what its statuses mean."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import TypeAlias
from urllib.parse import urljoin, urlunsplit
from urllib.request import getproxies_environment, proxy_bypass

from typedmcp.client.http1 import Address, Pool, Response, Stale, address_of, basic
from typedmcp.dispatch import is_awaitable
from typedmcp.errors import AuthorizationRequired, ConnectionLost, Error, HttpStatusError, ServerBusy, UsageError

__all__ = ["Credentials", "Endpoint", "HttpOptions", "lines"]

Given: TypeAlias = "str | Mapping[str, str] | None"

Credentials: TypeAlias = "str | Callable[[AuthorizationRequired | None], Given | Awaitable[Given]]"
"""A token, or what gives one or the headers that stand for it: asked with None first, then with what the server said
to the last one. None: there is none."""

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

_OURS = {
    "accept", "accept-encoding", "connection", "content-length", "content-type", "last-event-id", "mcp-method",
    "mcp-name", "mcp-protocol-version", "mcp-session-id", "transfer-encoding",
}  # fmt: skip
"""Headers that say how a request is made; nobody else may."""

_REDIRECTS = 5
_TOLD = 500
"""How much of a body without meaning an error tells."""

_BODY = 1 << 16
"""How much of one is read."""


@dataclass(frozen=True)
class HttpOptions:
    """How requests are made. `connect` says what each means."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    auth: Credentials | None = None
    proxy: str | None = None
    tls: ssl.SSLContext | None = None
    reconnects: int = 5

    def __post_init__(self) -> None:
        """Raises `UsageError` for what makes no sense."""
        for name, value in self.headers.items():
            _check(name, value)
            if name.lower() in _OURS or name.lower().startswith("mcp-param-"):
                raise UsageError(f"the header {name} is the protocol's: it cannot be given")
        if self.reconnects < 0:
            raise UsageError(f"reconnects must not be negative, they are {self.reconnects}")
        if self.proxy:
            address_of(self.proxy)


def _check(name: str, value: object) -> None:
    if not isinstance(value, str) or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
        raise UsageError(f"{name!r} is no header, or has a value that is none")


def lines(headers: Mapping[str, str]) -> bytes:
    """Headers as they go over the wire. Raises `UsageError` for one that would be more than one."""
    text = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if text.count("\r") != len(headers) or text.count("\n") != len(headers) or "\0" in text:
        raise UsageError(f"a header must not have line breaks; one of these has some: {', '.join(map(repr, headers))}")
    return text.encode("latin-1", "replace")


class Endpoint:
    """Makes requests to one URL. Follows redirects within its origin, and none that lead away from it."""

    def __init__(self, url: str, options: HttpOptions) -> None:
        self.address: Address
        self.address, parts = address_of(url)
        self.url: str = f"{self.address.scheme}://{self.address.authority}{parts.path or '/'}"
        """Without what may be secret: name and password, and the query."""
        self.options: HttpOptions = options
        self._basic = basic(parts)
        self._tls = options.tls
        self._pool = Pool(self.address, self._context, _proxy(options.proxy, self.address))
        self._target = parts.path or "/"
        if parts.query:
            self._target += f"?{parts.query}"
        self._credentials: dict[str, str] | None = None
        """What the last token stands in; None before anybody was asked."""
        self._asking = asyncio.Lock()
        self._heads: dict[str, bytes] = {}
        """How requests begin, by their method, as long as nothing of that changes."""

    async def send(self, method: str, head: bytes = b"", body: bytes | None = None, *, again: bool = False) -> Response:
        """Make a request, with more headers in `head`; the response up to its body, which has to be closed.

        With `again` it does no harm to make it twice, where a connection ended at the wrong time. Raises `OSError`,
        `AuthorizationRequired`, and `HttpStatusError` for a redirect that is not followed.
        """
        if self._credentials is None:
            await self._ask(None)
        status = 0
        for _ in range(_REDIRECTS):
            response = await self._authorized(method, head, body, again=again)
            status = response.status
            if status not in (301, 302, 303, 307, 308):
                return response
            self._move(response, method)
        raise HttpStatusError(status, f"{self.url} redirects again and again")

    async def _authorized(self, method: str, head: bytes, body: bytes | None, *, again: bool) -> Response:
        """Make a request; where the server does not accept who asks, once more with something new."""
        used = self._credentials
        response = await self._send(method, head, body, again=again)
        if response.status not in (401, 403):
            return response
        refused = await self._refusal(response)
        async with self._asking:
            if used is self._credentials and not await self._ask(refused):  # nobody else got something new meanwhile
                raise refused
        response = await self._send(method, head, body, again=again)
        if response.status in (401, 403):
            raise await self._refusal(response)
        return response

    async def _send(self, method: str, head: bytes, body: bytes | None, *, again: bool) -> Response:
        start = self._heads.get(method) or self._head(method)
        if body is None:
            request = b"%b%b\r\n" % (start, head)
        else:
            request = b"%b%bcontent-length: %d\r\n\r\n%b" % (start, head, len(body), body)
        try:
            return await self._pool.send(request)
        except Stale:
            if not again:
                raise
            return await self._pool.send(request)

    def _head(self, method: str) -> bytes:
        target = f"{self.address.scheme}://{self.address.authority}" if self._pool.is_forwarded else ""
        headers = {"host": self.address.authority, "user-agent": "typedmcp", "accept-encoding": "identity"}
        if self._basic is not None:
            headers["authorization"] = self._basic
        if (known := self._pool.proxy_authorization) is not None:
            headers["proxy-authorization"] = known
        for name, value in (*self.options.headers.items(), *(self._credentials or {}).items()):
            headers[name.lower()] = value
        made = f"{method} {target}{self._target} HTTP/1.1\r\n".encode() + lines(headers)
        self._heads[method] = made
        return made

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def near(self, url: str) -> Endpoint:
        """Another endpoint of the same server, with the same credentials.

        Raises `ValueError` for a URL of another origin.
        """
        whole = urljoin(self.url, url)
        other = Endpoint(whole, self.options)
        if other.address != self.address:
            raise ValueError(f"{whole} is not of the origin of {self.url}")
        other._credentials, other._basic = self._credentials, self._basic
        return other

    def _move(self, response: Response, method: str) -> None:
        """Take what a redirect says for the URL from now on."""
        status, location = response.status, response.headers.get("location", "")
        response.close()
        try:
            address, parts = address_of(urljoin(self.url, location))
        except UsageError:
            raise HttpStatusError(status, f"{self.url} redirects to {location!r}, which is no URL") from None
        if address != self.address:
            text = f"{self.url} redirects to {location}, another origin: connect to that if you trust it"
            raise HttpStatusError(status, text)
        if method == "POST" and status not in (307, 308):
            raise HttpStatusError(status, f"{self.url} redirects to {location} with {status}, which is not for a POST")
        self._target = urlunsplit(("", "", parts.path or "/", parts.query, ""))
        self._heads.clear()

    # Who asks

    async def _ask(self, refused: AuthorizationRequired | None) -> bool:
        """Get what says who asks. Whether there is something new to try."""
        auth = self.options.auth
        if isinstance(auth, str):
            given: Given = auth if refused is None else None
        elif auth is None:
            given = None
        else:
            asked = auth(refused)
            given = await asked if is_awaitable(asked) else asked
        if refused is not None and given is None:
            return False
        headers = {"authorization": f"Bearer {given}"} if isinstance(given, str) else dict(given or {})
        for name, value in headers.items():
            _check(name, value)
        self._credentials = headers
        self._heads.clear()
        return True

    # What statuses mean

    async def _refusal(self, response: Response) -> AuthorizationRequired:
        challenge = response.headers.get("www-authenticate", "")
        return AuthorizationRequired(response.status, challenge, await told(response))

    async def refusal(self, response: Response, text: str | None = None) -> Error:
        """The error for a response that is none of the protocol's. Closes it.

        `text` is its body, where that has been read.
        """
        text = await told(response) if text is None else text
        response.close()
        if response.status in (401, 403):
            return AuthorizationRequired(response.status, response.headers.get("www-authenticate", ""), text)
        if response.status in (429, 503):
            return ServerBusy(response.status, retry_after(response.headers.get("retry-after")), text)
        return HttpStatusError(response.status, f"{self.url} answered {response.status}", text)

    def lost(self, error: OSError) -> ConnectionLost:
        """The error for a connection that could not be made, or ended."""
        reason = error.strerror if error.strerror and not isinstance(error, ssl.SSLError) else str(error)
        return ConnectionLost(f"{self.url}: {reason}")

    def rest(self) -> None:
        """End the connections that nothing is under way on."""
        self._pool.rest()

    def close(self) -> None:
        """End all connections."""
        self._pool.close()


async def told(response: Response) -> str:
    """The beginning of what a response without meaning says, for an error."""
    try:
        body = await response.body(_BODY)
    except (OSError, ValueError):
        return ""
    finally:
        response.close()
    return shortened(body)


def shortened(body: bytes) -> str:
    """A body as one line of text, unless it is a page for a browser."""
    text = " ".join(body[: 4 * _TOLD].decode(errors="replace").split())
    if text[:1] == "<" or not text.isprintable():
        return ""
    return text if len(text) <= _TOLD else f"{text[:_TOLD]}…"


def retry_after(value: str | None) -> float | None:
    """The seconds that a `Retry-After` header says, which may be a number or a date."""
    if value is None:
        return None
    if value.isdigit() and value.isascii() and len(value) < 10:
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _proxy(given: str | None, address: Address) -> str | None:
    """The proxy to use: the one that was given, or the environment's; none to this machine, or where "" says so."""
    if given is not None:
        return given or None
    if _is_here(address.host) or proxy_bypass(address.authority):
        return None
    known = getproxies_environment()
    return known.get(address.scheme) or known.get("all")


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
