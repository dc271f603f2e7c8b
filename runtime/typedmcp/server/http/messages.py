"""HTTP messages: the types of the ASGI interface, reading requests, and responses that are complete when sent.

https://asgi.readthedocs.io/en/stable/specs/main.html
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from typedmcp.errors import INVALID_REQUEST, PARSE_ERROR, HeaderMismatchError
from typedmcp.frames import OnFrame
from typedmcp.limits import Limits
from typedmcp.protocol.budgets import Hold
from typedmcp.protocol.codec import encode_error
from typedmcp.protocol.framing import Frame, RequestId, classify, find_request_id
from typedmcp.protocol.meta import VERSION
from typedmcp.server.principal import Principal
from typedmcp.transports.concurrency import limit_time
from typedmcp_schemas.nesting import is_too_deep, too_deep

__all__ = [
    "JSON_HEADER", "LARGE_BODY_BYTES", "NOT_A_SESSION", "PIECE_BYTES", "REQUEST_SCOPE", "RETRY_LATER",
    "TOO_MANY_STREAMS", "AsgiMessage", "ClientDisconnect", "HTTPException", "Headers", "RawHeaders", "Receive", "Scope",
    "Send", "WriteNow", "accepts", "body_too_deep", "cache_short_values", "check_accept", "check_length",
    "check_mirrors", "client_at", "client_of", "client_of_principal", "has_version", "headers_as_text", "join_headers",
    "path_of", "read_json_body", "read_rest", "respond", "respond_unavailable", "too_many_bytes", "wait_for_disconnect",
]  # fmt: skip

Scope: TypeAlias = MutableMapping[str, Any]
"""The description of one connection."""
AsgiMessage: TypeAlias = MutableMapping[str, Any]
"""An event of a connection."""
Receive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
"""Waits for the next event of a client."""
Send: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
"""Sends an event to the client. Raises `OSError` if the client has disconnected."""


class WriteNow(Protocol):
    """Sends a response with status 200: JSON, or the parts of a stream of events."""

    def __call__(self, body: bytes, *, is_stream: bool = False, more: bool = False) -> bool:
        """Send JSON or events, which others follow if `more`. Return False if `send` has to do it, since it waits."""
        ...


RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Headers as ASGI has them: names in lower case, in the order of the request."""
Headers: TypeAlias = Mapping[bytes, bytes]
"""Headers by name, the values of repeated ones joined."""
T = TypeVar("T")


_SINGLE = frozenset(
    (b"host", b"origin", b"content-type", b"content-length", b"authorization", b"dpop", b"last-event-id",
     b"mcp-session-id")
)  # fmt: skip
"""Headers that must not be repeated: readers of the first and of the last value would see different requests."""
_MIRRORS = (b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-param-")
"""The beginnings of headers that must not be repeated either, since they repeat a value of the body."""
_MAX_LENGTH_DIGITS = 18
_CACHED_VALUES = 256
_CACHED_VALUE_BYTES = 256


class ClientDisconnect(Exception):  # noqa: N818  # control flow, named as in Starlette
    """The client has disconnected before the end of its request."""


def path_of(scope: Scope) -> str:
    """Return the path below the one at which the application is mounted, without a slash at its end."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if root and path.startswith(root):
        path = path[len(root) :]
    return path.rstrip("/") or "/"


def join_headers(headers: RawHeaders, limits: Limits) -> dict[bytes, bytes]:
    """Return headers by name, the values of repeated ones joined.

    Raises `HTTPException` for headers beyond the limits, and for a header that must not be repeated. The headers that
    mirror the body are left to `check_mirrors`, whose error has the id of the request.
    """
    size = sum(len(name) + len(value) for name, value in headers)
    if len(headers) > limits.http_headers or size > limits.http_header_bytes:
        raise HTTPException(
            431, f"too many headers: at most {limits.http_headers}, of {limits.http_header_bytes} bytes in total"
        )
    joined: dict[bytes, bytes] = {}
    for name, raw in headers:
        value = raw.strip(b" \t")
        if name not in joined:
            joined[name] = value
        elif name in _SINGLE:
            raise HTTPException(400, f"the header {name.decode('latin-1')} must not be repeated")
        else:
            joined[name] += b", " + value
    return joined


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until a client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


def headers_as_text(headers: Headers) -> dict[str, str]:
    """Return headers as handlers get them."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}


def check_mirrors(headers: RawHeaders, body: bytes) -> None:
    """Raise `HTTPException` if a header that mirrors the body is repeated."""
    mirrors = [name for name, _ in headers if name.startswith(_MIRRORS)]
    if len({*mirrors}) < len(mirrors):
        name = next(name for at, name in enumerate(mirrors) if name in mirrors[:at])
        frame = classify(body)
        id = frame.id if isinstance(frame, Frame) and frame.method is not None else None
        text = f"the header {name[:100].decode('latin-1')!a} must not be repeated"
        raise HTTPException(400, text, code=HeaderMismatchError.CODE, id=id)


def check_accept(headers: Headers, *required: bytes) -> None:
    """Raise `HTTPException` unless the header `Accept` allows all media types of the response."""
    if not all(accepts(headers, media) for media in required):
        names = ", ".join(each.decode() for each in required)
        raise HTTPException(406, f"the header Accept must name {names}")


def accepts(headers: Headers, media: bytes) -> bool:
    """Return whether the header `Accept` allows a media type."""
    ranges = _media_ranges(headers.get(b"accept", b"*/*"))
    return media in ranges or not ranges.isdisjoint((b"*/*", media.partition(b"/")[0] + b"/*"))


def cache_short_values(parse: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Return a function of header values whose results are cached: of 256 values, each of 256 bytes at most.

    Longer values are parsed each time, so that clients cannot fill the cache with as much as their headers may have.
    """
    cached = lru_cache(_CACHED_VALUES)(parse)
    return lambda value: (cached if len(value) <= _CACHED_VALUE_BYTES else parse)(value)


@cache_short_values
def _media_ranges(accept: bytes) -> frozenset[bytes]:
    """Return the media ranges that a header `Accept` allows."""
    return frozenset(_media_range(each) for each in accept.lower().split(b","))


def _media_range(accepted: bytes) -> bytes:
    media, *parameters = (part.strip() for part in accepted.split(b";"))
    return b"" if any(p.replace(b" ", b"") in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000") for p in parameters) else media


async def read_json_body(headers: Headers, receive: Receive, limits: Limits, hold: Hold) -> bytes:
    """Return the body of a POST, which counts in `hold` if it is large.

    Raises `HTTPException` or `ClientDisconnect`.
    """
    if not _is_json(headers.get(b"content-type", b"")):
        raise HTTPException(415, "the header Content-Type must be application/json")
    check_length(headers.get(b"content-length", b"0"), limits.http_body_bytes)
    return await read_rest(await receive(), receive, limits, hold)


@cache_short_values
def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


def check_length(length: bytes, limit: int) -> None:
    """Raise `HTTPException` if the header `Content-Length` announces a body beyond the limit."""
    if len(length) > _MAX_LENGTH_DIGITS or (length.isdigit() and int(length) > limit):
        raise _body_too_long(limit)


async def read_rest(message: AsgiMessage, receive: Receive, limits: Limits, hold: Hold) -> bytes:
    """Return the body that begins with a message, and counts in `hold` if it is large.

    Raises `HTTPException` or `ClientDisconnect`.
    """
    limit = limits.http_body_bytes
    body: bytes = message.get("body", b"")
    _count_body(len(body), hold)
    if message.get("more_body"):
        parts, size = [body], len(body)
        while message.get("more_body") and size <= limit:
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            _count_body(size, hold)
        body = b"".join(parts)
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    if len(body) > limit:
        raise _body_too_long(limit)
    if is_too_deep(body, limits.message_depth):
        raise body_too_deep(body, limits)
    return body


def body_too_deep(body: bytes, limits: Limits) -> HTTPException:
    """Return the error for a body with more levels of arrays and objects than the limit."""
    text = f"{too_deep(limits.message_depth)} (message_depth)"
    return HTTPException(400, text, code=PARSE_ERROR, id=find_request_id(body))


def _count_body(size: int, hold: Hold) -> None:
    """Count the bytes of a body that have arrived, if they are many. Raises `HTTPException` if there is no room."""
    if size > LARGE_BODY_BYTES and not hold.take(size - hold.size):
        raise too_many_bytes()


def too_many_bytes() -> HTTPException:
    """Return the error for a client whose requests in progress hold as many bytes as they may."""
    return HTTPException(503, "too many bytes of requests are in progress: try again later", RETRY_LATER)


def _body_too_long(limit: int) -> HTTPException:
    return HTTPException(413, f"the body is too long: at most {limit} bytes")


def has_version(body: bytes) -> bool:
    """Return whether the `_meta` of a message names a protocol revision."""
    frame = classify(body)
    if not isinstance(frame, Frame):
        return False
    params: Any = frame.value.get("params", {})
    meta: Any = params.get("_meta")
    return isinstance(meta, dict) and VERSION in meta


LARGE_BODY_BYTES: Final = 64 << 10
"""A body of more bytes counts in the budget of its client, and does not take the hot path."""
_DISCARD_SECONDS: Final = 1.0
"""Seconds for which the rest of a body that is too long is read."""
PIECE_BYTES: Final = 1 << 20
"""Bytes of a large response that are sent at once."""

JSON_HEADER: Final = (b"content-type", b"application/json")
"""The header of a response whose body is JSON."""
_NO_BODY: Final = (b"content-length", b"0")
RETRY_LATER: Final = [(b"retry-after", b"10")]
"""The header of a response to a request that may succeed in ten seconds."""

TOO_MANY_STREAMS: Final = "too many open event streams: the limit is reached"
NOT_A_SESSION: Final = "the session does not exist, or has ended"


class HTTPException(Exception):  # noqa: N818  # the name that web frameworks give it
    """Rejects a request with an HTTP response: a status, a JSON-RPC error, and headers."""

    def __init__(
        self,
        status: int,
        text: str,
        headers: RawHeaders = (),
        *,
        code: int = INVALID_REQUEST,
        id: RequestId | None = None,
    ) -> None:
        super().__init__(text)
        self.status: int = status
        self.headers: RawHeaders = headers
        self.body: bytes = encode_error(id, code, text)
        """The JSON-RPC error."""
        self.on_frame: OnFrame | None = None
        """Called with the error when it is sent, if there is a sink for the request."""


async def respond(
    send: Send,
    status: int,
    body: bytes = b"",
    headers: list[tuple[bytes, bytes]] | None = None,
    on_frame: OnFrame | None = None,
    media: RawHeaders = (JSON_HEADER,),
    receive: Receive | None = None,
) -> None:
    """Send a whole response. The body, if there is one, is described by `media`, and reported to `on_frame`.

    With `receive`, the rest of the request is read for a moment before the response ends, and dropped: a client that is
    still writing would lose the response if the connection were closed.
    """
    if on_frame is not None and body:
        on_frame("server", body)
    head = [*media, (b"content-length", b"%d" % len(body))] if body else [] if status == 204 else [_NO_BODY]
    try:
        await send({"type": "http.response.start", "status": status, "headers": head + headers if headers else head})
        if len(body) > PIECE_BYTES:
            body = await _send_pieces(send, body)
        if receive is not None:
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await limit_time(_DISCARD_SECONDS, _discard(receive))
            body = b""
        await send({"type": "http.response.body", "body": body})
    except OSError:  # the client has disconnected
        pass


async def _discard(receive: Receive) -> None:
    while (await receive()).get("more_body"):
        pass


async def _send_pieces(send: Send, body: bytes) -> bytes:
    """Send all of a large body but its last piece, and return that. Other requests get their turns in between."""
    last = (len(body) - 1) // PIECE_BYTES * PIECE_BYTES
    for start in range(0, last, PIECE_BYTES):
        await send({"type": "http.response.body", "body": body[start : start + PIECE_BYTES], "more_body": True})
        await asyncio.sleep(0)
    return body[last:]


async def respond_unavailable(send: Send, text: str) -> None:
    """Send a response with status 503 and `Retry-After`."""
    await respond(send, 503, encode_error(None, INVALID_REQUEST, text), RETRY_LATER)


REQUEST_SCOPE: ContextVar[Scope] = ContextVar("REQUEST_SCOPE")
"""The scope of the request that a task serves. The hot path does not set it, which would cost 3 % of a request."""


def client_of(principal: str | None) -> str | None:
    """Return the client of the current request: its principal, by key, or its address. None if neither is known."""
    if principal is not None:
        return f"principal {principal}"
    address = REQUEST_SCOPE.get({}).get("client")
    return client_at(address[0]) if address else None


def client_of_principal(principal: Principal | None) -> str | None:
    """Return the client of the current request, which may have credentials."""
    return client_of(None if principal is None else principal.key)


@lru_cache(1024)
def client_at(address: str) -> str:
    """Return the client at an address, which is a network of 64 bits for IPv6: one client can have all of it."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:  # a socket's path, or a name that a proxy has made
        return f"address {address}"
    if isinstance(parsed, IPv6Address):
        return f"address {parsed.ipv4_mapped or IPv6Network((parsed.packed[:8] + bytes(8), 64))}"
    return f"address {address}"
