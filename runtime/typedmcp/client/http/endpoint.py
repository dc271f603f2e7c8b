"""The URL of a server: requests to it, with their headers and credentials, and the meaning of statuses."""

from __future__ import annotations

import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urljoin, urlunsplit

from typedmcp.client.http.authorization import MAX_RESENDS, Credentials, CredentialsManager, check_header
from typedmcp.client.requests.heads import encode_headers
from typedmcp.errors import (
    AuthorizationRequiredError,
    ConnectionLostError,
    Error,
    HttpStatusError,
    ServerBusyError,
    UsageError,
)
from typedmcp.frames import OnFrame
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.protocol.option_checks import check_flag
from typedmcp.transports.deadlines import Timer
from typedmcp.transports.http1 import (
    ConnectionPool,
    HttpAddress,
    HttpResponse,
    StaleConnectionError,
    basic_authorization,
    parse_url,
)
from typedmcp.transports.proxies import check_proxy, select_proxy
from typedmcp.transports.redaction import redact_url

if TYPE_CHECKING:
    from typedmcp.auth import Authorization, Authorizer, RequestSigner

__all__ = ["Credentials", "Endpoint", "HttpOptions", "shorten_body"]

_RESERVED_HEADERS: Final = frozenset(
    {
        "accept", "accept-encoding", "connection", "content-length", "content-type", "last-event-id", "mcp-method",
        "mcp-name", "mcp-protocol-version", "mcp-session-id", "transfer-encoding",
    }
)  # fmt: skip
"""Headers that the protocol sets on every request."""

_ERROR_TEXT_LENGTH: Final = 500
"""Characters of a body that an error quotes."""

_LARGE_BODY_BYTES: Final = 1 << 16
"""Bytes of a body above which it is sent apart from the head of its request."""

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
    sse: bool = False

    def __post_init__(self) -> None:
        if not hasattr(self.headers, "items"):
            raise UsageError(f"headers must be a mapping of names to values, not {type(self.headers).__name__}")
        for name, value in self.headers.items():
            check_header(name, value)
            if name.lower() in _RESERVED_HEADERS or name.lower().startswith("mcp-param-"):
                raise UsageError(f"headers: {name} is set by the protocol and cannot be an option")
        if self.reconnects < 0:
            raise UsageError(f"reconnects must not be negative, got {self.reconnects}")
        check_flag("sse", self.sse)
        if self.proxy:
            check_proxy(self.proxy)


class Endpoint:
    """Sends requests to one URL. Follows redirects within the origin of the URL, and no others."""

    def __init__(self, url: str, options: HttpOptions, limits: Limits = DEFAULT_LIMITS) -> None:
        self.address: HttpAddress
        self.address, parts = parse_url(url)
        self.url: str = f"{self.address.scheme}://{self.address.authority}{parts.path or '/'}"
        """The URL without parts that may be secret: user and password, and the query."""
        self.options: HttpOptions = options
        self.limits: Limits = limits
        self._basic = basic_authorization("authorization", parts)
        self._tls = options.tls
        proxy = select_proxy(options.proxy, self.address)
        self.pool: ConnectionPool = ConnectionPool(
            self.address, self._tls_context, proxy, limits.http_response_head_bytes
        )
        self._path = parts.path or "/"
        if parts.query:
            self._path += f"?{parts.query}"
        self.credentials: CredentialsManager = CredentialsManager(
            options.auth, self._start_authorization(), self._on_credentials
        )
        self.on_new_credentials: Callable[[], None] | None = None
        """Called when credentials have replaced others."""
        self.on_frame: OnFrame | None = None
        """Called with each message in both directions."""
        self._heads: dict[str, bytes] = {}
        """The encoded head of requests by HTTP method, while credentials and path stay the same."""

    async def send(
        self, method: str, head: bytes = b"", body: bytes | None = None, timer: Timer | None = None
    ) -> HttpResponse:
        """Send a request, with further headers in `head`. The caller closes the response.

        `timer` is stopped while a person signs in.

        A GET is repeated if a reused connection turns out to be closed; for other methods, `StaleConnectionError` says
        so. Also raises other `OSError`s, `AuthorizationRequiredError`, and `HttpStatusError` for a redirect that is not
        followed.
        """
        known = self.credentials
        if known.headers is None or (known.renew_at is not None and time.time() >= known.renew_at):
            await known.prepare()
        if body is not None and self.on_frame is not None:
            self.on_frame("client", body)
        status = 0
        for _ in range(self.limits.http_redirects):
            used = known.headers
            response = await self._send(method, head, body)
            if response.status < 300:
                return response
            if response.status in (401, 403):
                response = await self._send_authorized(method, head, body, timer, used, response)
            status = response.status
            if status not in (301, 302, 303, 307, 308):
                return response
            self._follow_redirect(response, method)
        raise HttpStatusError(status, f"{self.url} redirects more than {self.limits.http_redirects} times")

    async def _send_authorized(
        self,
        method: str,
        head: bytes,
        body: bytes | None,
        timer: Timer | None,
        used: dict[str, str] | None,
        response: HttpResponse,
    ) -> HttpResponse:
        """Send a request again, with new credentials, after a response that rejected those that were used."""
        attempts = self.credentials.attempts
        for resends in range(MAX_RESENDS):
            error = _authorization_error(response, await _read_error_text(response))
            is_own = await self.credentials.replace(used, error, timer, is_retry=resends > 0) if attempts else None
            if is_own is None:
                raise error
            attempts -= is_own
            used = self.credentials.headers
            response = await self._send(method, head, body)
            if response.status not in (401, 403):
                return response
        raise _authorization_error(response, await _read_error_text(response))

    def _send(self, method: str, head: bytes, body: bytes | None) -> Awaitable[HttpResponse]:
        signer = self.credentials.signer
        if signer is not None:
            return self._send_signed(method, head, body, signer)
        # Only a GET may be sent again: a message must not be, with its id.
        return self.pool.send(*self._encode(method, head, body), is_repeatable=method == "GET")

    async def _send_signed(self, method: str, head: bytes, body: bytes | None, signer: RequestSigner) -> HttpResponse:
        """Send a request with a proof of its own. Send it again, with another one, if the server wants its nonce."""
        url = urljoin(self.url, self._path)
        nonce = signer.nonce_of(url)

        async def send() -> HttpResponse:
            proof = b"%bDPoP: %b\r\n" % (head, signer.sign(method, url).encode())
            response = await self.pool.send(*self._encode(method, proof, body))
            signer.keep_nonce(url, response.headers.get("dpop-nonce"))
            return response

        try:
            response = await send()
        except StaleConnectionError:
            if method != "GET":
                raise
            response = await send()
        challenge = response.headers.get("www-authenticate", "")
        if response.status != 401 or "use_dpop_nonce" not in challenge or signer.nonce_of(url) == nonce:
            return response
        await _read_error_text(response)
        return await send()

    def _encode(self, method: str, head: bytes, body: bytes | None) -> tuple[bytes, bytes]:
        """Return the beginning of a request, and the rest, which is empty unless the body is too large to be copied."""
        start = self._heads.get(method) or self._encode_start(method)
        if body is None:
            return b"%b%b\r\n" % (start, head), b""
        # Some proxies do not know the name in lower case, and add a second length.
        if len(body) > _LARGE_BODY_BYTES:
            return b"%b%bContent-Length: %d\r\n\r\n" % (start, head, len(body)), body
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (start, head, len(body), body), b""

    def _encode_start(self, method: str) -> bytes:
        headers = {"host": self.address.authority, "user-agent": "typedmcp", "accept-encoding": "identity"}
        headers |= self._basic | self.pool.headers
        for name, value in (*self.options.headers.items(), *(self.credentials.headers or {}).items()):
            headers[name.lower()] = value
        start = f"{method} {self.pool.origin}{self._path} HTTP/1.1\r\n".encode() + encode_headers(headers)
        self._heads[method] = start
        return start

    def _start_authorization(self) -> Authorization | None:
        """Start the flow of the option `auth`, if it is one. Raises `UsageError` for plain HTTP to another machine."""
        auth = self.options.auth
        if auth is None or isinstance(auth, str) or not hasattr(auth, "start"):
            return None
        from typedmcp.auth import ProtectedServer
        from typedmcp.fetch import FetchClient

        fetch = FetchClient(self._tls_context, self.limits, proxy=self.options.proxy).fetch
        server = ProtectedServer(self.url, fetch, lambda text: self.credentials.tolerate(text))
        return cast("Authorizer", auth).start(server)

    def _on_credentials(self, is_change: bool) -> None:
        self._heads.clear()
        if is_change and self.on_new_credentials is not None:
            self.on_new_credentials()

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
            raise ValueError(f"{redact_url(absolute)} has a different origin from {self.url}")
        other.credentials.headers, other._basic = self.credentials.headers, self._basic
        other.credentials.signer = self.credentials.signer
        other.on_frame = self.on_frame
        return other

    def _follow_redirect(self, response: HttpResponse, method: str) -> None:
        """Send this and later requests to the location of a redirect."""
        status, location = response.status, response.headers.get("location", "")
        response.close()
        shown = redact_url(location)
        try:
            address, parts = parse_url(urljoin(self.url, location))
        except UsageError:
            raise HttpStatusError(status, f"{self.url} redirects to {shown!r}, which is not a valid URL") from None
        if address != self.address:
            text = f"{self.url} redirects to {shown}, another origin: connect to that if you trust it"
            raise HttpStatusError(status, text)
        if method == "POST" and status not in (307, 308):
            raise HttpStatusError(status, f"{self.url} redirects to {shown} with {status}; a POST needs 307 or 308")
        self._path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
        self._heads.clear()

    # Errors

    async def post(self, head: bytes, body: bytes, timer: Timer | None = None) -> None:
        """Post a message that the server accepts without a response. Raises the errors of `send` and `error_of`."""
        try:
            response = await self.send("POST", head, body, timer)
        except StaleConnectionError:  # a notification, or a response, does no harm if it arrives twice
            response = await self.send("POST", head, body, timer)
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
            return _authorization_error(response, text)
        if response.status in (429, 503):
            return ServerBusyError(response.status, _parse_retry_after(response.headers.get("retry-after")), text)
        return HttpStatusError(response.status, f"{self.url} answered {response.status}", text)

    def connection_error(self, error: OSError) -> ConnectionLostError:
        """Return the error for a connection that could not be made, or ended."""
        if isinstance(error, ConnectionRefusedError):
            reason = "no server listens there: the connection was refused"
        elif isinstance(error, ssl.SSLError):
            is_plain = error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
            reason = f"{error}{'; the server does not seem to speak TLS: try http://' if is_plain else ''}"
        else:
            reason = error.strerror or str(error)
        return ConnectionLostError(f"{self.url}: {reason}")


def _authorization_error(response: HttpResponse, text: str) -> AuthorizationRequiredError:
    return AuthorizationRequiredError(response.status, response.headers.get("www-authenticate", ""), text)


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
