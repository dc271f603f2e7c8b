"""Our Pydantic models, through the public `decode` and `encode`."""

from __future__ import annotations

from typing import Any

import mcpspec
from bench.contenders.codecs import Codec
from bench.corpus import Message

_RESULTS = {"tools/call": "CallTool", "tools/list": "ListTools", "resources/read": "ReadResource"}


def codec(message: Message) -> Codec:
    models: Any = mcpspec.revision(message.revision).models
    kind: Any
    if message.kind == "result":
        kind = getattr(models, f"{_RESULTS[message.method]}ResultResponse")
    elif message.kind == "batch":
        kind = list[models.ClientRequest]
    elif message.kind == "request":
        kind = models.ClientRequest
    else:
        kind = models.ServerNotification if message.kind == "notification" else models.JSONRPCErrorResponse

    def decode(data: bytes) -> Any:
        return models.decode(data, kind)

    return Codec(decode, models.encode)
