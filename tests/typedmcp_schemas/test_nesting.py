"""How deep JSON is: counted like a parser, in linear time, and the same on every version of Python."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspec.support.objects import is_array, is_object
from tests.cases import each
from typedmcp_schemas.nesting import MAX_DEPTH, decode_json, encode_json, is_too_deep, too_deep

_TEXTS = st.text(alphabet='{}[]"\\/ané\n,:', max_size=8)
_VALUES = st.recursive(
    st.none() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=40,
)
_PADDING = st.sampled_from(["", "x" * 5000, "{[" * 3000, '"{}' * 2000])


def depth_of(value: Any) -> int:
    if not is_object(value) and not is_array(value):
        return 0
    return 1 + max(map(depth_of, value.values() if is_object(value) else value), default=0)


def nested(depth: int, start: str = "[", end: str = "]") -> bytes:
    return (start * depth + end * depth).encode()


@given(_VALUES, _PADDING, st.booleans(), st.sampled_from([None, 1]))
def test_the_depth_of_any_value_is_counted(value: Any, padding: str, is_ascii: bool, indent: int | None) -> None:
    value = [padding, value]
    text, depth = json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode(), depth_of(value)
    assert not is_too_deep(text, depth)
    assert is_too_deep(text, depth - 1)


@given(_VALUES, st.binary(max_size=20) | _TEXTS.map(str.encode), st.data())
def test_what_follows_the_depth_does_not_hide_it(value: Any, rest: bytes, data: st.DataObject) -> None:
    """A decoder recurses before it finds the fault of a text that is not valid, to twice the limit at most."""
    text = json.dumps([value]).encode()
    prefix = text[: data.draw(st.integers(0, len(text)))]
    depth = _depth_before_end(prefix)
    assert is_too_deep(prefix + rest, (depth - 1) // 2) or not depth


def _depth_before_end(prefix: bytes) -> int:
    """Return the greatest depth in the beginning of a valid text, read character by character."""
    depth = greatest = 0
    is_string = is_escape = False
    for character in prefix.decode():
        if is_string:
            is_string = is_escape or character != '"'
            is_escape = not is_escape and character == "\\"
        elif character in "{[":
            depth += 1
            greatest = max(greatest, depth)
        else:
            is_string = character == '"'
            depth -= character in "}]"
    return greatest


DECOYS = {
    "brackets in strings": b'["' + b"[" * 5000 + b'", "' + b"{" * 5000 + b'"]',
    "escaped quotes before brackets": b'["' + b'\\"[' * 5000 + b'"]',
    "escaped backslashes before the end of strings": b"[" + b'"\\\\", "[\\\\",' * 2000 + b"1]",
    "escapes before the end of strings": b"[" + b'"\\n", "{\\u005c",' * 2000 + b"1]",
    "many neighbours": b"[" + b"[],{}," * 5000 + b"1]",
    "many neighbours that are objects": b"[" + b'{"a":{"b":[]}},' * 5000 + b"1]",
}


@each("text", DECOYS.values(), ids=DECOYS)
def test_a_text_with_many_brackets_need_not_be_deep(text: bytes) -> None:
    assert depth_of(json.loads(text)) < 5
    assert not is_too_deep(text, 5)


HIDDEN = {
    "closing brackets in strings": b'{"a":"}]"' + b',"a":{"b":"}}}}"' * 300 + b"}" * 301,
    "closing brackets after an escaped quote": b'["\\"]]]]",' * 300 + b"1" + b"]" * 300,
    "closing brackets after an escaped backslash": b'["\\\\","]]]]",' * 300 + b"1" + b"]" * 300,
    "closing brackets after a line end": b'["\\n","]]]]",' * 300 + b"1" + b"]" * 300,
    "closing brackets between empty strings": b'["","]]","",' * 300 + b"1" + b"]" * 300,
    "a mixture": nested(150, '[{"a":', "}]").replace(b":}", b":1}"),
    "after a long text": b'["' + b"x" * 5000 + b'",' + nested(201) + b"]",
    "after a long list": b"[" + b'{"a":1},' * 5000 + nested(201) + b"]",
}


@each("text", HIDDEN.values(), ids=HIDDEN)
def test_no_decoy_hides_the_depth(text: bytes) -> None:
    assert depth_of(json.loads(text)) > MAX_DEPTH
    assert is_too_deep(text)


LARGE = [nested(2 << 20), b"[" * (4 << 20), b"[" + b"[]," * (1 << 20) + b"1]", nested(199) * 10_000, b'"[' * (2 << 20)]


@each("text", LARGE)
def test_the_time_is_linear_in_the_size(text: bytes) -> None:
    start = time.process_time()
    is_too_deep(text)
    assert time.process_time() - start < 2  # fifty times what it takes


def test_a_text_is_decoded_up_to_the_limit_and_not_beyond() -> None:
    assert depth_of(decode_json(nested(MAX_DEPTH))) == MAX_DEPTH
    for text in (nested(MAX_DEPTH + 1), nested(1_000_000), nested(MAX_DEPTH + 1).decode()):
        with pytest.raises(msgspec.DecodeError, match=f"^{too_deep()}$"):
            decode_json(text)


def test_a_value_is_encoded_up_to_the_limit_and_not_beyond() -> None:
    endless: list[Any] = []
    endless.append(endless)
    deepest = json.loads(nested(MAX_DEPTH))
    assert encode_json(deepest) == nested(MAX_DEPTH)
    for value in ([deepest], endless, msgspec.Raw(nested(MAX_DEPTH + 1))):
        with pytest.raises(ValueError, match=f"^{too_deep()}$"):
            encode_json(value)
