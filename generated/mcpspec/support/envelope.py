"""The JSON-RPC envelope of a message, parsed before its revision is known.

The envelope is the same in all revisions. A gateway parses it once, finds the method or the id, and decodes the
parameters or the result later, as types of the revision that it then knows.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpspec.support.errors import DecodeError
from mcpspec.support.structs import decode

__all__ = [
    "ErrorFrame",
    "Frame",
    "NotificationFrame",
    "RequestFrame",
    "ResultFrame",
    "encode_frame",
    "parse_frame",
    "split_batch",
]


class RequestFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A request."""

    id: str | int
    """Identifier that the response repeats."""
    method: str
    """Name of the method, such as `tools/call`."""
    params: bytes | None = None
    """The parameters as JSON text, or None if the request has none."""


class NotificationFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A notification, which has no response."""

    method: str
    """Name of the method, such as `notifications/progress`."""
    params: bytes | None = None
    """The parameters as JSON text, or None if the notification has none."""


class ResultFrame(msgspec.Struct, frozen=True, kw_only=True):
    """The response to a request that succeeded."""

    id: str | int
    """Identifier of the request."""
    result: bytes
    """The result as JSON text."""


class ErrorFrame(msgspec.Struct, frozen=True, kw_only=True):
    """The response to a request that failed."""

    id: str | int | None = None
    """Identifier of the request; None if the peer could not read it."""
    error: bytes
    """The error as JSON text: an object with `code`, `message` and perhaps `data`."""


Frame: TypeAlias = RequestFrame | NotificationFrame | ResultFrame | ErrorFrame
"""A message whose parameters, result or error are still JSON text."""


class _Envelope(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    id: str | int | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Explained(msgspec.Struct):
    """The same as `_Envelope`, with types whose faults `decode` can explain."""

    jsonrpc: Literal["2.0"]
    id: str | int | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Any = UNSET
    result: Any = UNSET
    error: Any = UNSET


class _Identified(msgspec.Struct):
    id: str | int | None = None


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_id = msgspec.json.Decoder(_Identified).decode
_split_array = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.Encoder().encode
_FAILURES = (msgspec.MsgspecError, ValueError, RecursionError)
_OPENING = {"{": "an object", "[": "an array", '"': "a string", "t": "true", "f": "false", "n": "null"}


def parse_frame(buf: bytes | bytearray | memoryview | str) -> Frame:
    """Parse the envelope of a message, and leave its parameters, result or error as JSON text.

    Undeclared members of the envelope are dropped. The text of the parameters is checked when it is decoded. Raises
    `DecodeError` for anything but a request, a notification or a response, with the id of the message if that can be
    read. For a batch, see `split_batch`. https://www.jsonrpc.org/specification
    """
    text = _to_bytes(buf)
    try:
        return _parse(text)
    except DecodeError as error:
        with suppress(*_FAILURES):
            error.id = _decode_id(text).id
        raise


def _parse(text: bytes) -> Frame:
    try:
        found = _decode_envelope(text)
    except _FAILURES as error:
        if text.lstrip()[:1] == b"[":
            raise DecodeError("", "expected an object, got an array; split_batch takes a batch apart") from error
        decode(text, _Explained)  # raises an error that names the place
        raise DecodeError("", str(error)) from error
    _check_combination(found)
    params = None if found.params is UNSET else _object(found.params, "params")
    if found.method is not UNSET:
        if found.id is UNSET:
            return NotificationFrame(method=found.method, params=params)
        return RequestFrame(id=_require_id(found.id), method=found.method, params=params)
    if found.result is not UNSET:
        return ResultFrame(id=_require_id(found.id), result=_object(found.result, "result"))
    assert found.error is not UNSET
    return ErrorFrame(id=None if found.id is UNSET else found.id, error=_object(found.error, "error"))


def encode_frame(frame: Frame) -> bytes:
    """Encode a message in one line, with its parameters, result or error as they are.

    Only line breaks in that text are removed, with the spaces between its tokens. The text is not checked, unless it
    has line breaks: then `DecodeError` is raised if it is not JSON.
    """
    members: dict[str, Any] = {"jsonrpc": "2.0"}
    for name in frame.__struct_fields__:
        value: object = getattr(frame, name)
        if isinstance(value, bytes):
            members[name] = Raw(value)
        elif value is not None:
            members[name] = value
    text = _encode(members)
    if b"\n" in text or b"\r" in text:
        try:
            text = msgspec.json.format(text, indent=-1)
        except _FAILURES as error:
            raise DecodeError("", str(error), is_json=False) from error
    return text


def split_batch(buf: bytes | bytearray | memoryview | str) -> list[bytes]:
    """Return the messages of a batch, each still as JSON text; return a single message as a list of one.

    Only 2025-03-26 has batches. Raises `DecodeError` for an empty one, and for text that is not JSON.
    https://modelcontextprotocol.io/specification/2025-03-26/basic#batching
    """
    text = _to_bytes(buf)
    if text.lstrip()[:1] != b"[":
        return [text]
    try:
        messages = [bytes(raw) for raw in _split_array(text)]
    except _FAILURES as error:
        raise DecodeError("", str(error), is_json=False) from error
    if not messages:
        raise DecodeError("", "expected a batch of at least one message, got none")
    return messages


def _to_bytes(buf: bytes | bytearray | memoryview | str) -> bytes:
    try:
        return buf.encode() if isinstance(buf, str) else bytes(buf)
    except UnicodeEncodeError as error:
        raise DecodeError("", "is not Unicode text", is_json=False) from error


def _check_combination(found: _Envelope) -> None:
    """Raise `DecodeError` unless exactly one of the members that make a request or a response is present."""
    kinds = [name for name in ("method", "result", "error") if getattr(found, name) is not UNSET]
    if len(kinds) != 1:
        got = " and ".join(kinds) or "none of them"
        raise DecodeError("", f"expected one of method, result and error, got {got}")
    if found.params is not UNSET and found.method is UNSET:
        raise DecodeError("params", "a response has no parameters")


def _require_id(id: str | int | UnsetType | None) -> str | int:
    if isinstance(id, str | int):
        return id
    raise DecodeError("id", "required, but missing" if id is UNSET else "expected a string or an integer, got null")


def _object(raw: Raw, name: str) -> bytes:
    """Return the text of a member that is an object. Raises `DecodeError` for other values."""
    text = bytes(raw)
    if text[:1] != b"{":
        got = _OPENING.get(text[:1].decode(), "a number")
        raise DecodeError(name, f"expected an object, got {got}")
    return text
