"""The bodies of responses."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn

import msgspec

from mcpspec.support.objects import is_object
from typedmcp.client.http.endpoint import Endpoint, shorten_body
from typedmcp.errors import ProtocolError, RemoteError
from typedmcp.protocol.framing import frame_of
from typedmcp.protocol.text import visible
from typedmcp.transports.http1 import HttpResponse
from typedmcp_schemas.nesting import is_too_deep, too_deep

__all__ = ["accept_coding", "content_type", "raise_error_in", "read_body"]

_CODINGS: Final = frozenset({"gzip", "x-gzip", "deflate"})


def accept_coding(response: HttpResponse, tolerate: Callable[[str], bool]) -> None:
    """Inflate the body of a response if it is compressed.

    Raises `ProtocolError` for another coding, and if the client does not tolerate any.
    """
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding == "identity":
        return
    text = f"the response has the content-encoding {visible(coding, 60)}"
    if coding not in _CODINGS or not tolerate(f"{text}, which the client did not accept"):
        raise ProtocolError(f"{text}, expected none")
    response.inflate()


def content_type(response: HttpResponse) -> str:
    """Return the media type of a response, without parameters."""
    value = response.headers.get("content-type", "")
    return value if value == "application/json" else value.partition(";")[0].strip().lower()


async def read_body(endpoint: Endpoint, response: HttpResponse) -> bytes:
    """Read a JSON body, and report it as a frame. Raises `ProtocolError` for one that is too large or too deep."""
    limit = endpoint.limits.message_bytes
    try:
        body = response.take_all(limit) or await response.read_all(limit)
    except ValueError as error:
        raise ProtocolError(str(error)) from None
    if endpoint.on_frame is not None:
        endpoint.on_frame("server", frame_of(body))
    if is_too_deep(body, depth := endpoint.limits.message_depth):
        raise ProtocolError(f"the response is not a valid message: {too_deep(depth)} (message_depth)")
    return body


def raise_error_in(body: bytes) -> NoReturn:
    """Raise the error in a response body, or `ProtocolError` if it holds none."""
    with suppress(ValueError):
        plain: Any = msgspec.json.decode(body)
        if is_object(plain) and is_object(error := plain.get("error")):
            raise RemoteError.from_wire(error)
    raise ProtocolError(f"the body is not a response to this call: {shorten_body(body)[:200]}")
