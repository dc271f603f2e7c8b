"""The official `mcp_types`: from the line to the typed message and back, by the calls that the official SDK makes."""

from __future__ import annotations

from typing import Any

import mcp_types
from mcp_types import methods
from mcp_types.jsonrpc import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter

from bench.contenders.codecs import Codec
from bench.corpus import Message


def _line(data: bytes) -> Any:
    return jsonrpc_message_adapter.validate_json(data, by_name=False)


def _plain(value: Any) -> dict[str, Any]:
    plain: dict[str, Any] = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return plain


def _bytes(line: Any) -> bytes:
    text: str = line.model_dump_json(by_alias=True, exclude_unset=True)
    return text.encode()


def _request(message: Message) -> Codec:
    def decode(data: bytes) -> Any:
        line = _line(data)
        return line.id, methods.parse_client_request(line.method, message.revision, line.params)

    def encode(value: Any) -> bytes:
        plain = _plain(value[1])
        return _bytes(JSONRPCRequest(jsonrpc="2.0", id=value[0], method=plain["method"], params=plain["params"]))

    return Codec(decode, encode)


def _result(message: Message) -> Codec:
    def decode(data: bytes) -> Any:
        line = _line(data)
        return line.id, methods.parse_server_result(message.method, message.revision, line.result)

    def encode(value: Any) -> bytes:
        result = methods.serialize_server_result(message.method, message.revision, _plain(value[1]))
        return _bytes(JSONRPCResponse(jsonrpc="2.0", id=value[0], result=result))

    return Codec(decode, encode)


def _notification(message: Message) -> Codec:
    def decode(data: bytes) -> Any:
        line = _line(data)
        return methods.parse_server_notification(line.method, message.revision, line.params)

    def encode(value: Any) -> bytes:
        plain = _plain(value)
        return _bytes(JSONRPCNotification(jsonrpc="2.0", method=plain["method"], params=plain["params"]))

    return Codec(decode, encode)


def codec(message: Message) -> Codec | None:
    if message.kind == "batch":  # which it does not have
        return None
    made = {"request": _request, "result": _result, "notification": _notification}.get(message.kind)
    return Codec(_line, _bytes) if made is None else made(message)


__all__ = ["codec", "mcp_types"]
