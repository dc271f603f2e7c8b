"""The headers of HTTP: the encoding of values, and the arguments that they mirror."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from typedmcp.protocol.headers import (
    HeaderParam,
    decode_header,
    encode_value,
    find_value,
    header_equals,
    header_params,
    mirror_arguments,
)

ENCODED: list[tuple[Any, str]] = [
    ("us-west1", "us-west1"),
    ("a b\tc", "a b\tc"),
    ("Grüße", "=?base64?R3LDvMOfZQ==?="),
    (" x", "=?base64?IHg=?="),
    ("x ", "=?base64?eCA=?="),
    ("\tx", "=?base64?CXg=?="),
    ("", "=?base64??="),
    ("a\r\nb: c", "=?base64?YQ0KYjogYw==?="),
    ("\x7f", "=?base64?fw==?="),
    ("\x00", "=?base64?AA==?="),
    ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
    ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
    ("=?base64?x", "=?base64?x"),
    ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
    (0, "0"),
    (-7, "-7"),
    (2**53 - 1, "9007199254740991"),
    (True, "true"),
    (False, "false"),
]  # fmt: skip


@each("value, text", ENCODED, ids=repr)
def test_a_safe_value_is_not_encoded_and_others_are_base64(value: Any, text: str) -> None:
    assert encode_value(value) == text
    assert header_equals(text, value)
    if isinstance(value, str):
        assert decode_header(text) == value


@each("value", [2**53, -(2**53), "\ud800"])
def test_a_value_that_not_every_reader_keeps_is_rejected(value: Any) -> None:
    with pytest.raises(ValueError, match=r"beyond|surrogate"):
        encode_value(value)


@each(
    "text",
    [
        "ü", "a\nb", "a\x00", "=?base64?eA?=", "=?base64?eA=?=", "=?base64?eA===?=", "=?base64?e A==?=",
        "=?base64?-_==?=", "=?base64?eB==?=", "=?base64?/w==?=", "=?base64?ü?=", "=?base64?eA==\n?=", "=?base64?e?=",
    ],
)  # fmt: skip
def test_a_malformed_value_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"characters|Base64"):
        decode_header(text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_survives_encoding_and_decoding(text: str) -> None:
    written = encode_value(text)
    assert written.isascii()
    assert written.strip() == written
    assert not set(written) & set("\r\n\0")
    assert decode_header(written) == text


@given(st.text())
def test_decoding_returns_a_text_or_raises_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(decode_header(text), str)


@given(st.integers(-(2**53) + 1, 2**53 - 1), st.integers(-(2**53) + 1, 2**53 - 1))
def test_integers_are_compared_as_numbers(one: int, other: int) -> None:
    assert header_equals(encode_value(one), one)
    assert header_equals(encode_value(one), other) == (one == other)


@each(
    "header, value, expected",
    [
        ("42.0", 42, True), ("42", 42.0, True), ("42.5", 42, False), ("+42", 42, True), ("042", 42, True),
        ("4.2e1", 42, False), ("forty-two", 42, False), ("", 0, False), ("1", True, False), ("True", True, False),
        ("42", "42", True), ("42.0", "42", False), ("A", "a", False), ("x", None, False), ("x", ["x"], False),
        ("9" * 10_000, 9, False),
    ],
)  # fmt: skip
def test_a_header_is_compared_with_the_value_in_the_body(header: str, value: Any, expected: bool) -> None:
    assert header_equals(header, value) is expected


def prop(name: Any = "Region", kind: Any = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


ACCEPTED: dict[str, tuple[dict[str, Any], list[HeaderParam]]] = {
    "none": (schema(a={"type": "string"}), []),
    "one": (schema(a=prop()), [HeaderParam("mcp-param-region", ("a",), "string")]),
    "in an object": (
        schema(a=schema(b=prop(kind="integer"))),
        [HeaderParam("mcp-param-region", ("a", "b"), "integer")],
    ),
    "several": (
        schema(a=prop("A"), b=prop("B", "boolean")),
        [HeaderParam("mcp-param-a", ("a",), "string"), HeaderParam("mcp-param-b", ("b",), "boolean")],
    ),
    "every character of a token": (
        schema(a=prop("!#$%&'*+-.^_`|~09aZ")),
        [HeaderParam("mcp-param-!#$%&'*+-.^_`|~09az", ("a",), "string")],
    ),
    "a property of this name": (schema(**{"x-mcp-header": {"type": "number"}}), []),
    "not a schema": ({"default": prop(""), "enum": [prop("")], "const": prop(""), "examples": [prop("")]}, []),
    "odd schemas": ({"properties": [1], "items": True, "anyOf": {"a": 1}, "$defs": [None]}, []),
}  # fmt: skip


@each("case", ACCEPTED)
def test_annotated_parameters_are_found(case: str) -> None:
    given, expected = ACCEPTED[case]
    assert list(header_params(given)) == expected


REJECTED: dict[str, tuple[Any, str]] = {
    "empty": (schema(a=prop("")), "x-mcp-header of a: '' is not a valid header name"),
    "not a text": (schema(a=prop(5)), "of a: int is not a valid header name"),
    "not a token": (schema(a=prop("My Region")), "'My Region' is not a valid header name"),
    "a line end": (schema(a=prop("a\r\nb")), "is not a valid header name"),
    "a line end at the end": (schema(a=prop("a\n")), "is not a valid header name"),
    "a colon": (schema(a=prop("a:b")), "is not a valid header name"),
    "not ASCII": (schema(a=prop("ü")), "is not a valid header name"),
    "twice": (schema(a=prop("Region"), b=prop("REGION")), r"of b: a has the same header \(REGION\)"),
    "twice, one deeper": (schema(a=prop(), b=schema(c=prop("region"))), "of b.c: a has the same header"),
    "a number": (schema(a=prop(kind="number")), "only strings, integers and booleans can have headers, not 'number'"),
    "an array": (schema(a=prop(kind="array")), "not 'array'"),
    "an object": (schema(a=prop(kind="object")), "not 'object'"),
    "no type": (schema(a={"x-mcp-header": "A"}), "not None"),
    "several types": (schema(a=prop(kind=["string", "null"])), "not list"),
    "a reference": (schema(a={"$ref": "#/$defs/a", "x-mcp-header": "A"}), "not None"),
    "the root": ({"type": "string", "x-mcp-header": "A"}, "no chain of properties"),
    **{
        keyword: ({"type": "object", keyword: inner}, "no chain of properties")
        for keyword, inner in {
            "items": schema(a=prop()), "prefixItems": [prop()], "contains": prop(), "additionalProperties": prop(),
            "patternProperties": {".": prop()}, "propertyNames": prop(), "dependentSchemas": {"a": schema(b=prop())},
            "allOf": [schema(a=prop())], "anyOf": [prop()], "oneOf": [prop()], "not": prop(), "if": prop(),
            "then": prop(), "else": prop(), "$defs": {"a": prop()}, "definitions": {"a": prop()},
            "unevaluatedProperties": prop(), "unevaluatedItems": prop(),
        }.items()
    },
    "deep below": (schema(a={"type": "array", "items": schema(b=schema(c=prop()))}), "no chain of properties"),
}  # fmt: skip


@each("case", REJECTED)
def test_the_error_says_how_an_annotation_breaks_the_rules(case: str) -> None:
    given, reason = REJECTED[case]
    with pytest.raises(ValueError, match=reason):
        header_params(given)


def test_a_schema_may_be_nested_5000_levels_deep() -> None:
    deep = schema(a=prop())
    for _ in range(5000):
        deep = schema(a=deep)
    (param,) = header_params(deep)
    assert len(param.path) == 5001


def test_arguments_that_are_present_are_mirrored() -> None:
    params = header_params(
        schema(a=prop("A"), b=prop("B", "integer"), c=prop("C", "boolean"), d=schema(e=prop("E")), f=prop("F"))
    )
    assert mirror_arguments(params, {"a": "ü", "b": 7, "c": False, "d": {"e": "x"}, "f": None, "g": 1}) == {
        "mcp-param-a": "=?base64?w7w=?=", "mcp-param-b": "7", "mcp-param-c": "false", "mcp-param-e": "x",
    }  # fmt: skip
    assert mirror_arguments(params, {"d": "no object"}) == {}
    assert mirror_arguments(params, {"a": ["x"], "b": 42.0, "f": 1.5}) == {"mcp-param-b": "42"}
    assert find_value({"a": {"b": 1}}, ("a", "b")) == 1
    with pytest.raises(ValueError, match="beyond"):
        mirror_arguments(params, {"b": 2**60})
