"""Our msgspec Structs, through the public `decode` and `encode`: all that the schema says is checked."""

from __future__ import annotations

from typing import Any

import mcpspec
from bench.contenders.codecs import Codec
from bench.corpus import Message


def type_of(message: Message) -> Any:
    """The type of a whole message."""
    structs: Any = mcpspec.revision(message.revision).structs
    if message.kind == "batch":
        return list[structs.ClientRequest]
    if message.kind == "result":
        name = {"tools/call": "CallTool", "tools/list": "ListTools", "resources/read": "ReadResource"}[message.method]
        return getattr(structs, f"{name}ResultResponse")
    return {
        "request": structs.ClientRequest,
        "notification": structs.ServerNotification,
        "error": getattr(structs, "JSONRPCErrorResponse", None),
    }[message.kind]


def codec(message: Message) -> Codec:
    structs, kind = mcpspec.revision(message.revision).structs, type_of(message)

    def decode(data: bytes) -> Any:
        return structs.decode(data, kind)

    return Codec(decode, structs.encode)
