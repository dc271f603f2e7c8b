"""Invalid input: exit status 2; file, place and cause on standard error; nothing is written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.codegen.helpers import (
    NEWEST,
    Change,
    Schema,
    codegen,
    pin,
    small_folder,
    small_schema,
    snapshot,
)


@dataclass(frozen=True, slots=True)
class Bad:
    """The newest schema with a mistake."""

    name: str
    content: bytes
    pointer: str
    cause: str
    """A part of the expected message."""


def _changed(name: str, change: Change, pointer: str, cause: str) -> Bad:
    return Bad(name, json.dumps(small_schema(change)).encode(), pointer, cause)


def _field(schema: Any, **others: Any) -> Change:
    """Add a field `novel` to `Tool`, and make further changes."""
    return lambda defs: defs["Tool"]["properties"].update(novel=schema, **others)


def _defs(**definitions: Any) -> Change:
    return lambda defs: defs.update(definitions)


def _message(method: Any, *unions: str, name: str = "NovelRequest") -> Change:
    """Add a message to the unions."""
    message: Schema = {
        "type": "object",
        "properties": {
            "id": {"$ref": "#/$defs/RequestId"},
            "jsonrpc": {"const": "2.0", "type": "string"},
            "method": method,
            "params": {"$ref": "#/$defs/RequestParams"},
        },
        "required": ["id", "jsonrpc", "method", "params"],
    }

    def change(defs: Schema) -> None:
        defs[name] = message
        for union in unions:
            defs[union]["anyOf"].append({"$ref": f"#/$defs/{name}"})

    return change


def _both(*changes: Change) -> Change:
    def change(defs: Schema) -> None:
        for part in changes:
            part(defs)

    return change


def _required(defs: Schema) -> None:
    defs["Tool"]["required"].append("novel")


def _nested(depth: int) -> Schema:
    return {"type": "array", "items": _nested(depth - 1)} if depth else {"type": "string"}


_TEXT = {"type": "string"}
_NOVEL = "/$defs/Tool/properties/novel"

_NOT_SCHEMAS = [
    Bad("nothing", b"", "", "not JSON"),
    Bad("not JSON", json.dumps(small_schema()).encode()[:-1], "", "not JSON"),
    Bad("not UTF-8", b'{"$defs": {"Thing": {"type": "string", "const": "\xff"}}}', "", "not JSON"),
    Bad("too deep", b'{"$defs": ' + b'{"a": ' * 100_000, "", "nested too deeply"),
    _changed("lists of lists of lists", _field(_nested(150)), "", "nested too deeply"),
    Bad("a list", json.dumps([small_schema()]).encode(), "", "expected a JSON object"),
    Bad("a string", b'"schema"', "", "expected a JSON object"),
    Bad("no definitions", json.dumps({"type": "object"}).encode(), "", "expected a schema with `$defs`"),
    Bad("empty definitions", json.dumps({"$defs": {}}).encode(), "", "expected a schema with `$defs`"),
    Bad("a list of definitions", json.dumps({"$defs": [_TEXT]}).encode(), "", "expected a schema with `$defs`"),
]

_BAD_NODES = [
    _changed("a reference to nothing", _field({"$ref": "#/$defs/Gone"}), f"{_NOVEL}/$ref", "to no definition"),
    _changed("a reference to a file", _field({"$ref": "a.json#/$defs/Tool"}), f"{_NOVEL}/$ref", "to no definition"),
    _changed("a reference to a URL", _field({"$ref": "https://a.org/Tool"}), f"{_NOVEL}/$ref", "to no definition"),
    _changed("a reference to a file of a definition's name", _field({"$ref": "Cursor"}), f"{_NOVEL}/$ref", "`$ref`"),
    _changed("a reference to a property", _field({"$ref": "#/$defs/Tool/properties/name"}), f"{_NOVEL}/$ref", "`$ref`"),
    _changed("a reference to a number", _field({"$ref": 1}), f"{_NOVEL}/$ref", "to no definition"),
    _changed("an unknown keyword", _field({"optional": True}), f"{_NOVEL}/optional", "unknown keyword `optional`"),
    _changed("a misspelled keyword", _field({"requried": []}), f"{_NOVEL}/requried", "did you mean `required`?"),
    _changed(
        "an unknown keyword of items",
        _field({"type": "array", "items": {"vendorRank": {}}}),
        f"{_NOVEL}/items/vendorRank",
        "unknown keyword `vendorRank`; one of your own has a name that begins with `x-`",
    ),
    _changed("a keyword of OpenAPI", _field({**_TEXT, "nullable": True}), f"{_NOVEL}/nullable", "write null as one of"),
    _changed(
        "a limit by what was evaluated",
        _field({"type": "object", "unevaluatedProperties": False}),
        f"{_NOVEL}/unevaluatedProperties",
        "write `additionalProperties` in an object with all properties",
    ),
    _changed(
        "a pattern of another language", _field({**_TEXT, "pattern": "["}), f"{_NOVEL}/pattern", "Python understands"
    ),
    _changed("a pattern of any value", _field({"pattern": "^a"}), f"{_NOVEL}/pattern", "expected it beside the type"),
    _changed("a condition without one", _field({**_TEXT, "then": {}}), f"{_NOVEL}/then", "expected it beside `if`"),
    _changed("a step of nothing", _field({"type": "integer", "multipleOf": 0}), f"{_NOVEL}/multipleOf", "out of range"),
    _changed("an unknown type", _field({"type": "text"}), f"{_NOVEL}/type", "unknown type 'text'"),
    _changed("an unknown type among others", _field({"type": ["null", "any"]}), f"{_NOVEL}/type", "unknown type"),
    _changed("an object for a type", _field({"type": {"const": "string"}}), f"{_NOVEL}/type", "unknown type"),
    _changed("a number for a type", _field({"type": 5}), f"{_NOVEL}/type", "type"),
    _changed("an object of type names", _field({"type": {"string": {}}}), f"{_NOVEL}/type", "type"),
    _changed("a text for a property", _field("string"), _NOVEL, "expected a schema, got str"),
    _changed("a list for a property", _field([_TEXT]), _NOVEL, "expected a schema, got list"),
    _changed("false in a union", _field({"anyOf": [_TEXT, False]}), f"{_NOVEL}/anyOf/1", "no value fits `false`"),
    _changed("a text for a definition", _defs(Thing="string"), "/$defs/Thing", "expected a schema, got str"),
    _changed("an object for a union", _field({"anyOf": _TEXT}), f"{_NOVEL}/anyOf", "`anyOf` has the wrong type"),
    _changed("a list for properties", _field({"properties": [_TEXT]}), f"{_NOVEL}/properties", "wrong type"),
    _changed("a union of nothing", _field({"anyOf": []}), f"{_NOVEL}/anyOf", "anyOf"),
    _changed("an enum of nothing", _field({"enum": []}), f"{_NOVEL}/enum", "non-empty"),
    _changed("a text for a bound", _field({"type": "integer", "minimum": "low"}), f"{_NOVEL}/minimum", "minimum"),
    _changed("a required property that is not there", _required, "/$defs/Tool/required", "unknown property: 'novel'"),
    _changed(
        "a required property that is no name",
        _field({"properties": {"a": _TEXT}, "required": [{"a": 1}]}),
        f"{_NOVEL}/required",
        "list of names",
    ),
    _changed("true for required", _field({**_TEXT, "required": True}), f"{_NOVEL}/required", "list of names"),
]

_OBJECT_A: Schema = {"type": "object", "properties": {"a": _TEXT}}
_OBJECT_B: Schema = {"type": "object", "properties": {"b": _TEXT}}
_CLOSED: Schema = {**_OBJECT_A, "additionalProperties": False}
_J = {"$ref": "#/$defs/J"}
_EXCLUDED = "`additionalProperties` of a part of `allOf` limits `b`, which another part declares"
_ITSELF = "the definition is itself, or one of its own alternatives"
_WRONG_TYPE = "`type` beside `anyOf` excludes values of a member"
_BOTH_CONSTANTS = "`const` beside `enum` is not supported"


def _contradiction(type: str, reason: str, **bounds: Any) -> tuple[str, Schema, str, str]:
    return f"{bounds}", {"A": {"type": type, **bounds}}, f"/$defs/A/{next(iter(bounds))}", reason


_CONTRADICTIONS = [
    _contradiction("integer", "no value fits `minimum` 2 beside `maximum` 1", minimum=2, maximum=1),
    _contradiction("number", "no value fits", exclusiveMinimum=1, maximum=1),
    _contradiction("integer", "no value fits", exclusiveMinimum=1, exclusiveMaximum=2),
    _contradiction("integer", "no value fits", minimum=0.25, maximum=0.75),
    _contradiction("string", "`minLength` 2 is more than `maxLength` 1", minLength=2, maxLength=1),
    _contradiction("array", "`minItems` 2 is more than `maxItems` 1", minItems=2, maxItems=1),
    _contradiction("array", "is more than `maxContains` 1", minContains=2, maxContains=1, contains={}),
    _contradiction("object", "is more than `maxProperties` 1", minProperties=2, maxProperties=1),
    _contradiction("object", "more members are required", maxProperties=1, required=["a", "b"]),
    (
        "bounds of two parts",
        {"A": {"allOf": [{"type": "integer", "minimum": 2}, {"type": "integer", "maximum": 1}]}},
        "/$defs/A",
        "no value fits `minimum` 2 beside `maximum` 1",
    ),
]

_IGNORED: list[tuple[str, Schema, str, str]] = [
    ("a closed part", {"A": {"allOf": [_CLOSED, _OBJECT_B]}}, "/$defs/A", _EXCLUDED),
    (
        "a reference to a closed part",
        {"C": _CLOSED, "A": {"allOf": [{"$ref": "#/$defs/C"}, _OBJECT_B]}},
        "/$defs/A",
        _EXCLUDED,
    ),
    (
        "a map as a part",
        {"A": {"allOf": [{"type": "object", "additionalProperties": {"type": "integer"}}, _OBJECT_B]}},
        "/$defs/A",
        _EXCLUDED,
    ),
    (
        "an empty object as a part",
        {"A": {"allOf": [_OBJECT_B, {"type": "object", "additionalProperties": False}]}},
        "/$defs/A",
        _EXCLUDED,
    ),
    ("a definition that is itself", {"J": {"anyOf": [_J]}}, "/$defs/J", _ITSELF),
    ("a definition by way of another", {"J": {"$ref": "#/$defs/K"}, "K": _J}, "/$defs/J", _ITSELF),
    ("a definition that adds to itself", {"J": {"allOf": [_J, _OBJECT_A]}}, "/$defs/J", _ITSELF),
    (
        "a type that excludes a scalar member",
        {"A": {"type": "string", "anyOf": [_TEXT, {"type": "integer"}]}},
        "/$defs/A/type",
        _WRONG_TYPE,
    ),
    (
        "a type that excludes a member by reference",
        {"B": {"type": "integer"}, "A": {"type": "object", "anyOf": [_OBJECT_A, {"$ref": "#/$defs/B"}]}},
        "/$defs/A/type",
        _WRONG_TYPE,
    ),
    ("a type beside any member", {"A": {"type": "object", "anyOf": [_OBJECT_A, {}]}}, "/$defs/A/type", _WRONG_TYPE),
    ("properties of a string", {"A": {**_OBJECT_A, "type": "string"}}, "/$defs/A", "`properties` limits values"),
    (
        "properties of a string by parts",
        {"A": {"allOf": [_TEXT, {"properties": {"a": _TEXT}}]}},
        "/$defs/A",
        "`properties` limits values of the type object only",
    ),
    ("properties of any value", {"A": {"properties": {"a": _TEXT}}}, "/$defs/A", "expected `type: object`"),
    ("required of any value", {"A": {"properties": {"a": {}}, "required": ["a"]}}, "/$defs/A", "`type: object`"),
    ("members of any value", {"A": {"additionalProperties": _TEXT}}, "/$defs/A", "`additionalProperties` limits"),
    ("items of any value", {"A": {"items": _TEXT}}, "/$defs/A", "expected `type: array`"),
    ("members of a list", {"A": {"type": "array", "additionalProperties": False}}, "/$defs/A", "`type: object`"),
    ("a constant beside others", {"A": {"const": "a", "enum": ["b", "c"]}}, "/$defs/A/enum", _BOTH_CONSTANTS),
    ("a boolean beside constants", {"A": {"const": True, "enum": ["b"]}}, "/$defs/A/enum", _BOTH_CONSTANTS),
    (
        "two constants by parts",
        {"A": {"allOf": [{"const": "a"}, {"enum": ["b"]}]}},
        "/$defs/A",
        "no constant in common",
    ),
    (
        "a constant beside a bound",
        {"A": {**_TEXT, "enum": ["a", "bc"], "minLength": 3}},
        "/$defs/A",
        "no constant fits `minLength` beside it",
    ),
    (
        "a constant of another type in a union",
        {"A": {"anyOf": [{"const": "a"}, {"const": "b", "type": "integer"}]}},
        "/$defs/A/anyOf/1",
        "is of type string, not integer",
    ),
    ("no type", {"A": {"type": []}}, "/$defs/A/type", "`type` is empty"),
]
"""Keywords that the types would ignore, or apply to more values than the schema."""

_IGNORED_KEYWORDS = [
    _changed(name, _defs(**defs), pointer, cause) for name, defs, pointer, cause in [*_IGNORED, *_CONTRADICTIONS]
]

_BAD_WHOLES = [
    _changed(
        "two properties of one name",
        _field(_TEXT, fooBar=_TEXT, foo_bar=_TEXT),
        "/$defs/Tool/properties",
        "`fooBar` and `foo_bar` would both be named `foo_bar`",
    ),
    _changed(
        "two properties of one name but for their namespaces",
        _field({"type": "object", "properties": {"a.org/size": _TEXT, "b.org/size": _TEXT}}),
        "/$defs/ToolNovel/properties",
        "`a.org/size` and `b.org/size` would both be named `size`",
    ),
    _changed("a property that is no name", _field(_TEXT, **{"--": _TEXT}), "/$defs/Tool/properties", "no Python name"),
    _changed("a definition that is no name", _defs(**{"§": _TEXT}), "/$defs/§", "no class can have"),
    _changed(
        "parts that give a property two types",
        _defs(Both={"allOf": [{"$ref": "#/$defs/Tool"}, {"properties": {"name": {"type": "integer"}}}]}),
        "/$defs/Both",
        "the parts of `allOf` give one property two types",
    ),
    _changed(
        "parts of two types",
        _defs(Both={"allOf": [_TEXT, {"type": "object", "properties": {}}]}),
        "/$defs/Both",
        "the parts of `allOf` differ in `type`",
    ),
    _changed(
        "two messages for one method",
        _message({"const": "tools/list", "type": "string"}, "ClientRequest"),
        "/$defs/NovelRequest",
        "a second message for the method 'tools/list'",
    ),
    _changed(
        "two methods for one handler",
        _message({"const": "novel/do", "type": "string"}, "ClientRequest", name="ListToolsNotification"),
        "/$defs/ListToolsNotification",
        "'tools/list' and 'novel/do' would both be handled by `list_tools`",
    ),
    _changed(
        "two methods for one constant",
        _both(
            _message({"const": "novel/do", "type": "string"}, "ClientRequest", name="DoNovelRequest"),
            _message({"const": "novel_do", "type": "string"}, "ClientRequest", name="NovelRequest"),
        ),
        "/$defs/",
        "NOVEL_DO",
    ),
    _changed(
        "a method that is called like an error code",
        _message({"const": "parse/error", "type": "string"}, "ClientRequest"),
        "/$defs/NovelRequest",
        "PARSE_ERROR",
    ),
    _changed(
        "a message of any method",
        _message({"type": "string"}, "ClientRequest"),
        "/$defs/NovelRequest",
        "method",
    ),
    _changed(
        "a message that is a string",
        _both(_defs(Word=_TEXT), lambda defs: defs["ClientRequest"]["anyOf"].append({"$ref": "#/$defs/Word"})),
        "/$defs/",
        "Word",
    ),
]

_CASES = [*_NOT_SCHEMAS, *_BAD_NODES, *_IGNORED_KEYWORDS, *_BAD_WHOLES]

_ONE_OF_EACH_KIND = {
    "not JSON", "a list", "no definitions", "a reference to nothing", "an unknown keyword", "an unknown type",
    "a text for a property", "a required property that is not there", "two properties of one name",
    "a definition that is itself", "parts that give a property two types", "two messages for one method",
}  # fmt: skip
"""The cases for `bump`, which compiles like `generate`, from another place."""


@each("bad", _CASES, ids=lambda bad: bad.name)
def test_generate_rejects_an_invalid_schema_and_writes_nothing(
    bad: Bad, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = small_folder(tmp_path / "schema", bad.content), tmp_path / "output"
    file = schema / f"{NEWEST}.json"
    before = snapshot(tmp_path)
    assert codegen(schema, output, "generate") == 2
    error = capsys.readouterr().err
    assert f"error: {file}#{bad.pointer}" in error
    assert bad.cause in error
    assert snapshot(tmp_path) == before


def test_the_cases_for_bump_are_among_the_others() -> None:
    assert {bad.name for bad in _CASES} >= _ONE_OF_EACH_KIND


@each("bad", [bad for bad in _CASES if bad.name in _ONE_OF_EACH_KIND], ids=lambda bad: bad.name)
def test_bump_rejects_an_invalid_schema_and_writes_nothing(
    bad: Bad, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output, origin = (
        small_folder(tmp_path / "schema", small_schema()),
        tmp_path / "output",
        tmp_path / "upstream.json",
    )
    origin.write_bytes(bad.content)
    before = snapshot(tmp_path)
    assert codegen(schema, output, "bump", NEWEST, str(origin), "--repin") == 2
    error = capsys.readouterr().err
    assert f"error: {origin}#{bad.pointer}" in error
    assert bad.cause in error
    assert snapshot(tmp_path) == before


@pytest.mark.long
def test_generated_files_stay_if_a_later_schema_cannot_be_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = small_folder(tmp_path / "schema", small_schema()), tmp_path / "output"
    assert codegen(schema, output, "generate") == 0
    before = snapshot(output)
    pin(schema, NEWEST, small_schema(_required))
    assert codegen(schema, output, "generate") == 2
    assert "names an unknown property" in capsys.readouterr().err
    assert snapshot(output) == before


@each(
    "name, content, cause",
    [
        pytest.param("PINNED.json", "{", "Input data was truncated", id="cut off"),
        pytest.param("PINNED.json", "[]", "Expected `object`, got `array`", id="a list of pins"),
        pytest.param("PINNED.json", '{"2026-07-28": {"sha256": 1}}', "Expected `str`, got `int`", id="no text"),
        pytest.param("PINNED.json", '{"../x": %s}', "is not a version", id="a version that is a path"),
        pytest.param("PINNED.json", '{"ext/class": %s}', "is a keyword of Python", id="a version that is a keyword"),
        pytest.param("errata.json", "{}", "Expected `array`, got `object`", id="no list of patches"),
        pytest.param("errata.json", "[{}]", "missing required field", id="a patch of nothing"),
        pytest.param("supplement.json", "{}", "missing required field", id="an empty supplement"),
        pytest.param("docs.toml", "definitions = 1", "Expected `object`, got `int`", id="no table of words"),
        pytest.param("docs.toml", "]", "Invalid", id="not TOML"),
        pytest.param("docs.toml", None, "No such file", id="missing"),
        pytest.param(
            "docs.toml",
            '[definitions]\nTool = """a\\"\\"\\"b"""\n[properties]\n[properties-of]\n',
            "expected one line of text",
            id="words that end their docstring",
        ),
    ],
)
def test_an_invalid_file_beside_the_schemas_is_named(
    name: str, content: str | None, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = small_folder(tmp_path / "schema", small_schema()), tmp_path / "output"
    path = schema / name
    pin = json.dumps(next(iter(json.loads((schema / "PINNED.json").read_bytes()).values())))
    path.unlink()
    if content is not None:
        path.write_text(content.replace("%s", pin), encoding="utf-8")
    assert codegen(schema, output, "generate") == 2
    error = capsys.readouterr().err
    assert f"error: {path}#" in error
    assert cause in error
    assert not output.exists()


def test_a_missing_schema_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert codegen(tmp_path / "nowhere", tmp_path / "output", "generate") == 2
    assert f"error: {tmp_path / 'nowhere' / 'PINNED.json'}#: No such file" in capsys.readouterr().err
