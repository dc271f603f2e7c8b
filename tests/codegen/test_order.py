"""Members are in the order of upstream's TypeScript, and required ones first where that is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import mcpspec
from mcpspec_codegen import errata
from mcpspec_codegen.normalise import merge_definitions, normalise
from mcpspec_codegen.order import find_order, keep_known, list_members, load_orders
from mcpspec_codegen.source import load
from mcpspec_codegen.typescript import read_order
from tests.cases import each
from tests.codegen.helpers import (
    NEWEST,
    PREVIOUS,
    SCHEMA,
    codegen,
    newest_schema,
    schema_folder,
    small_folder,
    small_schema,
)
from tests.growth import growth

# TypeScript


@each(
    "source, order",
    [
        ("export interface Song { title: string; bars?: number; }", {"Song": ["title", "bars"]}),
        ("interface Song { title: string, bars: number }", {"Song": ["title", "bars"]}),
        ("interface Song { readonly title: string; 'x/y'?: number; \"z\": 1; }", {"Song": ["title", "x/y", "z"]}),
        ("/* interface No { a: 1; b: 2; } */\n// interface No { a: 1; b: 2; }", {}),
        ('const text = "interface No { a: 1; b: 2; }";', {}),
        ("interface One { only: string; }", {}),
        ("interface Open { [key: string]: unknown; b: 1; a: 2; }", {"Open": ["b", "a"]}),
        ("interface Song { b: Map<string, { x: 1; y: 2 }>; a: (x: number) => void; }", {"Song": ["b", "a"]}),
        ("type Song = { title: string; bars: number };", {"Song": ["title", "bars"]}),
        ("type Song = Title | string;\ninterface Title { b: 1; a: 2; }", {"Title": ["b", "a"]}),
    ],
)
def test_members_are_in_the_order_of_their_declaration(source: str, order: dict[str, list[str]]) -> None:
    assert read_order(source) == order


@each(
    "part",
    [
        "/* ", "/", '"\\', "\\'", "'", "interface ", "interface A {", "interface A extends ", "type A = ", "{a", "<",
        "a:",
    ],
)  # fmt: skip
def test_typescript_is_read_in_linear_time(part: str) -> None:
    assert growth(read_order, part) < 10


@each(
    "declaration, order",
    [
        ("interface Song extends Base { title: string; }", ["id", "meta", "title"]),
        ("interface Song extends Base { title: string; id: 1; }", ["meta", "title", "id"]),
        ("interface Song extends Other, Base { title: string; }", ["bars", "meta", "id", "title"]),
        ('interface Song extends Omit<Base, "id"> { title: string; key: string; }', ["meta", "title", "key"]),
        ("interface Song extends Partial<Base> { title: string; }", ["id", "meta", "title"]),
        ('type Song = Pick<Base, "id"> & { title: string };', ["id", "title"]),
        ("type Song = Base & { title: string };", ["id", "meta", "title"]),
        ("type Song = (Base & { title: string }) | { text: string };", ["id", "meta", "title", "text"]),
        ("interface Song extends Unknown<Base> { b: 1; a: 2; }", ["b", "a"]),
        ("interface Song extends Song { b: 1; a: 2; }", ["b", "a"]),
    ],
)
def test_inherited_members_come_first(declaration: str, order: list[str]) -> None:
    base = "interface Base { id: string; meta?: object; } interface Other { bars: 1; meta: 2; }"
    assert read_order(f"{base}\n{declaration}")["Song"] == order


@each(
    "type",
    [
        "{ b: 1; a: 2 }",
        "{ b: 1; a: 2 }[]",
        "Array<{ b: 1; a: 2 }>",
        "null | { b: 1; a: 2 }",
        "{ b: 1 } & { a: 2 }",
        "Both & { a: 2 }",
    ],
)
def test_inline_types_have_an_order_at_their_place(type: str) -> None:
    order = read_order(f"interface Song {{ parts: {type}; title: Both; }} interface Both {{ b: 1; a: 2; }}")
    assert order["Song.parts"] == ["b", "a"]
    assert "Song.title" not in order


@each("source", ["", "{", "}", "interface", "interface X", "interface X {", "type", "type X =", "<", "'"])
def test_text_that_is_no_typescript_has_no_order(source: str) -> None:
    assert read_order(source) == {}


# The compiler


def _attributes(order: dict[str, list[str]] | None) -> list[str]:
    properties = {name: {"type": "string"} for name in ("a", "b", "c", "d")}
    schema = {"$defs": {"Song": {"type": "object", "properties": properties, "required": ["d", "b"]}}}
    return list(normalise(schema, "", None, order)["$defs"]["Song"]["x"]["names"])


def test_known_members_come_first_and_then_required_ones() -> None:
    assert _attributes({"Song": ["c", "a", "d", "b"]}) == ["c", "a", "d", "b"]
    assert _attributes({"Song": ["c", "unknown"]}) == ["c", "b", "d", "a"]
    assert _attributes({}) == ["b", "d", "a", "c"]
    assert _attributes(None) == ["a", "b", "c", "d"]


def test_a_version_without_an_order_has_that_of_the_version_before() -> None:
    orders = {"2025-01-01": {"A": ["x", "y"]}, "2026-01-01": {"A": ["y", "x"]}}
    assert find_order(orders, "2025-06-01") == {"A": ["x", "y"]}
    assert find_order(orders, "ext/tasks") == {"A": ["y", "x"]}
    assert find_order(orders, "2024-01-01") == {}


def test_order_json_names_only_what_the_schemas_have() -> None:
    orders = load_orders(SCHEMA)
    for source in load(SCHEMA):
        if source.version in orders:
            corrected = errata.apply(source.schema, errata.load(SCHEMA), source.version, source.file)
            members = list_members(merge_definitions(corrected, source.file))
            assert keep_known(orders[source.version], members) == (orders[source.version], [])


@each("version", mcpspec.VERSIONS)
def test_both_backends_have_the_members_in_the_order_of_the_typescript(version: str) -> None:
    order = find_order(load_orders(SCHEMA), version)
    module = mcpspec.revision(version)
    compared = 0
    for name, known in order.items():
        kind: Any = getattr(module.structs, name, None)
        model: Any = getattr(module.models, name, None)
        if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            continue
        tag = kind.__struct_config__.tag_field
        members = [field.encode_name for field in msgspec.structs.fields(kind)]
        assert [field.alias or key for key, field in model.model_fields.items()] == [*([tag] if tag else []), *members]
        assert [member for member in members if member in known] == [member for member in known if member in members]
        compared += 1
    assert compared > 40


# Bump


def _bump(folder: Path, typescript: str, *options: str) -> Path:
    schema = schema_folder(folder / "schema", PREVIOUS, NEWEST)
    origin, source = folder / "upstream.json", folder / "schema.ts"
    origin.write_text(json.dumps(newest_schema()), encoding="utf-8")
    source.write_text(typescript, encoding="utf-8")
    status = codegen(schema, folder / "output", "bump", "2031-05-01", str(origin), *options)
    assert status == 0
    return schema


@pytest.mark.long
def test_bump_reads_the_order_and_reports_what_the_schema_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typescript = "interface Root { name: 1; sound: 2; uri: 3; } interface Song { a: 1; b: 2; }"
    schema = _bump(tmp_path, typescript, "--typescript", str(tmp_path / "schema.ts"))
    assert load_orders(schema)["2031-05-01"] == {"Root": ["name", "uri"]}
    report = capsys.readouterr().out.splitlines()
    for name in ("Root.sound", "Song.a", "Song.b"):
        assert f"order.json: {name} is not in the schema, so its place is dropped" in report
    text = (tmp_path / "output/mcpspec/v2031_05_01/structs.py").read_text(encoding="utf-8")
    root = text[text.index("class Root(") :]
    assert root.index("    name:") < root.index("    uri:") < root.index("    meta:")


@pytest.mark.long
def test_bump_without_typescript_changes_no_order(tmp_path: Path) -> None:
    schema = _bump(tmp_path, "")
    assert (schema / "order.json").read_bytes() == (SCHEMA / "order.json").read_bytes()


def test_a_new_file_of_a_version_drops_the_places_that_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = small_folder(tmp_path / "schema", small_schema())

    def change(defs: dict[str, Any]) -> None:
        del defs["Tool"]["properties"]["title"]

    origin = tmp_path / "upstream.json"
    origin.write_text(json.dumps(small_schema(change)), encoding="utf-8")
    assert codegen(schema, tmp_path / "output", "bump", NEWEST, str(origin), "--repin") == 0
    assert "order.json: Tool.title is not in the schema, so its place is dropped" in capsys.readouterr().out
    order = load_orders(schema)[NEWEST]["Tool"]
    assert "title" not in order
    assert "name" in order


@each(
    "content, cause",
    [(b"type A = " + b"(" * 10_000, "nested too deeply"), (b"\xff", "not UTF-8: invalid start byte at byte 0")],
)
def test_typescript_that_cannot_be_read_is_named_and_nothing_is_written(
    content: bytes, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, source = schema_folder(tmp_path / "schema"), tmp_path / "schema.ts"
    source.write_bytes(content)
    origin = tmp_path / "upstream.json"
    origin.write_text(json.dumps(newest_schema()), encoding="utf-8")
    options = ["--typescript", str(source)]
    assert codegen(schema, tmp_path / "output", "bump", "2031-05-01", str(origin), *options) == 2
    assert f"error: {source}#: {cause}" in capsys.readouterr().err
    assert not (schema / "2031-05-01.json").exists()
