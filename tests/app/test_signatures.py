"""Signatures: their schemas, valid and invalid arguments, and the values that a call passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import annotated_types as at
import msgspec
import pytest
from annotated_doc import Doc
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

import typedmcp
from mcpspec.support.error_text import format_path_part
from mcpspec.support.objects import is_array, is_object
from tests.app.argument_strategies import mutations, valid_arguments, validator
from tests.app.function_cases import FUNCTIONS, Case, received
from tests.app.type_cases import (
    TYPES,
    Address,
    Circle,
    Colour,
    Drawing,
    Line,
    Mixed,
    Point,
    Square,
    Strict,
    Tree,
)  # fmt: skip
from tests.cases import each
from tests.strategies import fuzzed
from typedmcp import Context
from typedmcp.app.functions import read_signature
from typedmcp_schemas.arguments import ArgumentError
from typedmcp_schemas.examination import examine
from typedmcp_schemas.signatures import Signature


def _taking(hint: Any) -> Callable[..., Any]:
    def function(x: Any) -> None:
        received.append((x,))

    function.__annotations__["x"] = hint
    return function


CASES: Final = FUNCTIONS | {
    f"x: {name}": Case(_taking(hint), {"x": given}, (gets,)) for name, (hint, given, gets) in TYPES.items()
}

LENIENT: Final = {
    "x: strict model": "Pydantic takes a number in a text for a date",
    "x: tagged Struct": "msgspec needs a tag only where it has to choose",
    "several types": "the same",
}
"""Types that accept more than their schemas say."""

STRICT: Final = {
    "x: Predicate": "a function decides",
    "x: model with a validator": "a function decides",
    "x: Field of a Decimal": "JSON Schema has no limits for texts",
}
"""Types that accept less than their schemas say."""

each_case = each("name", CASES)


def signature_of(name: str) -> Signature:
    return read_signature(CASES[name].function, "tool 'it'")


@each_case
def test_schemas_are_valid_and_accept_the_arguments(name: str) -> None:
    schema = signature_of(name).schema()
    Draft202012Validator.check_schema(schema)
    _references_lead_somewhere(schema, schema)
    assert validator(schema)(CASES[name].arguments)


def _references_lead_somewhere(node: Any, root: Mapping[str, Any]) -> None:
    if is_object(node) and isinstance(reference := node.get("$ref"), str):
        assert reference.removeprefix("#/$defs/") in root["$defs"], reference
    for inner in node.values() if is_object(node) else node if is_array(node) else ():
        _references_lead_somewhere(inner, root)


@each_case
def test_a_function_gets_converted_arguments_over_a_connection(name: str) -> None:
    function, arguments, gets = CASES[name]
    server = typedmcp.Server()
    server.add_tool(function, name="it")

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            result = await client.call_tool("it", arguments)
            assert not result.is_error, result

    received.clear()
    asyncio.run(main())
    assert received[0] == gets
    assert repr(received[0]) == repr(gets)  # the types are the same, too


@each_case
def test_an_argument_is_accepted_if_and_only_if_its_schema_accepts_it(name: str) -> None:
    signature = signature_of(name)
    schema = signature.schema()
    comparison = Comparison(signature, schema)
    for arguments in (CASES[name].arguments, *mutations(CASES[name].arguments, schema)):
        comparison.add(arguments)
    comparison.check(name)
    comparison.check_names(CASES[name].arguments)


@each_case
def test_an_examination_finds_no_fault_in_what_the_schema_accepts_and_changes_nothing(name: str) -> None:
    schema = signature_of(name).schema()
    fits = validator(schema)
    for arguments in (CASES[name].arguments, *mutations(CASES[name].arguments, schema)):
        if fits(arguments):
            assert examine(arguments, schema, is_strict=True, has_formats=False) == (arguments, [], [])
            assert examine(arguments, schema, has_formats=False) == (arguments, [], [])


@each_case
def test_arguments_generated_from_a_schema_are_accepted(name: str) -> None:
    signature = signature_of(name)
    schema = signature.schema()
    comparison = Comparison(signature, schema)
    fuzzed(valid_arguments(schema), 2)(comparison.add)()
    assert name in STRICT or not comparison.strict


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_generated_and_mutated_arguments_are_accepted_if_the_schema_accepts_them(name: str) -> None:
    signature = signature_of(name)
    schema = signature.schema()
    comparison = Comparison(signature, schema)

    def compare(value: dict[str, Any]) -> None:
        for arguments in (value, *mutations(value, schema)):
            comparison.add(arguments)

    fuzzed(valid_arguments(schema), 6)(compare)()
    assert name in LENIENT or not comparison.lenient
    assert name in STRICT or not comparison.strict


class Comparison:
    """Compares which arguments a function accepts with which its schema accepts."""

    def __init__(self, signature: Signature, schema: dict[str, Any]) -> None:
        self._signature = signature
        self._fits = validator(schema)
        self.texts: list[str] = []
        self.lenient: list[Any] = []
        self.strict: list[Any] = []

    def add(self, value: dict[str, Any]) -> None:
        is_valid = self._fits(value)
        try:
            self._signature.bind(value)
        except ArgumentError as error:
            self.texts.append(str(error))
            if is_valid:
                self.strict.append((value, str(error)))
        else:
            if not is_valid:
                self.lenient.append(value)

    def check_names(self, arguments: Mapping[str, Any]) -> None:
        """Check that each error names its argument."""
        names = {"unknown", *arguments, *(parameter.wire for parameter in self._signature.parameters)}
        places = [format_path_part(name).removeprefix(".") for name in names]
        beginnings = ("unknown argument '", *(f"{place}{end}" for place in places for end in ":.["))
        assert not [text for text in self.texts if not text.startswith(beginnings)]

    def check(self, name: str) -> None:
        """Check that function and schema differ for the types in the tables above, and for no others."""
        assert bool(self.lenient) is (name in LENIENT), self.lenient
        assert bool(self.strict) is (name in STRICT), self.strict


# Schemas


DECIMAL: Final = r"^[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|NaN|Infinity)$"


def schema_of(hint: Any) -> Any:
    return read_signature(_taking(hint), "tool 'it'").schema()["properties"]["x"]


@each(
    "name, says",
    [
        ("bytes", {"type": "string", "contentEncoding": "base64"}),
        ("datetime", {"type": "string", "format": "date-time"}),
        ("time", {"type": "string", "format": "time"}),
        ("Decimal", {"anyOf": [{"type": "number"}, {"type": "string", "pattern": DECIMAL}]}),
        ("Path", {"type": "string"}),
        ("Literal of texts", {"type": "string", "enum": ["a", "b"]}),
        ("Literal of both", {
            "anyOf": [{"type": "integer", "enum": [1]}, {"type": "string", "enum": ["a"]}, {"type": "null"}],
        }),
        ("enum of texts", {"type": "string", "enum": ["red", "blue"]}),
        ("IntEnum", {"type": "integer", "enum": [1, 2]}),
        ("enum of all kinds", {
            "anyOf": [{"type": "integer", "enum": [1]}, {"type": "string", "enum": ["two"]}, {"type": "null"}],
        }),
        ("int | None", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("str | Path", {"type": "string"}),
        ("dict of a Literal", {
            "type": "object", "propertyNames": {"type": "string", "enum": ["a", "b"]},
            "additionalProperties": {"type": "integer"},
        }),
        ("dict of dates", {
            "type": "object", "propertyNames": {"type": "string", "format": "date"},
            "additionalProperties": {"type": "integer"},
        }),
        ("Meta", {"type": "integer", "minimum": 1, "maximum": 9}),
        ("Meta, exclusive", {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
        ("annotated_types", {"type": "integer", "minimum": 1, "exclusiveMaximum": 9}),
        ("Len", {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2}),
        ("Field", {
            "type": "integer", "minimum": 1, "maximum": 9, "title": "t", "description": "d", "examples": [3],
        }),
        ("Field multiple_of", {"type": "integer", "multipleOf": 2}),
        ("Field lengths", {"type": "string", "minLength": 2, "maxLength": 3}),
        ("Field pattern", {"type": "string", "pattern": r"^\d{2}$"}),
        ("Field of a dict", {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1}),
        ("Field of a Decimal", {
            "anyOf": [{"type": "number", "minimum": 0, "exclusiveMaximum": 10}, {"type": "string", "pattern": DECIMAL}],
        }),
        ("Field of a union", {
            "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "maxLength": 2}, {"type": "null"}],
        }),
        ("a text as a description", {"type": "integer", "description": "How many"}),
        ("Annotated twice", {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many"}),
        ("dataclass with notes", {
            "title": "Described", "description": "A class with metadata on its fields.", "type": "object",
            "required": ["count"],
            "properties": {
                "count": {"type": "integer", "minimum": 1, "description": "How many"},
                "name": {"type": "string", "maxLength": 3, "description": "Who", "default": "x"},
                "when": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}], "default": None},
            },
        }),
        ("recursive dataclass", {"$ref": "#/$defs/Tree"}),
        ("TypedDict, NotRequired", {
            "title": "Partly", "type": "object", "required": ["a"],
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "maximum": 9}},
        }),
        ("generic dataclass", {
            "title": "Box[int]", "type": "object", "required": ["content"],
            "properties": {"content": {"type": "integer"}, "others": {"type": "array", "items": {"type": "integer"}}},
        }),
    ],
)  # fmt: skip
def test_a_schema_describes_the_type(name: str, says: Any) -> None:
    assert schema_of(TYPES[name][0]) == says


@each(
    "name, default",
    [
        ("a default", 3),
        ("a nested default", {"a": [1]}),
        ("an enum for a default", "red"),
        ("an optional default", None),
        ("a default of another type", "all"),
        ("a tuple for a default", [1, 2]),
        ("a set for a default", [1]),
        ("a struct for a default", {"name": "a", "groups": [], "email": None}),
        ("a model for a default", {"street": "a", "number": 1}),
        ("a date for a default", "2026-01-02"),
        ("a field with a factory", [1]),
    ],
)
def test_a_schema_describes_the_argument(name: str, default: Any) -> None:
    schema = signature_of(name).schema()
    assert "required" not in schema
    assert schema["properties"]["x"]["default"] == default


@each("name", ["a default that json has no form for", "an infinite default"])
def test_a_default_without_a_json_form_is_used_but_not_in_the_schema(name: str) -> None:
    schema = signature_of(name).schema()
    assert "default" not in schema["properties"]["x"]
    assert "required" not in schema


def test_descriptions_come_from_annotated_or_the_docstring() -> None:
    def function(
        noted: Annotated[int, "from a text"],
        field: Annotated[Point, Field(description="from a field")],
        documented: Annotated[int, Doc("from a doc")],
        told: Point,
        silent: int,
    ) -> None:
        """Do it.

        Args:
            noted: not this
            field: nor this
            told: from the docstring
        """

    properties = read_signature(function, "tool 'it'").schema()["properties"]
    assert {name: schema.get("description") for name, schema in properties.items()} == {
        "noted": "from a text",
        "field": "from a field",
        "documented": "from a doc",
        "told": "from the docstring",
        "silent": None,
    }


def test_classes_with_the_same_name_have_definitions_of_their_own() -> None:
    def another() -> Any:
        @dataclass
        class Tree:
            height: float
            kind: Literal["oak", "elm"] = "oak"

        return Tree

    def a_model() -> Any:
        class Tree(BaseModel):
            leaves: list[Tree] = []

        return Tree

    def function(a: Any, b: Any, c: Any, d: Any) -> None: ...

    function.__annotations__.update(a=Tree, b=list[another()], c=dict[str, a_model()], d=list[Tree])  # type: ignore[misc]
    schema = read_signature(function, "tool 'it'").schema()
    fits = validator(schema)
    assert fits({"a": {"value": 1}, "b": [{"height": 1.5}], "c": {"x": {"leaves": [{}]}}, "d": [{"value": 1}]})
    for name, wrong in {"a": {}, "b": [{"value": 1}], "c": {"x": {"leaves": 1}}, "d": [{"height": 1.5}]}.items():
        assert not fits({"a": {"value": 1}, "b": [], "c": {}, "d": [], name: wrong})


# Arguments


class Frozen(msgspec.Struct, frozen=True):
    items: list[int]


@each("given, why", [(5.5, "number"), (1e300, "number"), (True, "boolean"), ("5", "string")])
def test_an_integer_is_neither_another_number_nor_text(given: Any, why: str) -> None:
    with pytest.raises(ArgumentError, match=rf"^x: expected integer, got {why}$"):
        read_signature(_taking(int), "tool 'it'").bind({"x": given})


@each(
    "hint, given, says",
    [
        (list[int], [1, "a"], "x[1]: expected integer, got string"),
        (Line, {"start": {"x": 1}, "end": {"x": "a"}}, "x.end.x: expected integer, got string"),
        (Line, {"start": {"x": 1}}, "x.end: required, but missing"),
        (Strict, {"x": 1, "y": 2}, "x: unknown property 'y'; known: x"),
        (dict[str, Point], {"a": {"x": None}}, "x.a.x: expected integer, got null"),
        (dict[int, str], {"1": "a", "a": "b"}, 'x: key "a": expected integer, got string'),
        (list[Path], ["a", 1], "x[1]: expected string, got integer"),
        (list[Address], [{"street": "a"}, {"street": 1}], "x[1].street: expected string, got integer"),
        (Drawing, {"shape": {"radius": 1}, "more": [{"shape": {"radius": 1}, "title": ""}]},
         "x.more[0].title: expected string of length >= 1"),
        (Circle | Square, {"radius": "a"}, "x.radius: expected number, got string"),
        (Circle | Square, {},
         "x: fits none of Circle | Square: radius: required, but missing; side: required, but missing"),
        (Annotated[Decimal, Field(ge=1)], "0.5", 'x: expected Decimal >= 1, got "0.5"'),
        (Annotated[list[Path], Field(max_length=1)], ["a", "b"], "x: expected array of length <= 1"),
        (Annotated[date, at.Gt(date(2026, 1, 1))], "2026-01-01", 'x: expected date > 2026-01-01, got "2026-01-01"'),
        (Annotated[str, at.Predicate(str.islower)], "A", 'x: expected string for which islower holds, got "A"'),
        (Mixed, "three", 'x: expected 1, "two" or null, got "three"'),
        (set[Frozen], [{"items": [1]}], "x: unhashable type: 'list'"),
        (set[Any], [[1]], "x[0]: expected string, integer, number, boolean or null, got array"),
    ],
)  # fmt: skip
def test_an_argument_that_does_not_fit_is_an_error_with_its_place(hint: Any, given: Any, says: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        read_signature(_taking(hint), "tool 'it'").bind({"x": given})
    assert str(caught.value) == says


@dataclass
class Short:
    a: int = 0


@dataclass
class Long:
    a: int = 0
    b: int = 0


@each("hint", [Short | Long, Long | Short], ids=str)
@each("given, gets", [({"a": 1, "b": 2}, Long(1, 2)), ({"b": 2}, Long(0, 2))])
def test_a_union_picks_the_class_that_knows_most_properties(hint: Any, given: Any, gets: Any) -> None:
    signature = read_signature(_taking(hint), "tool 'it'")
    received.clear()
    signature.call(signature.bind({"x": given}), None)
    assert received == [(gets,)]


@each(
    "arguments, says",
    [
        ({"x": 1, "a": "b"}, "a: expected integer, got string"),
        ({"x": 1, "ctx": 2}, "unknown argument 'ctx'; known: x, y"),
        ({"x": 1, "y_": 2}, "unknown argument 'y_'; known: x, y; did you mean 'y'\\?"),
        ({"a": 1}, "x: required, but missing"),
    ],
)
def test_further_arguments_are_never_taken_for_parameters(arguments: Any, says: str) -> None:
    def function(ctx: Context, x: int, y_: Annotated[int, Field(alias="y")] = 1, **others: int) -> None: ...

    with pytest.raises(ArgumentError, match=f"^{says}$"):
        read_signature(function, "tool 'it'").bind(arguments)


def test_arguments_nested_too_deeply_are_rejected() -> None:
    nested: Any = []
    for _ in range(10_000):
        nested = [nested]
    signature = read_signature(_taking(CASES["x: recursive TypeAliasType"].function.__annotations__["x"]), "tool 'it'")
    with pytest.raises(ArgumentError):
        signature.bind({"x": nested})


# Texts, as prompts and resources get them


@each(
    "hint, text, gets",
    [
        (str, "5", "5"),
        (int, "5", 5),
        (float, "1.5", 1.5),
        (bool, "true", True),
        (int | None, "5", 5),
        (int | str, "5", "5"),
        (Any, "5", "5"),
        (date, "2026-01-02", date(2026, 1, 2)),
        (Path, "a/b", Path("a/b")),
        (Literal["a", "b"], "a", "a"),
        (Literal[1, 2], "2", 2),
        (Mixed, "1", Mixed.ONE),
        (list[int], "[1, 2]", [1, 2]),
        (Point, '{"x": 1}', Point(1)),
        (Address, '{"street": "a"}', Address(street="a")),
        (Circle | Square, '{"side": 1}', Square(1.0)),
        (dict[int, str], '{"1": "a"}', {1: "a"}),
    ],
)
def test_texts_are_converted_to_their_types(hint: Any, text: str, gets: Any) -> None:
    signature = read_signature(_taking(hint), "prompt 'it'")
    received.clear()
    signature.call(signature.bind_texts({"x": text}), None)
    assert received == [(gets,)]
    assert repr(received) == repr([(gets,)])


@each(
    "arguments, says",
    [
        ({"x": "a"}, "x: expected integer, got string"),
        ({}, "x: required, but missing"),
        ({"x": "1", "y": "{"}, "y: expected array or null, got string"),
        ({"x": "1", "z": "1"}, "unknown argument 'z'; known: x, y"),
    ],
)
def test_a_text_that_does_not_fit_is_an_error_that_names_the_argument(arguments: dict[str, str], says: str) -> None:
    def function(x: int, y: list[int] | None = None) -> None: ...

    with pytest.raises(ArgumentError) as caught:
        read_signature(function, "prompt 'it'").bind_texts(arguments)
    assert str(caught.value) == says


def test_an_empty_text_is_the_default_where_the_type_takes_none() -> None:
    def function(
        x: str,
        n: int = 3,
        day: date | None = None,
        kind: Literal["a", "b"] = "a",
        tags: list[str] | None = None,
        note: str = "none",
        title: str | None = None,
        **rest: str,
    ) -> tuple[Any, ...]:
        return x, n, day, kind, tags, note, title, rest

    signature = read_signature(function, "prompt 'it'")
    left_out: dict[str, str] = dict.fromkeys(("x", "n", "day", "kind", "tags", "note", "title", "other"), "")
    bound = signature.bind_texts(left_out)
    assert signature.call(bound, None) == ("", 3, None, "a", None, "", "", {"other": ""})

    def required(n: int, day: date | None) -> None: ...

    with pytest.raises(ArgumentError, match=r'^n: expected integer, got string\nday: expected date, got ""$'):
        read_signature(required, "prompt 'it'").bind_texts({"n": "", "day": ""})


def test_texts_for_rest_are_converted_to_its_type() -> None:
    def function(x: int, **others: int) -> tuple[int, dict[str, int]]:
        return x, others

    signature = read_signature(function, "prompt 'it'")
    assert signature.call(signature.bind_texts({"x": "1", "y": "2"}), None) == (1, {"y": 2})


def test_the_choices_are_the_texts_of_literals_and_enums() -> None:
    def function(
        a: Literal["x", 1, "y"],
        b: Colour | None,
        c: Annotated[Mixed, "which"],
        d: Literal[Colour.RED],
        e: str,
        f: list[Literal["z"]],
    ) -> None: ...

    assert read_signature(function, "prompt 'it'").choices() == {
        "a": ["x", "y"],
        "b": ["red", "blue"],
        "c": ["two"],
        "d": ["red"],
    }


def test_names_that_python_mangles_keep_their_name_in_json() -> None:
    def function(__x: int, y: int = 2, *, __z: int = 3) -> tuple[int, int, int]:
        return __x, y, __z

    signature = read_signature(function, "tool 'it'")
    assert [*signature.schema()["properties"]] == ["__x", "y", "__z"]
    assert signature.call(signature.bind({"__x": 1, "__z": 4}), None) == (1, 2, 4)
    assert signature.call(signature.bind_texts({"__x": "1"}), None) == (1, 2, 3)


# String annotations


def test_string_annotations_may_name_local_types() -> None:
    @dataclass
    class Here:
        x: int

    def inner() -> Signature:
        class There(msgspec.Struct):
            here: int

        def function(a: Here, b: list[There], c: "Here | None" = None) -> None:  # noqa: UP037
            received.append((a, b, c))

        return read_signature(function, "tool 'it'")

    signature = inner()
    received.clear()
    signature.call(signature.bind({"a": {"x": 1}, "b": [{"here": 2}]}), None)
    assert repr(received[0][0]).endswith("Here(x=1)")
    assert received[0][1][0].here == 2


def test_local_names_of_other_modules_are_not_used_as_types() -> None:
    def function(x: Any) -> None: ...

    function.__annotations__["x"] = "pytestconfig"  # a local name in the frames of pytest
    with pytest.raises(typedmcp.UsageError, match="name 'pytestconfig' is not defined"):
        read_signature(function, "tool 'it'")
