"""Heads of requests whose meaning is known: the same bytes need no second parse and no second check.

A client sends the same head with every call of a tool, so what the HTTP parser and the checks before the body found in
one holds for the next. Only heads that passed all these checks are kept. Nothing else about a request is assumed: its
credentials and its session are looked up each time.
"""

from __future__ import annotations

from typing import Final

from typedmcp.server.http.asgi import HeaderTemplate, RawHeaders, Scope

__all__ = ["KnownHead", "KnownHeads", "encode_headers"]

_MAX_HEADS: Final = 2048
"""Heads that are kept. A client has several for one tool, since the length of the body is part of the head."""
_MAX_HEAD_BYTES: Final = 4096
_MAX_HEADERS: Final = 32
"""A head that is longer, or has more headers, is not kept. So each takes at most 15 KiB, and all of them 30 MiB."""
_UNKNOWABLE: Final = frozenset((b"transfer-encoding", b"expect", b"upgrade", b"te", b"trailer", b"forwarded"))
"""Headers that change how the rest of a request is read, or who has sent it."""
_VARYING: Final = frozenset((b"traceparent", b"tracestate", b"baggage", b"dpop", b"x-request-id"))
"""Headers that differ in each request: a head that has one would not come again, and would displace another one."""
_FORWARDED: Final = b"x-forwarded-"
"""The beginning of the headers with which a proxy names the client. uvicorn changes the scope by them."""


def encode_headers(headers: RawHeaders) -> bytes:
    """Return headers as HTTP/1.1 has them."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


class KnownHead:
    """The meaning of a head, up to and including its empty line."""

    __slots__ = ("extra", "later", "length", "scope", "template")

    def __init__(self, template: HeaderTemplate, scope: Scope, length: int) -> None:
        self.template: HeaderTemplate = template
        """The template that the headers match."""
        self.scope: Scope = scope
        """The scope of the first request with this head."""
        self.length: int = length
        """The length of the body in bytes."""
        self.extra: bytes = encode_headers(template.response_headers)
        """Further headers of the responses."""
        self.later: int = 0
        """The next requests whose tasks do not begin at once."""


class KnownHeads:
    """The heads that one server knows. The oldest ones are forgotten first."""

    def __init__(self) -> None:
        self.by_bytes: dict[bytes, KnownHead] = {}

    def remember(self, head: bytes, known: KnownHead) -> None:
        """Keep a head, unless its bytes alone do not say where the request ends and who has sent it."""
        if not _is_knowable(head, known.scope["headers"]):
            return
        if len(self.by_bytes) >= _MAX_HEADS:
            del self.by_bytes[next(iter(self.by_bytes))]
        self.by_bytes[head] = known


def _is_knowable(head: bytes, headers: RawHeaders) -> bool:
    lines = len(headers) + 2  # the request line, the headers, and the empty line
    if len(head) > _MAX_HEAD_BYTES or len(headers) > _MAX_HEADERS:
        return False
    if not head.count(b"\r\n") == head.count(b"\n") == head.count(b"\r") == lines:
        return False
    for name, value in headers:
        if name in _UNKNOWABLE or name in _VARYING or name.startswith(_FORWARDED):
            return False
        if name == b"connection" and value.lower() != b"keep-alive":
            return False
    return True
