"""Compressed bodies, which some servers send although the client accepts none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from typedmcp.errors import ProtocolError
from typedmcp.protocol.text import visible
from typedmcp.transports.http1 import HttpResponse

__all__ = ["accept_coding"]

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
