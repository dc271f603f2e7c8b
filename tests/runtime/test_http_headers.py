"""The headers of HTTP: how values are written, and which arguments are mirrored."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from typedmcp.http.headers import HeaderParam, decode_value, encode_value, header_params, same, value_at, values

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


@pytest.mark.parametrize(("value", "text"), ENCODED, ids=repr)
def test_a_value_is_written_as_it_is_where_that_is_safe(value: Any, text: str) -> None:
    assert encode_value(value) == text
    assert same(text, value)
    if isinstance(value, str):
        assert decode_value(text) == value


@pytest.mark.parametrize("value", [2**53, -(2**53), "\ud800"])
def test_what_no_reader_would_keep_is_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match=r"beyond|surrogate"):
        encode_value(value)


@pytest.mark.parametrize(
    "text",
    [
        "ü", "a\nb", "a\x00", "=?base64?eA?=", "=?base64?eA=?=", "=?base64?eA===?=", "=?base64?e A==?=",
        "=?base64?-_==?=", "=?base64?eB==?=", "=?base64?/w==?=", "=?base64?ü?=", "=?base64?eA==\n?=", "=?base64?e?=",
    ],
)  # fmt: skip
def test_what_is_no_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"characters|Base64"):
        decode_value(text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_goes_through_a_header(text: str) -> None:
    written = encode_value(text)
    assert written.isascii()
    assert written.strip() == written
    assert not set(written) & set("\r\n\0")
    assert decode_value(written) == text


@given(st.text())
def test_reading_gives_a_text_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(decode_value(text), str)


@given(st.integers(-(2**53) + 1, 2**53 - 1), st.integers(-(2**53) + 1, 2**53 - 1))
def test_integers_are_the_same_when_they_are_worth_the_same(one: int, other: int) -> None:
    assert same(encode_value(one), one)
    assert same(encode_value(one), other) == (one == other)


@pytest.mark.parametrize(
    ("header", "value", "expected"),
    [
        ("42.0", 42, True), ("42", 42.0, True), ("42.5", 42, False), ("+42", 42, True), ("042", 42, True),
        ("4.2e1", 42, False), ("forty-two", 42, False), ("", 0, False), ("1", True, False), ("True", True, False),
        ("42", "42", True), ("42.0", "42", False), ("A", "a", False), ("x", None, False), ("x", ["x"], False),
        ("9" * 10_000, 9, False),
    ],
)  # fmt: skip
def test_a_header_is_compared_to_what_stands_in_the_body(header: str, value: Any, expected: bool) -> None:
    assert same(header, value) is expected


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
    "what is no schema": ({"default": prop(""), "enum": [prop("")], "const": prop(""), "examples": [prop("")]}, []),
    "odd schemas": ({"properties": [1], "items": True, "anyOf": {"a": 1}, "$defs": [None]}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", ACCEPTED)
def test_annotated_arguments_are_found(case: str) -> None:
    given, expected = ACCEPTED[case]
    assert list(header_params(given)) == expected


REFUSED: dict[str, tuple[Any, str]] = {
    "empty": (schema(a=prop("")), "x-mcp-header of a: '' is no name of a header"),
    "no text": (schema(a=prop(5)), "of a: int is no name"),
    "no token": (schema(a=prop("My Region")), "'My Region' is no name"),
    "a line end": (schema(a=prop("a\r\nb")), "is no name"),
    "a line end behind": (schema(a=prop("a\n")), "is no name"),
    "a colon": (schema(a=prop("a:b")), "is no name"),
    "not ASCII": (schema(a=prop("ü")), "is no name"),
    "twice": (schema(a=prop("Region"), b=prop("REGION")), r"of b: a has the same header \(REGION\)"),
    "twice, one deeper": (schema(a=prop(), b=schema(c=prop("region"))), "of b.c: a has the same header"),
    "a number": (schema(a=prop(kind="number")), "only strings, integers and booleans have headers, not 'number'"),
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


@pytest.mark.parametrize("case", REFUSED)
def test_an_annotation_that_breaks_the_rules_names_why(case: str) -> None:
    given, reason = REFUSED[case]
    with pytest.raises(ValueError, match=reason):
        header_params(given)


def test_deep_schemas_are_no_trouble() -> None:
    deep = schema(a=prop())
    for _ in range(5000):
        deep = schema(a=deep)
    (param,) = header_params(deep)
    assert len(param.path) == 5001


def test_arguments_are_mirrored_where_they_are_there() -> None:
    params = header_params(
        schema(a=prop("A"), b=prop("B", "integer"), c=prop("C", "boolean"), d=schema(e=prop("E")), f=prop("F"))
    )
    assert values(params, {"a": "ü", "b": 7, "c": False, "d": {"e": "x"}, "f": None, "g": 1}) == {
        "mcp-param-a": "=?base64?w7w=?=", "mcp-param-b": "7", "mcp-param-c": "false", "mcp-param-e": "x",
    }  # fmt: skip
    assert values(params, {"d": "no object"}) == {}
    assert values(params, {"a": ["x"], "b": 42.0, "f": 1.5}) == {"mcp-param-b": "42"}
    assert value_at({"a": {"b": 1}}, ("a", "b")) == 1
    with pytest.raises(ValueError, match="beyond"):
        values(params, {"b": 2**60})
