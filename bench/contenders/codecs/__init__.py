"""Codecs: each module has a `make_codec(message)`. `worker` runs one of them in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bench.corpus import Message

__all__ = ["CodecContender", "find_message_type", "make_everyday_codec", "make_generated_codec"]

_DEFAULTS = {"readOnlyHint": False, "openWorldHint": True, "mode": "form"}
_RESULTS = {"tools/call": "CallTool", "tools/list": "ListTools", "resources/read": "ReadResource"}


class CodecContender(NamedTuple):
    """The functions with which a contender decodes and encodes messages of one kind."""

    decode: Callable[..., Any]
    encode: Callable[[Any], bytes]
    kind: Any = None
    """The second argument of `decode`, if it takes one."""
    checks: bool = True
    """True if it rejects values of the wrong type."""
    omits: Mapping[str, Any] = {}
    """Members that it leaves out if they have these values, which are the protocol's defaults."""

    def read(self, data: bytes) -> Any:
        """Decode a message."""
        return self.decode(data) if self.kind is None else self.decode(data, self.kind)


def find_message_type(message: Message, types: Any) -> Any:
    """Return the type of a whole message in `types`, a generated module of its revision."""
    if message.kind == "result":
        return getattr(types, f"{_RESULTS[message.method]}ResultResponse")
    if message.kind == "batch":
        return list[types.ClientRequest]
    if message.kind == "request":
        return types.ClientRequest
    return types.ServerNotification if message.kind == "notification" else types.JSONRPCErrorResponse


def make_generated_codec(types: Any, message: Message) -> CodecContender:
    """Make a codec of the public functions of a generated module."""
    return CodecContender(types.decode, types.encode, find_message_type(message, types))


def make_everyday_codec(types: Any, message: Message) -> CodecContender:
    """Make a codec of the public functions of a generated module of plain types."""
    return make_generated_codec(types, message)._replace(omits=_DEFAULTS)
