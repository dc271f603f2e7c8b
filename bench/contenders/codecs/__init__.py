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

    decode: Callable[..., Any]
    encode: Callable[[Any], bytes]
    kind: Any = None
    """The type, where `decode` is given it beside the bytes."""
    checks: bool = True
    """Whether values of wrong types are found."""

    def read(self, data: bytes) -> Any:
        """The message in some bytes."""
        return self.decode(data) if self.kind is None else self.decode(data, self.kind)


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
    return Codec(types.decode, types.encode, type_of(message, types))
