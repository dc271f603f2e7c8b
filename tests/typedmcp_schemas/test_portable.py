"""Schemas that hosts accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import msgspec
import pytest

from mcpspec.support.objects import is_array, is_object
from tests.cases import each
from tests.hostile_schemas import find_excess
from typedmcp_schemas.adapt import schema_of, to_msgspec
from typedmcp_schemas.portable import portable_schema_of, to_portable

REF = "#/$defs/"


class Marker(Enum):
    """Values whose comparisons are calls that can be counted."""

    A = "a"
    B = "b"

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = Enum.__hash__


class Point(msgspec.Struct):
    x: float
    y: float


class Line(msgspec.Struct):
    start: Point
    end: Point


class Tree(msgspec.Struct):
    root: Point
    children: list[Tree] = []


POINT = {
    "title": "Point", "type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
    "required": ["x", "y"],
}  # fmt: skip


CASES: list[tuple[Any, Any]] = [
    ({"type": "array"}, {"type": "array", "items": {}}),
    ({"type": ["array", "null"]}, {"anyOf": [{"type": "array", "items": {}}, {"type": "null"}]}),
    ({"type": "array", "items": True}, {"type": "array", "items": {}}),
    (
        {"type": "array", "prefixItems": [{"type": "string"}] * 2, "minItems": 2, "maxItems": 2, "items": False},
        {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string"}},
    ),
    (
        {"title": "T", "type": "array", "prefixItems": [{"type": "string"}, {}], "minItems": 1, "maxItems": 2},
        {"title": "T", "anyOf": [
            {"type": "array", "prefixItems": [{"type": "string"}], "items": {}, "minItems": 1, "maxItems": 1},
            {"type": "array", "prefixItems": [{"type": "string"}, {}], "items": {}, "minItems": 2, "maxItems": 2},
        ]},
    ),
    ({"enum": [[1], ["a"]]}, {"type": "array", "items": {}, "enum": [[1], ["a"]]}),
    (
        {"type": "array", "prefixItems": [{"type": "string"}, {}], "items": False},
        {"type": "array", "prefixItems": [{"type": "string"}, {}], "items": {}, "maxItems": 2},
    ),
    ({"type": "array", "items": False}, {"type": "array", "items": {}, "maxItems": 0}),
    ({"properties": {"a": True, "b": False}}, {"properties": {"a": {}, "b": {"not": {}}}}),
    ({"type": "object", "additionalProperties": False}, {"type": "object", "additionalProperties": False}),
    (
        {"type": ["integer", "string"], "minimum": 1, "pattern": "a", "title": "t"},
        {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "a"}], "title": "t"},
    ),
    ({"type": ["string"], "minLength": 1}, {"type": "string", "minLength": 1}),
    ({"const": "a"}, {"type": "string", "enum": ["a"]}),
    ({"const": None, "title": "t"}, {"type": "null", "title": "t"}),
    (
        {"type": ["string", "null"], "enum": ["a", None, 5]},
        {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
    ),
    ({"enum": [1.5, True]}, {"anyOf": [{"type": "number", "enum": [1.5]}, {"type": "boolean", "enum": [True]}]}),
    ({"type": "number", "enum": [1, 2]}, {"type": "integer", "enum": [1, 2]}),
    (
        {"anyOf": [{"type": "string", "format": "path"}, {"type": "string"}], "default": "a"},
        {"type": "string", "default": "a"},
    ),
    ({"type": "string", "format": "base64"}, {"type": "string", "contentEncoding": "base64"}),
    ({"type": "string", "pattern": r"^(?P<n>a)\-\Z"}, {"type": "string", "pattern": "^(?<n>a)-$"}),
    ({"type": "string", "pattern": "(?i)a", "minLength": 1}, {"type": "string", "minLength": 1}),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ({"type": ["null", "boolean", "number", "string", "array", "object"]}, {}),
    (
        {"oneOf": [{"a": 1}, {"a": 2}], "discriminator": {"propertyName": "a"}},
        {"anyOf": [{"a": 1}, {"a": 2}]},
    ),
    (
        {"enum": [{"type": "array"}], "default": [False]},
        {"type": "object", "enum": [{"type": "array"}], "default": [False]},
    ),
    ({"properties": {"discriminator": {}, "$ref": {}}}, {"properties": {"discriminator": {}, "$ref": {}}}),
    ({"$ref": f"{REF}A", "title": "d", "$defs": {"A": {"type": "null"}}}, {"type": "null", "title": "d"}),
    (
        {"$ref": f"{REF}A", "minItems": 2, "$defs": {"A": {"type": "array", "minItems": 1}}},
        {"allOf": [{"type": "array", "minItems": 1, "items": {}}], "minItems": 2},
    ),
]  # fmt: skip


@each("schema, expected", CASES)
def test_a_schema_is_written_in_the_form_that_hosts_accept(schema: Any, expected: Any) -> None:
    assert to_portable(schema) == expected


def test_a_definition_stands_where_it_is_used() -> None:
    assert portable_schema_of(Line)["properties"] == {"start": POINT, "end": POINT}


def test_a_recursive_definition_stays_a_reference() -> None:
    made = portable_schema_of(Tree)
    assert made["$ref"] == f"{REF}Tree"
    assert {*made["$defs"]} == {"Tree"}
    assert made["$defs"]["Tree"]["properties"]["root"] == POINT


def test_references_are_kept_on_request() -> None:
    assert portable_schema_of(Line, references=True)["$defs"] == {"Point": POINT}


def test_definitions_that_double_with_each_level_stay_references() -> None:
    levels = 40
    definitions: dict[str, Any] = {
        f"d{n}": {"type": "object", "properties": {side: {"$ref": f"{REF}d{n + 1}"} for side in "ab"}}
        for n in range(levels)
    }
    made = to_portable({"$ref": f"{REF}d0", "$defs": {**definitions, f"d{levels}": {"type": "string"}}})
    assert made["$defs"]
    assert len(msgspec.json.encode(made)) < 8192 * levels


def test_tuples_of_several_lengths_do_not_double_with_each_level() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        schema = {"type": "array", "prefixItems": [schema, {"type": "integer"}], "minItems": 1, "maxItems": 2}
    assert len(msgspec.json.encode(to_portable(schema))) < 4096 + 2 * len(msgspec.json.encode(schema))


def test_the_work_for_a_union_is_in_proportion_to_its_options() -> None:
    options = [{"x-marker": [Marker.A, Marker.B][number % 2], "title": str(number)} for number in range(1000)]
    assert not find_excess(lambda: to_portable({"anyOf": options}), 50_000)


def test_what_is_written_in_place_of_references_has_a_limit_in_total() -> None:
    large = {"type": "string", "description": "x" * 4000}
    members = {f"m{number}": {"$ref": f"{REF}large"} for number in range(1000)}
    made = to_portable({"type": "object", "properties": members, "$defs": {"large": large}})
    kept = [member for member in made["properties"].values() if "$ref" in member]
    assert 900 < len(kept) < 1000
    assert made["$defs"] == {"large": large}


def test_titles_of_pydantic_are_left_out_and_those_of_the_user_stay() -> None:
    pydantic = pytest.importorskip("pydantic")
    inner = pydantic.create_model("Inner", some_value=(int, ...), named=(int, pydantic.Field(title="The name")))
    outer = pydantic.create_model("Outer", title=(str, ...), inner=(inner, ...), more=(inner | None, ...))
    schema = portable_schema_of(to_msgspec(outer))
    assert [node["title"] for node in _schemas(schema) if "title" in node] == ["The name", "The name"]
    assert schema["properties"]["title"] == {"type": "string"}


def test_the_schema_of_a_type_is_not_changed() -> None:
    before = msgspec.json.encode(schema_of(Line))
    assert msgspec.json.encode(portable_schema_of(Line)) != before
    assert msgspec.json.encode(schema_of(Line)) == before


def _schemas(node: object) -> Iterator[Mapping[str, Any]]:
    if is_object(node):
        if not isinstance(node.get("title"), Mapping):
            yield node
        for value in node.values():
            yield from _schemas(value)
    elif is_array(node):
        for value in node:
            yield from _schemas(value)
