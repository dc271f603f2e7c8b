"""Reading requests: what the checks before and of the body need, without an application."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from typedmcp.http.access import Refused
from typedmcp.http.exchange import Receive
from typedmcp.meta import VERSION
from typedmcp.wire import Frame, examine

__all__ = [
    "Left", "check_accept", "check_length", "has_version", "is_json", "is_single", "path_of", "read_body", "read_on",
]  # fmt: skip

_SINGLE = frozenset(
    (b"host", b"origin", b"content-type", b"content-length", b"authorization", b"last-event-id", b"mcp-session-id",
     b"mcp-protocol-version", b"mcp-method", b"mcp-name")
)  # fmt: skip
"""Headers that must not be there twice: who reads the first and who reads the last would see different requests."""
_DIGITS = 18
"""How many digits a length may have."""


def path_of(scope: Mapping[str, Any]) -> str:
    """The path below where the application is mounted, without a slash at its end."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if root and path.startswith(root):
        path = path[len(root) :]
    return path.rstrip("/") or "/"


@lru_cache(256)
def is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


def check_accept(headers: Mapping[bytes, bytes], *needed: bytes) -> None:
    """Raises `Refused` where a client does not take what it may be sent."""
    taken = {_range(each) for each in headers.get(b"accept", b"*/*").lower().split(b",")}
    for media in needed:
        if not taken & {b"*/*", media.partition(b"/")[0] + b"/*", media}:
            raise Refused(406, f"Accept: {', '.join(each.decode() for each in needed)} is needed")


def _range(accepted: bytes) -> bytes:
    media, *parameters = (part.strip() for part in accepted.split(b";"))
    return b"" if any(p.replace(b" ", b"") in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000") for p in parameters) else media


def is_single(name: bytes) -> bool:
    return name in _SINGLE or name.startswith(b"mcp-param-")


class Left(Exception):  # noqa: N818  # named for the state
    """The client has left before it had sent all."""


def check_length(length: bytes, limit: int) -> None:
    """Raises `Refused` for a body that is going to be beyond the limit."""
    if len(length) > _DIGITS or (length.isdigit() and int(length) > limit):
        raise _too_long(limit)


async def read_body(headers: Mapping[bytes, bytes], receive: Receive, limit: int) -> bytes:
    """The body of a request. Raises `Refused` for one beyond the limit, and `Left`."""
    check_length(headers.get(b"content-length", b"0"), limit)
    return await read_on(await receive(), receive, limit)


async def read_on(message: dict[str, Any], receive: Receive, limit: int) -> bytes:
    """The body that a message begins. Raises `Refused` for one beyond the limit, and `Left`."""
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        parts, size = [body], len(body)
        while message.get("more_body") and size <= limit:
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
        body = b"".join(parts)
    if message["type"] == "http.disconnect":
        raise Left
    if len(body) > limit:
        raise _too_long(limit)
    return body


def _too_long(limit: int) -> Refused:
    return Refused(413, f"the body is longer than {limit} bytes")


def has_version(body: bytes) -> bool:
    """Whether a message says its revision itself."""
    frame = examine(body)
    if not isinstance(frame, Frame):
        return False
    params: Any = frame.value.get("params", {})
    meta: Any = params.get("_meta")
    return isinstance(meta, dict) and VERSION in meta
