"""The official `mcp_types` in one pass: from a line to a typed message, with Pydantic alone, and back.

`mcp_types` has no types of whole messages, so these are its types with the members of the envelope. Requests and
notifications are unions that Pydantic tells apart by `method`. The union of `mcp_types`, `client_request_adapter`, has
no such rule: Pydantic tries all types, and drops the `id`.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, Union, get_args

import mcp_types
from mcp_types import methods
from mcp_types.jsonrpc import JSONRPCError, RequestId
from pydantic import BaseModel, Field, TypeAdapter, create_model

from bench.contenders.codecs import CodecContender
from bench.corpus import Message


class _Notification(BaseModel):
    jsonrpc: Literal["2.0"]


class _OneOfEnvelopes(_Notification):
    id: RequestId


@cache
def _message_type(message: Message) -> Any:
    if message.kind == "result":
        return create_model(
            "Response", __base__=_OneOfEnvelopes, result=(methods.MONOLITH_RESULTS[message.method], ...)
        )
    if message.kind == "request":
        return _tell_apart(mcp_types.ClientRequest, _OneOfEnvelopes)
    return _tell_apart(mcp_types.ServerNotification, _Notification) if message.kind == "notification" else JSONRPCError


def _tell_apart(union: Any, envelope: type[BaseModel]) -> Any:
    """Return the types of a union with the members of an envelope, as a union with a discriminator."""
    whole = [create_model(kind.__name__, __base__=(kind, envelope)) for kind in get_args(union)]
    return Annotated[Union[tuple(whole)], Field(discriminator="method")]  # noqa: UP007  # of a tuple


def _encode(value: BaseModel) -> bytes:
    return value.model_dump_json(by_alias=True, exclude_none=True).encode()


def make_codec(message: Message) -> CodecContender | None:
    if message.kind == "batch":  # mcp_types has no batches
        return None
    validate = TypeAdapter[Any](_message_type(message)).validate_json
    return CodecContender(lambda data: validate(data, by_name=False), _encode)
