"""Keywords that no type expresses: in the protocol's own types, in their errors and schemas, and what is ignored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter, ValidationError

from mcpspec.support.structs import schema_hook
from mcpspec_codegen.__main__ import main
from tests.cases import each
from tests.codegen.helpers import SCHEMA, Schema, compiled, python, write_json
from tests.docs.keywords import CASES, compiled_package, definitions_of

_TEXT: Schema = {"type": "string"}
_POINT: Schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}

_IMPORT_ALL = """
import importlib, pkgutil, mcpspec
for module in pkgutil.walk_packages(mcpspec.__path__, "mcpspec."):
    found = importlib.import_module(module.name)
    for name in getattr(found, "__all__", ()):
        getattr(found, name)
from mcpspec import LATEST, revision
for types in (revision(LATEST).structs, revision(LATEST).exact.models):
    tool = types.decode('{"name": "a", "inputSchema": {"type": "object"}, "novel0": ["a", "b"]}', types.Tool)
    assert types.to_builtins(tool)["novel0"] == ["a", "b"]
"""


def test_a_revision_with_every_keyword_is_whole(tmp_path: Path) -> None:
    """Every name of every module can be imported, those of `mcpspec.compat` included."""
    named = definitions_of(CASES)

    def add(defs: Schema) -> None:
        defs.update(named)
        members = [{"type": "array", "items": _TEXT, "uniqueItems": True}, {**_TEXT, "pattern": "^a"}]
        members += [{"$ref": f"#/$defs/Case{number}T"} for number in range(len(CASES))]
        defs["Tool"]["properties"].update({f"novel{number}": member for number, member in enumerate(members)})

    python(compiled(tmp_path, add), _IMPORT_ALL)


_FAULTS: list[tuple[str, Schema, Any, str]] = [
    ("unique", {"type": "array", "uniqueItems": True}, ["a", "b", "a"],
     "v[2]: expected items that differ, got one again"),
    ("prefix", {"type": "array", "prefixItems": [_TEXT, {"type": "integer"}]}, ["a", "b"],
     'v[1]: expected integer, got "b"'),
    ("contains", {"type": "array", "contains": {"const": 1}}, [2],
     'v: expected at least 1 items that fit {"const": 1}, got 0'),
    ("members", {**_POINT, "minProperties": 2}, {"x": 1}, "v: expected at least 2 members, got 1"),
    ("entries", {"type": "object", "minProperties": 1}, {}, "v: expected at least 1 members, got 0"),
    ("others", {**_POINT, "additionalProperties": _TEXT}, {"x": 1, "y": 2}, "v.y: expected string, got 2"),
    ("names", {"type": "object", "propertyNames": {"pattern": "^a"}}, {"b": 1},
     'v.b: not allowed as a name: expected a text that matches ^a, got "b"'),
    ("dependent", {**_POINT, "dependentRequired": {"x": ["y"]}}, {"x": 1}, "v.y: required beside x, but missing"),
    ("constant", {"const": True}, False, "v: expected true, got false"),
    ("multiple", {"type": "number", "multipleOf": 0.1}, 0.25, "v: expected a multiple of 0.1, got 0.25"),
    ("whole", {"type": "integer", "multipleOf": 2}, 3, "v: expected a multiple of 2, got 3"),
    ("pattern", {**_TEXT, "pattern": "^a"}, "b", 'v: expected a text that matches ^a, got "b"'),
    ("pattern beside format", {**_TEXT, "format": "uri", "pattern": "^a"}, "b",
     'v: expected a text that matches ^a, got "b"'),
    ("not", {"not": {"type": "null"}}, None, 'v: expected not to fit {"type": "null"}'),
    ("type first", {**_POINT, "minProperties": 2}, {"x": "1"}, 'v.x: expected integer, got "1"'),
    ("union", {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "uniqueItems": True}]}, ["a", "a"],
     "v[1]: expected items that differ, got one again"),
]  # fmt: skip


def test_errors_of_both_libraries_have_the_place_and_the_cause() -> None:
    named = {f"T{n}": {"type": "object", "properties": {"v": case[1]}} for n, case in enumerate(_FAULTS)}
    with compiled_package(named) as libraries:
        found = {
            (library, case[0]): _error(types, f"T{number}", {"v": case[2]})
            for number, case in enumerate(_FAULTS)
            for library, types in libraries.items()
        }
    assert found == {(library, case[0]): case[3] for library in libraries for case in _FAULTS}


def _error(types: Any, name: str, value: Any) -> str:
    try:
        types.decode(json.dumps(value), getattr(types, name))
    except types.DecodeError as error:
        return str(error)
    return "no error"


def test_a_check_is_in_the_schemas_of_types() -> None:
    """Schemas of types accept their values, and reject others but where the check refers to other types."""
    named = definitions_of(CASES)
    loose = {case.keywords for case in CASES if case.form == "check" and "$ref" in json.dumps(case.schema)}
    faults: list[tuple[str, str, Any]] = []
    with compiled_package(named) as libraries:
        for number, case in enumerate(CASES):
            expected: Any = Draft202012Validator({"$ref": f"#/$defs/Case{number}T", "$defs": named})
            structs: Any = getattr(libraries["structs"], f"Case{number}T")
            models: Any = getattr(libraries["models"], f"Case{number}T")
            made = {
                "structs": msgspec.json.schema(structs, schema_hook=schema_hook),
                "models": TypeAdapter(models).json_schema(),
            }
            for library, schema in made.items():
                validator: Any = Draft202012Validator(schema)
                for value in case.values:
                    accepted, is_valid = validator.is_valid(value), expected.is_valid(value)
                    if accepted != is_valid and (is_valid or case.keywords not in loose):
                        faults.append((library, case.keywords, value))
    assert faults == []


def test_constructors_of_models_check() -> None:
    with compiled_package({"T": {**_POINT, "additionalProperties": _TEXT}}) as libraries:
        made = libraries["models"].T(x=1, y="a")
        assert made.model_extra == {"y": "a"}
        with pytest.raises(ValidationError, match="y: expected string, got 2"):
            libraries["models"].T(x=1, y=2)
        value = libraries["structs"].T(x=1)
        value["y"] = 2
        with pytest.raises(libraries["structs"].DecodeError, match="y: expected string, got 2"):
            libraries["structs"].validate(value)


def test_types_without_a_check_cost_nothing() -> None:
    code = (
        "import sys; from mcpspec.v2026_07_28 import structs, models\n"
        "for types in (structs, models):\n"
        '    types.decode(b\'{"name": "a", "inputSchema": {"type": "object"}}\', types.Tool)\n'
        'assert "mcpspec.support.checks" not in sys.modules'
    )
    python(Path(SCHEMA).parent / "generated", code)


_DRAFTS: list[tuple[str, Schema, Any, bool]] = [
    ("http://json-schema.org/draft-07/schema#", {"items": [_TEXT], "additionalItems": False}, ["a"], True),
    ("http://json-schema.org/draft-07/schema#", {"items": [_TEXT], "additionalItems": False}, ["a", "b"], False),
    ("http://json-schema.org/draft-07/schema#", {"items": [_TEXT]}, ["a", 1], True),
    ("https://json-schema.org/draft/2020-12/schema", {"prefixItems": [_TEXT], "items": False}, ["a", "b"], False),
]


@each("dialect, array, value, is_valid", _DRAFTS)
def test_lists_of_items_are_those_of_their_draft(
    dialect: str, array: Schema, value: Any, is_valid: bool, tmp_path: Path
) -> None:
    schema = {"$schema": dialect, "$defs": {"T": {"type": "array", **array}}}
    with compiled_package({}, schema) as libraries:
        outcomes = {library: _error(types, "T", value) == "no error" for library, types in libraries.items()}
    assert outcomes == dict.fromkeys(libraries, is_valid)


def test_what_is_ignored_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    beside = {"$ref": "#/definitions/Point", "required": ["y"]}
    members = {"a": {**_TEXT, "x-order": 1}, "b": {**_TEXT, "x-order": 2, "contentEncoding": "base64"}, "c": beside}
    definitions = {"T": {"type": "object", "properties": members}, "Point": _POINT}
    path = write_json(tmp_path / "own.json", {"definitions": definitions, "x-version": 1})
    assert main(["compile", str(path), "--package", "ignored_keywords", "--out", str(tmp_path)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("ignored")]
    assert lines == [
        "ignored: `contentEncoding` at /definitions/T/properties/b/contentEncoding",
        "ignored: `x-order` at /definitions/T/properties/a/x-order and 1 more",
        "ignored: `x-version` at /x-version",
        "ignored: `/definitions/T/properties/c/required`: draft-07 ignores what is beside a `$ref`; declare 2020-12 in "
        "`$schema`, or use `allOf`",
    ]


_NAMES: dict[str, str] = {
    **{name: f"{name}Definition" for name in ("Any", "Literal", "Field", "Struct", "Model", "Meta", "None")},
    "foo-bar": "FooBar", "tree": "Tree", "2fast": "Type2fast", "Record<string,string>": "RecordStringString",
    "a/b~c": "ABC", "Plain": "Plain", "Annotated": "Annotated",
}  # fmt: skip


@each("key", ["$defs", "definitions"])
def test_each_definition_has_a_name_that_a_class_can_have(key: str) -> None:
    """References may spell a name with escapes."""
    escaped = {name: quote(name.replace("~", "~0").replace("/", "~1")) for name in _NAMES}
    members = {f"m{n}": {"$ref": f"#/{key}/{escaped[name]}"} for n, name in enumerate(_NAMES)}
    all_of_them = {"type": "object", "properties": members, "required": [*members]}
    document = {key: {**dict.fromkeys(_NAMES, _POINT), "Whole": all_of_them}}
    with compiled_package({}, document) as libraries:
        for types in libraries.values():
            whole = types.decode(json.dumps({member: {"x": n} for n, member in enumerate(members)}), types.Whole)
            found = [type(getattr(whole, member)).__name__ for member in members]
            assert found == [*_NAMES.values()]
            assert {*_NAMES.values()} <= {*types.__all__}


def test_members_of_reserved_names_have_attributes() -> None:
    members = {"dict": "dict__", "dict_": "dict_", "2fast": "field_2fast", "class": "class_", "int": "int_"}
    node = {"type": "object", "properties": dict.fromkeys(members, _TEXT), "required": [*members]}
    with compiled_package({"T": node}) as libraries:
        for types in libraries.values():
            made = types.decode(json.dumps({name: name for name in members}), types.T)
            assert {name: getattr(made, attribute) for name, attribute in members.items()} == {n: n for n in members}
            assert json.loads(types.encode(made)) == {name: name for name in members}
