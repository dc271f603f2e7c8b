"""How exactly types express each keyword, and the table of docs/keywords.md: `python -m tests.docs.keywords`.

Each case is a schema with some values. They are changed at random, so that most are nearly valid, and decoded by the
types of both libraries. The validator jsonschema says which of them are valid.
"""

from __future__ import annotations

import copy
import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import jsonschema

from mcpspec.support.errors import DecodeError
from mcpspec.support.objects import is_array, is_object
from mcpspec_codegen.packages import BACKENDS, PackageOptions, compile_package, write_package
from tests.codegen.helpers import SCHEMA, Schema, write_json
from tests.docs.markdown import replace_block
from tests.paths import ROOT

__all__ = ["CASES", "PAGE", "Case", "Measured", "compiled_package", "definitions_of", "draw", "measure", "render"]

PAGE: Final = ROOT / "docs" / "keywords.md"
VALUES: Final = 120
"""How many values are drawn for each case."""


@dataclass(frozen=True)
class Case:
    """A schema for the type `T`, which may be a member of an object, and values that fit it or nearly so."""

    keywords: str
    """The keywords that the case is about, as the table shows them."""
    form: str
    """How the types express them: `type`, `constraint` of the library, or `check`."""
    schema: Any
    values: Sequence[Any]
    others: Schema | None = None
    """Definitions beside `T`."""


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _object(properties: Schema, *required: str, **others: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": [*required], **others}


_TEXT, _INTEGER, _NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
_POINT = _object({"x": _INTEGER, "y": _INTEGER}, "x")
_PAIR = {"prefixItems": [_TEXT, _INTEGER]}
_TREE = _object({"name": _TEXT, "children": {"type": "array", "items": _ref("T")}}, "name")

CASES: Final = [
    Case("type", "type", {"type": ["string", "integer", "null"]}, ["a", 1, None]),
    Case("enum", "type", {"enum": ["a", 1, None]}, ["a", 1, None]),
    Case("const", "type", {"const": "a"}, ["a", "b"]),
    Case("const: true", "check", {"const": True}, [True, False, 1]),
    Case("enum of numbers, booleans, lists, objects", "check", {"enum": [1.5, True, "a", [1], {"a": 1}]},
         [1.5, True, "a", [1], {"a": 1}, 1]),
    Case("enum beside bounds", "type", {"enum": ["a", "ab", 1, 20, None], "maxLength": 1, "maximum": 9},
         ["a", "ab", 1, 20, None]),
    Case("const in allOf with bounds", "type", {"allOf": [{"const": 4}, {"type": "integer", "minimum": 1}]}, [4, 5]),
    Case("properties, required", "type", _POINT, [{"x": 1, "y": 2}, {"x": 1}]),
    Case("additionalProperties: false", "type", {**_POINT, "additionalProperties": False}, [{"x": 1, "y": 2}]),
    Case("additionalProperties", "type", {"type": "object", "additionalProperties": _INTEGER}, [{"a": 1}, {}]),
    Case("additionalProperties beside properties", "check", {**_POINT, "additionalProperties": _TEXT},
         [{"x": 1, "a": "b"}, {"x": 1, "y": 2, "c": ""}]),
    Case("patternProperties", "check", {"type": "object", "patternProperties": {"^x-": _INTEGER}},
         [{"x-a": 1, "b": "c"}, {}]),
    Case("patternProperties beside properties", "check",
         {**_POINT, "patternProperties": {"^x-": _TEXT}, "additionalProperties": False}, [{"x": 1, "x-a": "b"}]),
    Case("propertyNames: enum", "type",
         {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": _INTEGER}, [{"a": 1}]),
    Case("propertyNames", "check", {"type": "object", "propertyNames": {"pattern": "^[a-c]+$", "maxLength": 3}},
         [{"a": 1, "abc": 2}, {"abca": 1}]),
    Case("minProperties, maxProperties", "constraint",
         {"type": "object", "additionalProperties": _INTEGER, "minProperties": 1, "maxProperties": 2},
         [{"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}]),
    Case("minProperties beside properties", "check", {**_POINT, "minProperties": 2, "maxProperties": 3},
         [{"x": 1, "y": 2}, {"x": 1, "a": 2}, {"x": 1, "y": 2, "a": 3}]),
    Case("required without properties", "check", {"type": "object", "required": ["a"]}, [{"a": 1}, {"b": 2}]),
    Case("dependentRequired", "check", {**_POINT, "dependentRequired": {"y": ["z"]}},
         [{"x": 1, "y": 2, "z": 3}, {"x": 1}]),
    Case("dependentSchemas", "check", {**_POINT, "dependentSchemas": {"y": {"required": ["z"]}}},
         [{"x": 1, "y": 2, "z": 3}, {"x": 1}]),
    Case("items", "type", {"type": "array", "items": _INTEGER}, [[1, 2], []]),
    Case("items: false", "constraint", {"type": "array", "items": False}, [[], [1]]),
    Case("items: true", "type", {"type": "array", "items": True}, [[], [1, "a"]]),
    Case("prefixItems", "check", {"type": "array", **_PAIR}, [["a", 1], ["a"], ["a", 1, None]]),
    Case("prefixItems, items: false", "check", {"type": "array", **_PAIR, "items": False, "minItems": 2},
         [["a", 1], ["a"]]),
    Case("prefixItems, items", "check", {"type": "array", **_PAIR, "items": _ref("P")},
         [["a", 1, {"x": 1}], ["a", 1]], {"P": _POINT}),
    Case("minItems, maxItems", "constraint", {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 2},
         [["a"], ["a", "b"], ["a", "b", "c"]]),
    Case("uniqueItems", "check", {"type": "array", "uniqueItems": True},
         [[1, True, "a"], [1, 1.0], [{"a": 1}, {"a": 1}]]),
    Case("contains, minContains, maxContains", "check",
         {"type": "array", "contains": _ref("P"), "minContains": 1, "maxContains": 2},
         [[{"x": 1}], [{"x": 1}, 2, {"x": 2}]], {"P": _POINT}),
    Case("minLength, maxLength", "constraint", {"type": "string", "minLength": 1, "maxLength": 3},
         ["a", "abc", "\U0001f600ab"]),
    Case("pattern", "constraint", {"type": "string", "pattern": "^[a-c]+$|[x-z]"}, ["abc", "1x", "ab1"]),
    Case("minimum, maximum", "constraint", {"type": "integer", "minimum": 0, "maximum": 4}, [0, 4, 2]),
    Case("exclusiveMinimum, exclusiveMaximum", "constraint",
         {"type": "number", "exclusiveMinimum": 0.5, "exclusiveMaximum": 2}, [1, 1.5, 0.5]),
    Case("multipleOf of integers", "constraint", {"type": "integer", "multipleOf": 3}, [3, -6, 4]),
    Case("multipleOf", "check", {"type": "number", "multipleOf": 0.5}, [1.5, 2, 0.25]),
    Case("allOf", "type", {"allOf": [_ref("P"), _object({"z": _TEXT}, "z")]}, [{"x": 1, "z": "a"}], {"P": _POINT}),
    Case("anyOf", "type", {"anyOf": [_ref("P"), _TEXT, {"type": "array", "items": _ref("P")}]},
         ["a", {"x": 1}, [{"x": 1}]], {"P": _POINT}),
    Case("anyOf of conditions", "check", {**_POINT, "anyOf": [{"required": ["a"]}, {"required": ["y"]}]},
         [{"x": 1, "a": 2}, {"x": 1, "y": 2}, {"x": 1}]),
    Case("oneOf of exclusive members", "type",
         {"oneOf": [_object({"kind": {"const": kind}, kind: _TEXT}, "kind") for kind in ("a", "b")]},
         [{"kind": "a", "a": "c"}, {"kind": "b"}]),
    Case("oneOf of subtypes that narrow a member", "type",
         {"oneOf": [{"allOf": [_ref("P"), {"properties": {"kind": {"const": kind}}}]} for kind in ("a", "b")]},
         [{"kind": "a"}, {"kind": "b"}], {"P": _object({"kind": _TEXT}, "kind")}),
    Case("oneOf of members that overlap", "check",
         {"oneOf": [_ref("P"), _object({"y": _TEXT}, "y"), _INTEGER, _NUMBER]},
         [{"x": 1}, {"y": "a"}, {"x": 1, "y": "a"}, 1, 1.5], {"P": _POINT}),
    Case("not", "check", {"not": {"type": "string"}}, ["a", 1, None]),
    Case("not beside a type", "check", {**_POINT, "not": {"required": ["y"]}}, [{"x": 1}, {"x": 1, "y": 2}]),
    Case("not: {} of a member", "type", _object({"a": _TEXT, "b": {"not": {}}}), [{"a": "c"}, {}]),
    Case("if, then, else", "check",
         {**_POINT, "if": {"properties": {"x": {"const": 1}}}, "then": {"required": ["y"]},
          "else": {"maxProperties": 1}},
         [{"x": 1, "y": 2}, {"x": 2}, {"x": 2, "y": 1}]),
    Case("$ref", "type", _object({"a": _ref("P")}, "a"), [{"a": {"x": 1}}], {"P": _POINT}),
    Case("$ref beside required", "check", _object({"a": {**_ref("P"), "required": ["y"]}}, "a"),
         [{"a": {"x": 1, "y": 2}}, {"a": {"x": 1}}], {"P": _POINT}),
    Case("$ref beside other keywords", "type", _object({"a": {**_ref("P"), "properties": {"z": _TEXT}}}, "a"),
         [{"a": {"x": 1, "z": "b"}}], {"P": _POINT}),
    Case("recursive objects", "type", _TREE,
         [{"name": "a", "children": [{"name": "b"}, {"name": "c", "children": [{"name": "d", "children": []}]}]}]),
    Case("recursive objects by way of others", "type", _object({"next": _ref("T"), "other": _ref("O")}),
         [{"next": {"other": {"back": {}, "map": {"a": {"back": {"next": {}}}}}}}],
         {"O": _object({"back": _ref("T"), "map": {"type": "object", "additionalProperties": _ref("O")}}, "back")}),
    Case("recursive inline objects", "type", _object({"deep": _object({"again": _ref("T")}, "again")}),
         [{"deep": {"again": {"deep": {"again": {}}}}}]),
    Case("recursive tagged objects", "type",
         _object({"kind": {"const": "form"}, "fields": {"type": "array", "items": {"anyOf": [_ref("T"), _ref("F")]}}},
                 "kind", "fields"),
         [{"kind": "form", "fields": [{"kind": "form", "fields": []}, {"kind": "field"}]}],
         {"F": _object({"kind": {"const": "field"}}, "kind")}),
    Case("recursive unions", "type", {"anyOf": [_TEXT, {"type": "array", "items": _ref("T")}]},
         ["a", ["b", ["c", []]]]),
    Case("recursive unions of objects", "type",
         {"anyOf": [_ref("P"), _ref("Q"), {"type": "array", "items": _ref("T")}]}, [{"x": 1}, [{"a": "b"}, [{"x": 1}]]],
         {"P": _POINT, "Q": _object({"a": _TEXT}, "a")}),
    Case("recursive lists", "type", {"type": "array", "items": _ref("T"), "maxItems": 2}, [[[], [[]]], []]),
    Case("recursive maps", "type", {"type": "object", "additionalProperties": _ref("T")}, [{"a": {"b": {}}, "c": {}}]),
    Case("recursive maps and lists by way of others", "type", {"type": "object", "additionalProperties": _ref("L")},
         [{"a": [{"b": []}], "c": []}], {"L": {"type": "array", "items": {"anyOf": [_ref("T"), _INTEGER]}}}),
    Case("recursive open objects", "type", _object({"sub": _ref("T")}, additionalProperties=True),
         [{"sub": {"sub": {}}, "a": 1}]),
    Case("recursion with checks", "check",
         {"type": "array", "items": _ref("T"), "uniqueItems": True, "maxItems": 3}, [[[], [[]]], [[], []]]),
    Case("recursive objects with checks", "check", {**_TREE, "dependentRequired": {"children": ["x"]}},
         [{"name": "a", "children": [{"name": "b", "children": [], "x": 1}], "x": 2}]),
]  # fmt: skip


_POOL: Final[list[Any]] = [
    None, True, False, 0, 1, 2, 3, -1, 4, 5, 6, 0.5, 1.5, 2.25, "", "a", "ab", "b", "abc", "x-y", "z1", [], [1], ["a"],
    {}, {"a": 1}, {"x": 1}, {"x": 1, "y": 2}, {"kind": "a"},
]  # fmt: skip
_NAMES: Final = ("a", "b", "x", "y", "z", "x-a", "x-b", "abcd", "kind", "name", "children")


def draw(random: Random, values: Sequence[Any]) -> Any:
    """Return one of the values, or one that differs from it in a few places."""
    value = copy.deepcopy(random.choice(values))
    for _ in range(random.choice((0, 1, 1, 2))):
        value = _change(random, value)
    return value


def _change(random: Random, value: Any) -> Any:
    if (is_object(value) or is_array(value)) and value and random.random() < 0.6:
        keys: list[Any] = [*value] if is_object(value) else [*range(len(value))]
        key = random.choice(keys)
        value[key] = _change(random, value[key])
        return value
    if is_object(value) and random.random() < 0.8:
        return _change_members(random, value)
    if is_array(value) and random.random() < 0.8:
        at = random.randint(0, len(value))
        return (
            value[:at]
            + ([copy.deepcopy(random.choice([*value, *_POOL]))] if random.random() < 0.6 else [])
            + value[at:]
        )
    if isinstance(value, str) and random.random() < 0.6:
        return random.choice([value + random.choice("abxz1"), value[:-1], value.upper()])
    if isinstance(value, int | float) and not isinstance(value, bool) and random.random() < 0.6:
        return _without_point(value + random.choice([-1, 1, 0.5, 1e-9, -value]))
    return copy.deepcopy(random.choice(_POOL))


def _without_point(value: float) -> float:
    """Return a number as an integer if it is one: the types know `1.0` as no integer."""
    return int(value) if value == int(value) else value


def _change_members(random: Random, value: dict[str, Any]) -> dict[str, Any]:
    if value and random.random() < 0.4:
        del value[random.choice([*value])]
    else:
        value[random.choice(_NAMES)] = copy.deepcopy(random.choice(_POOL))
    return value


@dataclass(frozen=True)
class Measured:
    """What was found for a case."""

    valid: int
    invalid: int
    differences: dict[str, list[str]]
    """Library → the values that its types accept and jsonschema rejects, or the other way round."""


def measure(cases: Sequence[Case], count: int = VALUES) -> list[Measured]:
    """Compile the cases to one package, and compare its exact types with jsonschema."""
    definitions = definitions_of(cases)
    with compiled_package(definitions) as types:
        return [_measure(f"Case{number}", case, types, definitions, count) for number, case in enumerate(cases)]


def definitions_of(cases: Sequence[Case]) -> Schema:
    """Return the definitions of some cases: `Case0T`, `Case1T`, …, and those beside them."""
    return {name: node for number, case in enumerate(cases) for name, node in _named(f"Case{number}", case).items()}


def _named(name: str, case: Case) -> Schema:
    """Return the definitions of a case, under names of its own."""
    text = json.dumps({"T": case.schema, **(case.others or {})})
    for other in ("T", *(case.others or ())):
        text = text.replace(f'"#/$defs/{other}"', f'"#/$defs/{name}{other}"')
    return {f"{name}{other}": node for other, node in json.loads(text).items()}


@contextmanager
def compiled_package(definitions: Schema, document: Schema | None = None) -> Generator[dict[str, Any]]:
    """Compile definitions, or a document of them, to a package, and yield its modules of exact types by library."""
    with tempfile.TemporaryDirectory() as folder:
        schema = write_json(Path(folder) / "schema.json", document or {"$defs": definitions})
        options = PackageOptions([schema], "measured_types", None, [*BACKENDS.values()])
        write_package(compile_package(SCHEMA, options)[0], Path(folder))
        sys.path.insert(0, folder)
        try:
            yield {name: importlib.import_module(f"measured_types.exact.{name}") for name in BACKENDS}
        finally:
            sys.path.remove(folder)
            for name in [name for name in sys.modules if name.partition(".")[0] == "measured_types"]:
                del sys.modules[name]


def _measure(name: str, case: Case, types: dict[str, Any], definitions: Schema, count: int) -> Measured:
    random = Random(case.keywords)  # a seed, so that the table is the same each time
    values = [*case.values, *(draw(random, case.values) for _ in range(count - len(case.values)))]
    validator: Any = jsonschema.Draft202012Validator({**_ref(name + "T"), "$defs": definitions})
    expected = [bool(validator.is_valid(value)) for value in values]
    differences = {
        library: [
            json.dumps(value)
            for value, is_valid in zip(values, expected, strict=True)
            if is_valid != _accepts(module, name + "T", value)
        ]
        for library, module in types.items()
    }
    return Measured(sum(expected), len(expected) - sum(expected), differences)


def _accepts(module: Any, name: str, value: Any) -> bool:
    outcomes = {_is_accepted(lambda: module.decode(json.dumps(value), getattr(module, name)))}
    outcomes.add(_is_accepted(lambda: module.from_builtins(value, getattr(module, name))))
    assert len(outcomes) == 1, (name, value, outcomes)
    return outcomes.pop()


def _is_accepted(decode: Callable[[], object]) -> bool:
    try:
        decode()
    except DecodeError:
        return False
    return True


def render(measured: Sequence[Measured]) -> str:
    """Render the measurements as a table."""
    lines = ["\n| keywords | in the types as | values | valid | structs differ | models differ |"]
    lines.append("|---|---|---|---|---|---|")
    for case, found in zip(CASES, measured, strict=True):
        counts = [len(found.differences[name]) for name in ("structs", "models")]
        cells = [case.keywords, case.form, found.valid + found.invalid, found.valid, *counts]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replace_block(page, "keywords", render(measure(CASES))), encoding="utf-8")
