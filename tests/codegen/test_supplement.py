"""The facts in `supplement.json` agree with the schemas, and hold for revisions that it does not name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpspec_codegen.defaults import Defaults, add_defaults
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.methods import read_error_codes
from mcpspec_codegen.normalise import normalise
from mcpspec_codegen.pipeline import find_gaps
from tests.cases import each
from tests.codegen.helpers import (
    GENERATED,
    NEWEST,
    SCHEMA,
    Schema,
    codegen,
    list_in_errata,
    newest_schema,
    pin,
    read_json,
    schema_folder,
    write_json,
)

_LATER = "2031-05-01"


def _refusal(folder: Path, member: str, value: Any, capsys: pytest.CaptureFixture[str]) -> str:
    path = schema_folder(folder / "schema") / "supplement.json"
    write_json(path, {**read_json(path), member: value})
    assert codegen(folder / "schema", folder / "output", "generate") == 2
    return capsys.readouterr().err


def test_a_name_parameter_must_be_a_required_parameter_of_its_method(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = _refusal(tmp_path, "name_params", {"tools/call": "title"}, capsys)
    assert "supplement.json#/name_params/tools~1call: tools/call does not require the parameter 'title'" in refusal


def test_a_log_level_must_be_one_of_a_revision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refusal = _refusal(tmp_path, "log_levels", ["trace", "debug", "info"], capsys)
    assert "supplement.json#/log_levels: no revision has the level 'trace'; known: alert, critical, debug" in refusal


def test_the_first_revision_must_have_an_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for table in ("features", "error_codes"):
        refusal = _refusal(tmp_path / table, table, {"2031-05-01": {}}, capsys)
        assert f"supplement.json#/{table}: no entry for {NEWEST} or an earlier revision; add one" in refusal


@pytest.mark.long
def test_a_fact_that_a_later_revision_contradicts_is_a_gap_and_no_error(tmp_path: Path) -> None:
    """A person has to state the new fact, but a bump must not wait for that."""

    def change(defs: Schema) -> None:
        defs["LoggingLevel"]["enum"].append("trace")
        call = defs["CallToolRequestParams"]
        call["properties"]["tool"] = call["properties"].pop("name")
        call["required"] = ["tool" if name == "name" else name for name in call["required"]]

    folder = schema_folder(tmp_path / "schema")
    pin(folder, _LATER, json.dumps(newest_schema(change)).encode())
    list_in_errata(folder, _LATER)
    assert codegen(folder, tmp_path / "output", "generate") == 0
    texts = [gap.text for gap in find_gaps(folder) if gap.version == _LATER]
    assert "supplement.json: log_levels lacks 'trace'" in texts
    assert "supplement.json: tools/call does not require the parameter 'name'" in texts


@pytest.mark.long
def test_a_revision_without_an_entry_has_the_features_and_codes_of_the_one_before(tmp_path: Path) -> None:
    folder = schema_folder(tmp_path / "schema")
    pin(folder, _LATER, json.dumps(newest_schema()).encode())
    list_in_errata(folder, _LATER)
    supplement = read_json(folder / "supplement.json")
    for table in ("features", "error_codes"):
        supplement[table] = {**supplement[table], "2099-01-01": {}}
    write_json(folder / "supplement.json", supplement)
    assert codegen(folder, tmp_path / "output", "generate") == 0
    scope: dict[str, Any] = {}
    exec((tmp_path / "output/mcpspec/features.py").read_text(encoding="utf-8"), scope)  # noqa: S102  # just generated
    newest, later = scope["FEATURES"][NEWEST], scope["FEATURES"][_LATER]
    assert later._replace(version=NEWEST) == newest


# Defaults of constructors


@each(
    "entry, cause",
    [
        ({"Result": {"kind": "x"}}, "Result/kind: `Result` requires no member `kind`, in any version"),
        ({"CallToolResult": {"isError": False}}, "isError: `CallToolResult` requires no member `isError`"),
        ({"CacheableResult": {"ttlMs": "0"}}, "ttlMs: '0' does not fit `CacheableResult.ttlMs`, in any version"),
        ({"CacheableResult": {"ttlMs": True}}, "ttlMs: True does not fit `CacheableResult.ttlMs`"),
        ({"CacheableResult": {"ttlMs": -1}}, "ttlMs: -1 does not fit `CacheableResult.ttlMs`"),
        ({"CacheableResult": {"cacheScope": "secret"}}, "'secret' does not fit `CacheableResult.cacheScope`"),
        ({"TextContent": {"type": "image"}}, "'image' does not fit `TextContent.type`"),
    ],
)
def test_a_default_must_fit_a_required_member_of_some_version(
    entry: dict[str, Any], cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = _refusal(tmp_path, "constructor_defaults", entry, capsys)
    assert "supplement.json#/constructor_defaults/" in refusal
    assert cause in refusal
    assert not (tmp_path / "output").exists()


def test_every_default_is_used() -> None:
    defaults = read_json(SCHEMA / "supplement.json")["constructor_defaults"]
    source = (GENERATED / "mcpspec" / f"v{NEWEST.replace('-', '_')}" / "structs.py").read_text(encoding="utf-8")
    for definition, members in defaults.items():
        body = source[source.index(f"\nclass {definition}(") :].partition("\n\n\n")[0]
        assert [value for value in members.values() if f"= constant({json.dumps(value)}" not in body] == []


def test_a_default_holds_for_all_definitions_that_require_the_same_member() -> None:
    required = {"type": "object", "required": ["kind"]}
    schema = {
        "$defs": {
            "Base": {**required, "properties": {"kind": {"type": "string"}}},
            "Same": {**required, "properties": {"kind": {"type": "string"}, "more": {"type": "string"}}},
            "Particular": {**required, "properties": {"kind": {"type": "string"}}},
            "Other": {**required, "properties": {"kind": {"type": "integer"}}},
            "Lenient": {"type": "object", "properties": {"kind": {"type": "string"}}},
        }
    }
    defaults: Defaults = {"Base": {"kind": "usual"}, "Particular": {"kind": "rare"}, "Other": {"kind": "wrong"}}
    document = add_defaults(normalise(schema, ""), defaults)
    stated = {name: node["x"].get("defaults") for name, node in document["$defs"].items()}
    assert stated == {
        "Base": {"kind": "usual"},
        "Same": {"kind": "usual"},
        "Particular": {"kind": "rare"},
        "Other": None,
        "Lenient": None,
    }


@pytest.mark.long
def test_a_default_for_a_later_type_of_a_member_is_left_out(tmp_path: Path) -> None:
    folder = schema_folder(tmp_path / "schema")
    later = newest_schema()
    for node in later["$defs"].values():
        if "ttlMs" in node.get("properties", {}):
            node["properties"]["ttlMs"] = {"type": "string"}
    pin(folder, _LATER, json.dumps(later).encode())
    list_in_errata(folder, _LATER)
    assert codegen(folder, tmp_path / "output", "generate") == 0
    text = (tmp_path / f"output/mcpspec/v{_LATER.replace('-', '_')}/structs.py").read_text(encoding="utf-8")
    assert "ttl_ms: str\n" in text
    assert 'constant("private")' in text


def test_a_code_that_is_carried_over_gives_way_to_that_of_the_schema() -> None:
    document: Schema = {"$defs": {"HeaderMismatchError": {"properties": {"code": {"const": -5}}, "x": {}}}}
    known = {"HEADER_MISMATCH": -32020, "OTHER_CODE": -1}
    found = read_error_codes(document, known, "a.json", is_carried_over=True)
    assert found == {"OTHER_CODE": -1, "HEADER_MISMATCH": -5}
    with pytest.raises(SchemaError, match="the code -5 and the code -32020 would both be named"):
        read_error_codes(document, known, "a.json")
