"""Arguments of tools from `key=value`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each
from tests.typedmcp_cli.command import case_id
from typedmcp_cli.arguments import parse_arguments
from typedmcp_cli.schemas import describe_type
from typedmcp_cli.status import CommandExit

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "nothing": {"type": "null"},
        "maybe": {"type": ["integer", "null"]},
        "name": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "number"}},
        "unit": {"enum": ["C", "F", 3, None]},
        "level": {"const": 7},
        "point": {"$ref": "#/$defs/Point"},
        "points": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
        "any": {},
        "always": True,
        "odd:": {"type": "string"},
        "loops": {"$ref": "#/$defs/Loops"},
        "tree": {"$ref": "#/$defs/Tree"},
    },
    "$defs": {
        "Point": {"type": "object"},
        "Loop": {"$ref": "#/$defs/Loop"},
        "Loops": {"anyOf": [*[{"$ref": "#/$defs/Loops"}] * 20, {"type": "integer"}]},
        "Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        "Trees": {
            "anyOf": [
                {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Trees"}, {"const": n}]}} for n in range(300)
            ]
        },
    },
    "additionalProperties": False,
}

READ: list[tuple[list[str], dict[str, Any]]] = [
    (["text=3"], {"text": "3"}),
    (["text="], {"text": ""}),
    (["text=a=b"], {"text": "a=b"}),
    (["text=null"], {"text": "null"}),
    (["text:=null"], {"text": None}),
    (["count=3"], {"count": 3}),
    (["count=-3"], {"count": -3}),
    (["ratio=3"], {"ratio": 3}),
    (["ratio=2.5e3"], {"ratio": 2500.0}),
    (["flag=true", "nothing=null"], {"flag": True, "nothing": None}),
    (["maybe=null"], {"maybe": None}),
    (["maybe=4"], {"maybe": 4}),
    (["name=null"], {"name": "null"}),
    (["either=4"], {"either": [4]}),
    (["either=[4, 5]"], {"either": [4, 5]}),
    (["tags=a"], {"tags": ["a"]}),
    (["tags=a", "tags=b"], {"tags": ["a", "b"]}),
    (['tags=["a", "b"]', "tags=c"], {"tags": ["a", "b", "c"]}),
    (["numbers=1", "numbers=2.5"], {"numbers": [1, 2.5]}),
    (["unit=F"], {"unit": "F"}),
    (["unit=3"], {"unit": 3}),
    (["unit=null"], {"unit": None}),
    (["unit=K"], {"unit": "K"}),
    (["level=7"], {"level": 7}),
    (['point={"x": 1}'], {"point": {"x": 1}}),
    (['points={"x": 1}'], {"points": [{"x": 1}]}),
    (["any=3", "always=yes"], {"any": 3, "always": "yes"}),
    (["any:=[1]"], {"any": [1]}),
    (["odd:=3"], {"odd:": "3"}),
    (["text=ä"], {"text": "ä"}),
    (["loops=3"], {"loops": 3}),
    (["tree=[[]]"], {"tree": [[]]}),
]

REJECTED = [
    ("text", "'text' is not an argument; expected key=value, key:=json or key=@file"),
    ("=3", "'=3' is not an argument; expected key=value, key:=json or key=@file"),
    (":=3", "':=3' is not an argument; expected key=value, key:=json or key=@file"),
    ("txt=a", "it has no argument 'txt'; did you mean text?"),
    ("count=three", "count: expected integer, got 'three'"),
    ("count=1.5", "count: expected integer, got '1.5'"),
    ("count=true", "count: expected integer, got 'true'"),
    ("flag=yes", "flag: expected boolean, got 'yes'"),
    ("either=x", "either: expected integer, got 'x'"),
    ("numbers=x", "numbers: expected number, got 'x'"),
    ("point=x", "point: not JSON: JSON is malformed: invalid character (byte 0)"),
    ("any:=[", "any: not JSON: Input data was truncated"),
    ("loops=x", "loops: expected integer, got 'x'"),
    ("tree=x", "tree: not JSON: JSON is malformed: invalid character (byte 0)"),
    ("text=@nowhere", "text: cannot read 'nowhere': No such file or directory"),
    ("text=\udcff", "'text=\\udcff' is not UTF-8"),
]


@each("pairs, read", READ, ids=case_id)
def test_the_schema_decides_how_a_value_is_read(pairs: list[str], read: dict[str, Any]) -> None:
    found = parse_arguments(pairs, SCHEMA, None, "it")
    assert found == read
    assert [type(value) for value in found.values()] == [type(value) for value in read.values()]


@each("pair, expected", REJECTED, ids=[ascii(pair) for pair, _ in REJECTED])
def test_an_unreadable_argument_is_rejected_in_one_line(pair: str, expected: str) -> None:
    with pytest.raises(CommandExit) as caught:
        parse_arguments([pair], SCHEMA, None, "it")
    assert str(caught.value) == expected
    assert caught.value.status == 2


def test_a_value_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("3\n", encoding="utf-8")
    pairs = [f"text=@{tmp_path / 'text'}", f"count=@{tmp_path / 'text'}", f"any:=@{tmp_path / 'text'}"]
    assert parse_arguments(pairs, SCHEMA, None, "it") == {"text": "3\n", "count": 3, "any": 3}
    (tmp_path / "text").write_bytes(b"\xff")
    with pytest.raises(CommandExit, match=r"text: cannot read '.*': not UTF-8"):
        parse_arguments(pairs, SCHEMA, None, "it")


def test_a_repeated_key_is_rejected_unless_it_is_an_array() -> None:
    with pytest.raises(CommandExit, match="count is given twice but is not an array"):
        parse_arguments(["count=1", "count=2"], SCHEMA, None, "it")


def test_unknown_keys_are_accepted_if_the_schema_allows_them() -> None:
    assert parse_arguments(["a=1", "b=x"], {"type": "object"}, None, "it") == {"a": 1, "b": "x"}
    assert parse_arguments(["a=1"], {"properties": "nonsense", "required": 3}, None, "it") == {"a": 1}


def test_missing_arguments_are_named_with_their_types_unless_json_is_given() -> None:
    schema = {"properties": SCHEMA["properties"], "required": ["text", "tags"]}
    with pytest.raises(CommandExit, match=r"it requires tags \(array of string\); add tags=…"):
        parse_arguments(["text=a"], schema, None, "it")
    assert parse_arguments([], schema, "{}", "it") == {}


def test_key_value_pairs_override_json() -> None:
    assert parse_arguments(["count=2"], SCHEMA, '{"count": 1, "other": 1}', "it") == {"count": 2, "other": 1}


@each("text, expected", [("[1]", "expected a JSON object"), ("{", "not JSON: Input data was truncated")])
def test_json_arguments_must_be_an_object(text: str, expected: str) -> None:
    with pytest.raises(CommandExit, match=f"--json-args: {expected}"):
        parse_arguments([], SCHEMA, text, "it")


def test_json_on_standard_input_must_be_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "\xff"}')))
    with pytest.raises(CommandExit, match="--json-args: not JSON"):
        parse_arguments([], SCHEMA, "-", "it")


@each(
    "schema, text",
    [
        ({}, "any"),
        (True, "any"),
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
        ({"const": "ä"}, '"ä"'),
        (
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
            "array of (string | integer)",
        ),
        ({"type": "array"}, "array"),
        ({"$ref": "#/$defs/Point"}, "object"),
        ({"$ref": "#/$defs/Loop"}, "any"),
        ({"$ref": "#/$defs/Loops"}, "integer"),
        ({"$ref": "#/$defs/Tree"}, "array of array of array of array"),
        ({"anyOf": []}, "any"),
        ({"$ref": "https://elsewhere/schema"}, "any"),
    ],
    ids=str,
)
def test_a_schema_is_described_in_a_few_words(schema: Any, text: str) -> None:
    assert describe_type(schema, SCHEMA) == text


@each(
    "schema",
    [
        {"enum": [*range(100_000)]},
        {"anyOf": [{"const": number} for number in range(100_000)]},
        {"$ref": "#/$defs/Trees"},
    ],
    ids=["many values", "many alternatives", "alternatives of alternatives"],
)
def test_a_long_description_is_cut(schema: dict[str, Any]) -> None:
    text = describe_type(schema, SCHEMA)
    assert text.endswith(" | …")
    assert len(text) < 10_000
