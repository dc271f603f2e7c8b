"""The official `mcp_types` with the calls that the official SDK makes, from a line to a typed message and back.

The SDK decodes the envelope, checks what is inside with the types of the revision, and then makes its common type. It
encodes in the same steps.
"""

from __future__ import annotations

from typing import Any

import mcp_types
from mcp_types import methods
from mcp_types.jsonrpc import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter

from bench.contenders.codecs import CodecContender
from bench.corpus import Message


def _decode_line(data: bytes) -> Any:
    return jsonrpc_message_adapter.validate_json(data, by_name=False)


def _to_dict(value: Any) -> dict[str, Any]:
    plain: dict[str, Any] = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return plain


def _encode_line(line: Any) -> bytes:
    text: str = line.model_dump_json(by_alias=True, exclude_unset=True)
    return text.encode()


def _request(message: Message) -> CodecContender:
    def decode(data: bytes) -> Any:
        line = _decode_line(data)
        return line.id, methods.parse_client_request(line.method, message.revision, line.params)

    def encode(value: Any) -> bytes:
        plain = _to_dict(value[1])
        return _encode_line(JSONRPCRequest(jsonrpc="2.0", id=value[0], method=plain["method"], params=plain["params"]))

    return CodecContender(decode, encode)


def _result(message: Message) -> CodecContender:
    def decode(data: bytes) -> Any:
        line = _decode_line(data)
        return line.id, methods.parse_server_result(message.method, message.revision, line.result)

    def encode(value: Any) -> bytes:
        result = methods.serialize_server_result(message.method, message.revision, _to_dict(value[1]))
        return _encode_line(JSONRPCResponse(jsonrpc="2.0", id=value[0], result=result))

    return CodecContender(decode, encode)


def _notification(message: Message) -> CodecContender:
    def decode(data: bytes) -> Any:
        line = _decode_line(data)
        return methods.parse_server_notification(line.method, message.revision, line.params)

    def encode(value: Any) -> bytes:
        plain = _to_dict(value)
        return _encode_line(JSONRPCNotification(jsonrpc="2.0", method=plain["method"], params=plain["params"]))

    return CodecContender(decode, encode)


def make_codec(message: Message) -> CodecContender | None:
    if message.kind == "batch":  # mcp_types has no batches
        return None
    made = {"request": _request, "result": _result, "notification": _notification}.get(message.kind)
    return CodecContender(_decode_line, _encode_line) if made is None else made(message)


__all__ = ["make_codec", "mcp_types"]
