"""Bytes to frames and back: newline framing, and what is wrong with a frame that cannot be read.

Nothing here does I/O. A `Framer` is fed bytes in any chunking and gives lines; `examine` is the slow look at a
line that the typed decoder refused, and says what it is: `docs/wire.md` lists every kind and its outcome.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from mcpspec._support.objects import is_array, is_object
from typedmcp.errors import INVALID_REQUEST, PARSE_ERROR

__all__ = ["DEFAULT_LIMIT", "Bad", "Batch", "Frame", "Framer", "Oversize", "RequestId", "examine"]

DEFAULT_LIMIT = 64 << 20
"""The longest line that is read, in bytes."""

RequestId: TypeAlias = int | str

_HEAD = 4096
"""How much of a line that is too long is kept, to find its id."""

_SEARCHED = 100_000
"""In how many tokens of a line that cannot be parsed its id is looked for."""


class Oversize:
    """A line that was longer than the limit: its first bytes; the rest has been passed over."""

    __slots__ = ("head",)

    def __init__(self, head: bytes) -> None:
        self.head: bytes = head


class Framer:
    """Splits a stream of bytes at newlines, in time linear in their number.

    `limit` is the longest line in bytes. A longer one comes out as `Oversize` as soon as that is known, and is
    passed over up to its end.
    """

    __slots__ = ("_limit", "_parts", "_size", "_skipping")

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"the limit of a line must be positive, not {limit}")
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | Oversize]:
        """The lines that these bytes complete, without their newlines."""
        *whole, tail = data.split(b"\n")
        lines: list[bytes | Oversize] = [*whole]
        if lines and (self._parts or self._skipping):
            lines[:1] = self._finish(data[: data.index(b"\n")])
        if len(data) > self._limit:
            lines = [self._bounded(line) for line in lines]
        if tail:
            lines += self._keep(tail)
        return lines

    def end(self) -> list[bytes | Oversize]:
        """The last line, where the stream ended without a newline."""
        rest = b"".join(self._parts)
        self._parts, self._size, self._skipping = [], 0, False
        return [rest] if rest else []

    def _finish(self, line: bytes) -> list[bytes | Oversize]:
        if self._skipping:
            self._skipping = False
            return []
        whole = b"".join([*self._parts, line])
        self._parts, self._size = [], 0
        return [self._bounded(whole)]

    def _bounded(self, line: bytes | Oversize) -> bytes | Oversize:
        return Oversize(line[:_HEAD]) if isinstance(line, bytes) and len(line) > self._limit else line

    def _keep(self, tail: bytes) -> list[bytes | Oversize]:
        """Remember the beginning of a line."""
        if self._skipping:
            return []
        self._parts.append(tail)
        self._size += len(tail)
        if self._size <= self._limit:
            return []
        head = b"".join(self._parts)[:_HEAD]
        self._parts, self._size, self._skipping = [], 0, True
        return [Oversize(head)]


@dataclass(frozen=True, slots=True)
class Frame:
    """A JSON-RPC message whose envelope is as it should be, its content not yet looked at.

    A request has `method` and `id`, a notification `method` alone, a response an `id` (an error may lack it)
    and `result` or `error`.
    """

    method: str | None
    id: RequestId | None
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """Several messages in one frame, which only 2025-03-26 knows."""

    items: list[Any]


@dataclass(frozen=True, slots=True)
class Bad:
    """A frame that is no message. `id` is the one to answer with; `answer` says whether to answer at all."""

    code: int
    reason: str
    id: RequestId | None = None
    answer: bool = True


def examine(line: bytes | Oversize) -> Frame | Batch | Bad | None:
    """What a line is; None for a blank one."""
    if isinstance(line, Oversize):
        return Bad(INVALID_REQUEST, "the message is longer than the limit", find_id(line.head))
    try:
        value = msgspec.json.decode(line)
    except RecursionError:
        return Bad(PARSE_ERROR, "nested too deeply", find_id(line))
    except UnicodeDecodeError as error:
        return Bad(PARSE_ERROR, f"not UTF-8: {error.reason}", find_id(line))
    except msgspec.ValidationError as error:
        return Bad(PARSE_ERROR, str(error), find_id(line))
    except msgspec.DecodeError as error:
        return _unreadable(line, str(error))
    return Batch(value) if is_array(value) else envelope(value)


def _unreadable(line: bytes, reason: str) -> Bad | None:
    if not line.strip():
        return None
    if _LONE_SURROGATE.search(line) and (at := find_id(line)) is not None:
        return Bad(PARSE_ERROR, "a surrogate that stands alone", at)
    return Bad(PARSE_ERROR, f"not JSON: {reason}", None)


def envelope(value: Any) -> Frame | Bad:
    """What a parsed value is, if it is one message."""
    if not is_object(value):
        return Bad(INVALID_REQUEST, f"expected an object, got {_kind(value)}")
    has_id, id = "id" in value, value.get("id")
    usable = id if isinstance(id, str) or type(id) is int else None
    is_response = "method" not in value and ("result" in value or "error" in value)

    def bad(reason: str) -> Bad:
        return Bad(INVALID_REQUEST, reason, usable, answer=not is_response)

    if value.get("jsonrpc") != "2.0":
        return bad('jsonrpc: expected "2.0"')
    if is_response:
        return _response(value, has_id, usable, bad)
    method = value.get("method")
    if not isinstance(method, str):
        missing = "method" not in value
        return bad("method: required, but missing" if missing else f"method: expected string, got {_kind(method)}")
    if has_id and usable is None:
        return bad(f"id: expected string or integer, got {_kind(id)}")
    if not isinstance(value.get("params", {}), dict):
        if not has_id:
            return Bad(INVALID_REQUEST, f"params: expected object, got {_kind(value['params'])}", None, answer=False)
        return bad(f"params: expected object, got {_kind(value['params'])}")
    return Frame(method, usable, value)


def _response(value: dict[str, Any], has_id: bool, usable: RequestId | None, bad: Callable[[str], Bad]) -> Frame | Bad:
    if "result" in value and "error" in value:
        return bad("both `result` and `error`")
    if has_id and usable is None and not ("error" in value and value["id"] is None):
        return bad(f"id: expected string or integer, got {_kind(value['id'])}")
    if "result" in value and not has_id:
        return bad("id: required, but missing")
    if not isinstance(value.get("result", value.get("error")), dict):
        return bad("`result` and `error` must be objects")
    return Frame(None, usable, value)


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return _KINDS[type(value)]


_KINDS: dict[type, str] = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip
_LONE_SURROGATE = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F])"
)
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|-?\d+(?![\d.eE])|[^\s"{}\[\]:,]+|"')


def find_id(line: bytes) -> RequestId | None:
    """The id of a request that cannot be parsed as a whole, if it stands at the top level of an object.

    A client that waits for an answer should get one even where a value deep inside is what is wrong.
    """
    members = dict(_members(line))
    return _plain_id(members.get(b'"id"', b"null")) if b'"method"' in members else None


def answered_id(line: bytes) -> RequestId | None:
    """The id that an answer names, if it cannot be parsed as a whole: whoever waits for it should learn that."""
    members = dict(_members(line))
    return None if b'"method"' in members else _plain_id(members.get(b'"id"', b"null"))


def _members(line: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys of the outermost object, each with the first token of its value, as far as the line can be read."""
    depth = 0
    key: bytes | None = None
    after_colon = False
    for token in islice(_TOKEN.finditer(line), _SEARCHED):
        text = token[0]
        if text == b'"' or (depth == 0 and text != b"{"):  # a string that does not end, or no object
            return
        if depth == 1 and key is not None and after_colon:
            yield key, text
            key = None
        elif depth == 1 and text not in b"{}[],:":
            key = text
        after_colon = depth == 1 and text == b":"
        depth += (text in b"{[") - (text in b"}]")


def _plain_id(text: bytes) -> RequestId | None:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if isinstance(value, str) or type(value) is int else None
