"""The depth of JSON: how many arrays and objects are within each other.

Decoders and encoders recurse once for each level, and stop where the interpreter does: on Python 3.11 after about 900
levels, on 3.14 after 20,000 or more. Code that walks along a value stops after 1,000 calls on every version. So the
depth is counted before anything recurses, and its limit is the same on every version.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any, Final

import msgspec

__all__ = ["MAX_DEPTH", "MAX_VALUE_DEPTH", "SHORT", "decode_json", "encode_json", "is_too_deep", "too_deep"]

MAX_DEPTH: Final = 200
"""Levels that a text in JSON may have, as in Pydantic's parser. Code that walks along values manages so many."""
MAX_VALUE_DEPTH: Final = MAX_DEPTH - 10
"""Levels of a value within a message, which has others around it."""
SHORT: Final = 2 * MAX_DEPTH
"""Bytes of a text that is too short for more levels, with two brackets each. Paths of each call ask this first."""

_encode: Final = msgspec.json.Encoder().encode

_OBJECT_BYTES: Final = 5
"""The least bytes of an object with a member, without those of the value: `{"":}`."""
_SMALL_BYTES: Final = 4096
"""Bytes up to which all brackets are counted at once. In longer texts they are searched, since most have few."""
_SAMPLE_BYTES: Final = 1024
_SAMPLE_OBJECTS: Final = 4
"""Objects in the first bytes of a text that is a list of objects rather than one long string."""
_BLOCK: Final = 64
"""Brackets that are counted at once."""

# A bracket that opens becomes 1, one that closes -1, as signed bytes. Only quotes are kept beside them.
_SIGNS: Final = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
_UNMARKED: Final = bytes({*range(256)} - {*b'{[}]"'})
_UNESCAPED: Final = bytes({*range(256)} - {*b'{[}]"\\/bfnrtu'})
"""Bytes that are neither marks nor follow a backslash in JSON."""


def is_too_deep(text: bytes, limit: int = MAX_DEPTH) -> bool:
    """Return whether a JSON text has more than `limit` arrays and objects within each other, in linear time.

    A decoder may get twice as deep into a text that is not valid, before it finds the fault.
    """
    # Most texts are too short for so many levels, with two brackets each, or are at most as deep as they have brackets.
    size = len(text)
    if size <= 2 * limit or (size <= _OBJECT_BYTES * limit and text.find(b"[") < 0):
        return False
    if size <= _SMALL_BYTES:
        return text.count(b"[") + text.count(b"{") > limit and _exceeds(_brackets(text), limit)
    is_list = text.count(b"{", 0, _SAMPLE_BYTES) > _SAMPLE_OBJECTS
    return (is_list or _has_more_brackets(text, limit)) and _exceeds(_brackets(text), limit)


def _has_more_brackets(text: bytes, limit: int) -> bool:
    """Return whether more than `limit` arrays and objects begin in a text. A search skips long strings fast."""
    count = 0
    for bracket in (b"{", b"["):
        at = text.find(bracket)
        while at >= 0:
            count += 1
            if count > limit:
                return True
            at = text.find(bracket, at + 1)
    return False


def _brackets(text: bytes) -> bytes:
    """Return the brackets of a text that are outside of strings, as signed bytes."""
    if text.find(b"\\") >= 0:
        text = text.translate(None, _UNESCAPED).replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = text.translate(_SIGNS, _UNMARKED).replace(b'""', b"")  # also joins strings with no bracket between them
    return marks if marks.find(b'"') < 0 else b"".join(marks.split(b'"')[::2])


def _exceeds(brackets: bytes, limit: int) -> bool:
    """Return whether more than `limit` brackets are open at a place. Most blocks need no look at each bracket."""
    depth = 0
    for start in range(0, len(brackets), _BLOCK):
        block = brackets[start : start + _BLOCK]
        opened = block.count(b"\x01")
        if depth + opened > limit and max(accumulate(memoryview(block).cast("b"), initial=depth)) > limit:
            return True
        depth += 2 * opened - len(block)
    return False


def too_deep(limit: int = MAX_DEPTH) -> str:
    """Return why a text is not decoded, or a value not encoded, that has more levels than the limit."""
    return f"nested too deeply: more than {limit} levels of arrays and objects"


def decode_json(text: bytes | str, kind: Any = Any, *, depth: int = MAX_DEPTH, dec_hook: Any = None) -> Any:
    """Decode a JSON text that is no message, such as a document. Raises `ValueError`, also if it is too deep."""
    data = text.encode() if isinstance(text, str) else text
    if is_too_deep(data, depth):
        raise msgspec.DecodeError(too_deep(depth))
    return msgspec.json.decode(data, type=kind, dec_hook=dec_hook)


def encode_json(value: object, encode: Callable[[Any], bytes] = _encode, depth: int = MAX_DEPTH) -> bytes:
    """Encode a value. Raises `ValueError` for one that is too deep, such as a list that contains itself."""
    try:
        text = encode(value)
    except RecursionError:
        raise ValueError(too_deep(depth)) from None
    if len(text) > 2 * depth and is_too_deep(text, depth):
        raise ValueError(too_deep(depth))
    return text
