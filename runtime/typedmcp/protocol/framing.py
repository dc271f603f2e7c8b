"""Newline framing, and the classification of frames.

A `Framer` splits bytes into lines, however they are cut. `classify` is the slow path for a line that the typed decoder
rejected: it finds the message in it, or the reason why it is not a message. `docs/wire.md` lists all outcomes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import msgspec

from mcpspec.support.error_text import KINDS
from mcpspec.support.objects import is_array, is_object
from typedmcp.errors import INVALID_REQUEST, PARSE_ERROR
from typedmcp.limits import DEFAULT_LIMITS
from typedmcp_schemas.integers import to_integer
from typedmcp_schemas.nesting import MAX_DEPTH, is_too_deep, too_deep

__all__ = [
    "Batch", "Frame", "Framer", "InvalidMessage", "OversizeMessage", "RequestId", "classify", "classify_value",
    "find_request_id", "frame_of", "limit_depth",
]  # fmt: skip

RequestId: TypeAlias = int | str

_NEWLINE: Final = 10
_HEAD_BYTES: Final = 4096
"""Bytes that are kept of a line that is too long, to find the id of the request."""

_MAX_SEARCH_STEPS: Final = 10_000
"""Steps of the search for the id in an invalid line: members of the message, and rows of brackets within them."""


class OversizeMessage(msgspec.Struct, frozen=True):
    """A message beyond a limit, with the code and the text of its error.

    Of a message that is too long, `head` is the beginning, and the rest is skipped. Of one that is too deep, it is all.
    """

    head: bytes
    code: int = INVALID_REQUEST
    reason: str = "the message is longer than the limit (message_bytes)"


def frame_of(message: bytes | OversizeMessage) -> bytes:
    """Return the bytes of a message. Of one beyond the limit, only the beginning is known."""
    return message.head if isinstance(message, OversizeMessage) else message


def limit_depth(message: bytes, limit: int) -> bytes | OversizeMessage:
    """Return a message, or what stands for it if it has more levels of arrays and objects than the limit."""
    if not is_too_deep(message, limit):
        return message
    return OversizeMessage(message, PARSE_ERROR, f"{too_deep(limit)} (message_depth)")


class Framer:
    """Splits a stream of bytes at newlines, in linear time.

    `limit` is the maximum length of a line in bytes. A longer line is returned as an `OversizeMessage` as soon as the
    limit is reached; the rest of the line is skipped. So is a line with more than `depth` levels of arrays and objects.
    Raises `ValueError` for a limit below 1.
    """

    __slots__ = ("_depth", "_limit", "_parts", "_short", "_size", "_skipping")

    def __init__(self, limit: int = DEFAULT_LIMITS.message_bytes, depth: int = DEFAULT_LIMITS.message_depth) -> None:
        if limit < 1:
            raise ValueError(f"limit must be positive, not {limit}")
        self._limit = limit
        self._depth = depth
        self._short = min(limit, 2 * depth)  # such a line is within both limits: levels have two brackets each
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | OversizeMessage]:
        """Add bytes, and return the lines that they complete, without newlines."""
        if data and data[-1] == _NEWLINE and len(data) <= self._short and not self._parts and not self._skipping:
            line = data[:-1]
            if _NEWLINE not in line:
                return [line]  # as most reads of small messages are
        *whole, tail = data.split(b"\n")
        if whole and (self._parts or self._skipping):
            whole[:1] = self._finish(whole[0])
        short = self._short
        lines = [line if len(line) <= short else self._bounded(line) for line in whole]
        if tail:
            lines += self._keep(tail)
        return lines

    def end(self) -> list[bytes | OversizeMessage]:
        """End the stream, and return the last line if it has no newline."""
        rest = b"".join(self._parts)
        self._parts, self._size, self._skipping = [], 0, False
        return [self._bounded(rest)] if rest else []

    def _finish(self, line: bytes) -> list[bytes]:
        """Return the line that ends with these bytes, unless it was too long."""
        if self._skipping:
            self._skipping = False
            return []
        whole = b"".join([*self._parts, line])
        self._parts, self._size = [], 0
        return [whole]

    def _bounded(self, line: bytes) -> bytes | OversizeMessage:
        return OversizeMessage(line[:_HEAD_BYTES]) if len(line) > self._limit else limit_depth(line, self._depth)

    def _keep(self, tail: bytes) -> list[bytes | OversizeMessage]:
        """Keep the beginning of a line, up to the limit."""
        if self._skipping:
            return []
        self._parts.append(tail)
        self._size += len(tail)
        if self._size <= self._limit:
            return []
        head = b"".join(self._parts)[:_HEAD_BYTES]
        self._parts, self._size, self._skipping = [], 0, True
        return [OversizeMessage(head)]


class Frame(msgspec.Struct, frozen=True):
    """A JSON-RPC message with a valid envelope. Its parameters, result or error are not checked yet.

    A request has `method` and `id`, a notification only `method`. A response has an `id`, which an error may lack, and
    in `value` either `result` or `error`.
    """

    method: str | None
    id: RequestId | None
    value: dict[str, Any]


class Batch(msgspec.Struct, frozen=True):
    """Several messages in one frame (2025-03-26)."""

    items: list[Any]


class InvalidMessage(msgspec.Struct, frozen=True):
    """A frame that is not a valid message.

    `code`, `reason` and `id` belong to the error response. There is no response unless `is_answerable`.
    """

    code: int
    reason: str
    id: RequestId | None = None
    is_answerable: bool = True
    meant: Frame | None = None
    """The message without its fault, if that is harmless: `params` that are null instead of absent."""


def classify(line: bytes | OversizeMessage) -> Frame | Batch | InvalidMessage | None:
    """Find the message in a line, or the reason why it is not a message. A blank line gives None."""
    if not isinstance(line, OversizeMessage):
        line = limit_depth(line, MAX_DEPTH)
    if isinstance(line, OversizeMessage):
        return InvalidMessage(line.code, line.reason, find_request_id(line.head))
    try:
        value = msgspec.json.decode(line)
    except UnicodeDecodeError as error:
        return InvalidMessage(PARSE_ERROR, f"not UTF-8: {error.reason}", find_request_id(line))
    except msgspec.ValidationError as error:
        return InvalidMessage(PARSE_ERROR, str(error), find_request_id(line))
    except msgspec.DecodeError as error:
        return _classify_invalid_json(line, str(error))
    return Batch(value) if is_array(value) else classify_value(value)


def _classify_invalid_json(line: bytes, reason: str) -> InvalidMessage | None:
    if not line.strip():
        return None
    if re.search(_LONE_SURROGATE, line) and (at := find_request_id(line)) is not None:
        return InvalidMessage(PARSE_ERROR, "a lone surrogate in a string", at)
    return InvalidMessage(PARSE_ERROR, f"not JSON: {reason}", None)


def classify_value(value: Any) -> Frame | InvalidMessage:
    """Find the message in a parsed value, or the reason why it is not one message."""
    if not is_object(value):
        return InvalidMessage(INVALID_REQUEST, f"expected an object, got {KINDS[type(value)]}")
    if type(value.get("id")) is float:
        value["id"] = to_integer(value["id"])
    has_id, id = "id" in value, value.get("id")
    usable_id = id if isinstance(id, str) or type(id) is int else None
    is_response = "method" not in value and ("result" in value or "error" in value)

    def invalid(reason: str) -> InvalidMessage:
        return InvalidMessage(INVALID_REQUEST, reason, usable_id, is_answerable=not is_response)

    if value.get("jsonrpc") != "2.0":
        return invalid('jsonrpc: expected "2.0"')
    if is_response:
        return _classify_response(value, has_id, usable_id, invalid)
    method = value.get("method")
    if not isinstance(method, str):
        missing = "method" not in value
        return invalid(
            "method: required, but missing" if missing else f"method: expected string, got {KINDS[type(method)]}"
        )
    if has_id and usable_id is None:
        return invalid(f"id: expected string or integer, got {KINDS[type(id)]}")
    if not isinstance(value.get("params", {}), dict):
        params = value.pop("params")
        reason = f"params: expected object, got {KINDS[type(params)]}"
        meant = Frame(method, usable_id, value) if params is None else None
        return InvalidMessage(INVALID_REQUEST, reason, usable_id, is_answerable=has_id, meant=meant)
    return Frame(method, usable_id, value)


def _classify_response(
    value: dict[str, Any], has_id: bool, usable_id: RequestId | None, invalid: Callable[[str], InvalidMessage]
) -> Frame | InvalidMessage:
    if "result" in value and "error" in value:
        return invalid("both `result` and `error`")
    if has_id and usable_id is None and not ("error" in value and value["id"] is None):
        return invalid(f"id: expected string or integer, got {KINDS[type(value['id'])]}")
    if "result" in value and not has_id:
        return invalid("id: required, but missing")
    if not isinstance(value.get("result", value.get("error")), dict):
        return invalid("`result` and `error` must be objects")
    return Frame(None, usable_id, value)


# Patterns of bytes that most processes never search are compiled at their first use.
_LONE_SURROGATE = (
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F])"
)
_TOKEN = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]:,]|-?\d++(?![.eE])|[^\s"{}\[\]:,]++|"'
_BRACKETS = rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([{\[]++|[}\]]++)'
"""Brackets of one kind in a row, with everything before them that is not a bracket: deep nesting is few matches."""


def find_request_id(line: bytes) -> RequestId | None:
    """Find the id of a request in a line that cannot be parsed.

    The client gets its error response even if the invalid value is deep inside the request.
    """
    members = dict(_members(line))
    return _parse_id(members.get(b'"id"', b"null")) if b'"method"' in members else None


def find_response_id(line: bytes) -> RequestId | None:
    """Find the id of a response in a line that cannot be parsed, so that the call that waits for it fails at once."""
    members = dict(_members(line))
    return _parse_id(members.get(b'"id"', b"null")) if members.get(b'"method"', b"null") == b"null" else None


def _members(line: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys of the outermost object, each with the first token of its value, up to an unterminated string."""
    steps, find_token = iter(range(_MAX_SEARCH_STEPS)), re.compile(_TOKEN).search
    key: bytes | None = None
    after_colon = False
    at = line.find(b"{") + 1
    if at == 0 or line[: at - 1].strip():  # not an object
        return
    while next(steps, None) is not None and (token := find_token(line, at)) is not None:
        text, at = token[0], token.end()
        if text in (b'"', b"}", b"]"):  # an unterminated string, or the end of the object
            return
        if key is not None and after_colon:
            yield key, text
            key = None
        elif text not in b"{[],:":
            key = text
        after_colon = text == b":"
        if text in b"{[":
            at = _skip_nested(line, at, steps)


def _skip_nested(line: bytes, at: int, steps: Iterator[int]) -> int:
    """Return the place after the object or array that begins before `at`; the end of the line if it does not end."""
    depth, match = 1, re.compile(_BRACKETS).match
    while next(steps, None) is not None and (found := match(line, at)) is not None:
        brackets, at = found[1], found.end()
        depth += len(brackets) if brackets[0] in b"{[" else -len(brackets)
        if depth <= 0:
            return at if depth == 0 else len(line)
    return len(line)


def _parse_id(text: bytes) -> RequestId | None:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if isinstance(value, str) or type(value) is int else None
