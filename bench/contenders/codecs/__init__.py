"""The contenders among codecs: each module has a `codec(message)`, which gives its two functions for a message.

`worker` runs one of them in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bench.corpus import Message

__all__ = ["Codec", "through", "type_of"]

_RESULTS = {"tools/call": "CallTool", "tools/list": "ListTools", "resources/read": "ReadResource"}


class Codec(NamedTuple):
    """How a contender reads and writes messages of one kind."""

    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    checks: bool = True
    """Whether values of wrong types are found."""


def type_of(message: Message, types: Any) -> Any:
    """The type of a whole message, in one of the two generated modules of its revision."""
    if message.kind == "result":
        return getattr(types, f"{_RESULTS[message.method]}ResultResponse")
    if message.kind == "batch":
        return list[types.ClientRequest]
    if message.kind == "request":
        return types.ClientRequest
    return types.ServerNotification if message.kind == "notification" else types.JSONRPCErrorResponse


def through(types: Any, message: Message) -> Codec:
    """The public functions of a generated module."""
    kind = type_of(message, types)

    def decode(data: bytes) -> Any:
        return types.decode(data, kind)

    return Codec(decode, types.encode)
