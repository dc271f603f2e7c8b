"""The folder `schema/` contains upstream's interface, without upstream's prose."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpspec_codegen.bump import find_differences
from mcpspec_codegen.source import format_interface, strip
from tests.cases import each
from tests.codegen.helpers import (
    NEWEST,
    SCHEMA,
    Json,
    Schema,
    codegen,
    newest_schema,
    pinned_versions,
    read_json,
    schema_folder,
    snapshot,
    write_json,
)

_PROSE: Schema = {"description": "A thing.", "title": "Thing", "examples": [{"description": "x"}], "$comment": "Hm."}
_NAMES: Schema = {name: {"type": "string"} for name in _PROSE}


@each(
    "node, left",
    [
        pytest.param({**_PROSE, "type": "string"}, {"type": "string"}, id="annotations of a scalar"),
        pytest.param(
            {"properties": _NAMES, "required": list(_NAMES)},
            {"properties": _NAMES, "required": list(_NAMES)},
            id="properties of those names",
        ),
        pytest.param(
            {"properties": {name: {**_PROSE, **child} for name, child in _NAMES.items()}},
            {"properties": _NAMES},
            id="annotations of properties of those names",
        ),
        pytest.param({"$defs": {**_NAMES, "Thing": _PROSE}}, {"$defs": {**_NAMES, "Thing": {}}}, id="definitions"),
        pytest.param({"definitions": {"title": _PROSE}}, {"definitions": {"title": {}}}, id="draft-07 definitions"),
        pytest.param(
            {"properties": {"properties": {**_PROSE, "properties": {"title": {**_PROSE, "properties": _NAMES}}}}},
            {"properties": {"properties": {"properties": {"title": {"properties": _NAMES}}}}},
            id="a property named properties",
        ),
        pytest.param(
            {"anyOf": [_PROSE, {"allOf": [_PROSE, {"oneOf": [{**_PROSE, "type": "null"}]}]}]},
            {"anyOf": [{}, {"allOf": [{}, {"oneOf": [{"type": "null"}]}]}]},
            id="members of unions",
        ),
        pytest.param(
            {"items": {**_PROSE, "items": {**_PROSE, "type": "string"}}},
            {"items": {"items": {"type": "string"}}},
            id="items",
        ),
        pytest.param(
            {"additionalProperties": {**_PROSE, "additionalProperties": {**_PROSE, "properties": _NAMES}}},
            {"additionalProperties": {"additionalProperties": {"properties": _NAMES}}},
            id="additionalProperties",
        ),
        pytest.param({"propertyNames": _PROSE, "not": _PROSE}, {"propertyNames": {}, "not": {}}, id="other schemas"),
        pytest.param(
            {"additionalProperties": False, "properties": {"open": {"additionalProperties": True}}},
            {"additionalProperties": False, "properties": {"open": {"additionalProperties": True}}},
            id="booleans",
        ),
        pytest.param(
            {"const": _PROSE, "default": {"title": "x"}, "enum": ["title", _PROSE]},
            {"const": _PROSE, "default": {"title": "x"}, "enum": ["title", _PROSE]},
            id="values that look like prose",
        ),
    ],
)
def test_stripping_removes_prose_and_examples_and_no_property(node: dict[str, Any], left: dict[str, Any]) -> None:
    assert strip(node) == left


def test_stripping_does_not_change_its_argument() -> None:
    node = {"title": "x", "properties": {"a": {"title": "x", "type": "string"}}}
    before = json.dumps(node)
    strip(node)
    assert json.dumps(node) == before


def test_stripping_keeps_the_order_of_keys() -> None:
    node = {
        "type": "object", "title": "T", "required": ["b", "a"],
        "properties": {"b": {"title": "B", "type": "string", "format": "uri"}, "a": {}, "_c": {}},
        "$schema": "x", "additionalProperties": {},
    }  # fmt: skip
    left = strip(node)
    assert list(left) == ["type", "required", "properties", "$schema", "additionalProperties"]
    assert list(left["properties"]) == ["b", "a", "_c"]
    assert list(left["properties"]["b"]) == ["type", "format"]


@each("version", pinned_versions())
def test_a_committed_schema_is_in_the_form_that_the_compiler_writes(version: str) -> None:
    text = (SCHEMA / f"{version}.json").read_text(encoding="utf-8")
    assert format_interface(json.loads(text)) == text


@each("command", ["generate", "check"])
def test_a_schema_whose_hash_is_not_the_pinned_one_is_an_error_that_names_the_file(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = schema_folder(tmp_path / "schema"), tmp_path / "output"
    (schema / f"{NEWEST}.json").write_bytes((schema / f"{NEWEST}.json").read_bytes() + b"\n")
    before = snapshot(tmp_path)
    assert codegen(schema, output, command) == 2
    error = capsys.readouterr().err
    assert str(schema / f"{NEWEST}.json") in error
    assert "PINNED.json" in error
    assert snapshot(tmp_path) == before


def test_a_missing_schema_is_an_error_that_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = schema_folder(tmp_path / "schema")
    (schema / f"{NEWEST}.json").unlink()
    assert codegen(schema, tmp_path / "output", "generate") == 2
    assert str(schema / f"{NEWEST}.json") in capsys.readouterr().err


@pytest.fixture(scope="module")
def official() -> Path:
    """Return the folder of upstream's files, which are not in this repository."""
    folder = os.environ.get("MCP_OFFICIAL_SCHEMA")
    if not folder:
        pytest.skip("MCP_OFFICIAL_SCHEMA names no folder with upstream's schemas")
    return Path(folder)


def _upstream(official: Path, version: str) -> Json:
    upstream: Json = read_json(_upstream_path(official, version))
    return upstream


def _upstream_path(official: Path, version: str) -> Path:
    return official / version.replace("/", "-") / "schema.json"


def _available(official: Path) -> list[str]:
    """List the versions that the folder has, oldest first."""
    return [version for version in pinned_versions() if _upstream_path(official, version).is_file()]


def _stands_for_a_schema(above: tuple[str | int, ...]) -> bool:
    """Return whether an object is a schema, and not a map of schemas, by the keys above it."""
    maps = ("properties", "$defs", "definitions")
    return not above or above[-1] not in maps or not _stands_for_a_schema(above[:-1])


def _without_prose(node: Json, above: tuple[str | int, ...] = ()) -> Json:
    if isinstance(node, list):
        return [_without_prose(item, (*above, index)) for index, item in enumerate(node)]
    if not isinstance(node, dict):
        return node
    prose = ("description", "title", "examples", "$comment") if _stands_for_a_schema(above) else ()
    return {key: _without_prose(value, (*above, key)) for key, value in node.items() if key not in prose}


def _in_order(node: Json) -> object:
    """Convert a value such that comparisons consider the order of keys."""
    if isinstance(node, dict):
        return [(key, _in_order(value)) for key, value in node.items()]
    return [_in_order(item) for item in node] if isinstance(node, list) else node


@each("version", pinned_versions())
def test_our_schema_is_upstreams_without_prose(version: str, official: Path) -> None:
    if version not in _available(official):
        pytest.skip("the folder does not have this version")
    assert _in_order(read_json(SCHEMA / f"{version}.json")) == _in_order(_without_prose(_upstream(official, version)))


def test_schema_check_accepts_our_files(official: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = schema_folder(tmp_path / "schema", *_available(official))
    assert find_differences(schema, official) == []
    assert codegen(schema, Path("nowhere"), "schema-check", str(official)) == 0
    assert capsys.readouterr().out == ""


def test_schema_check_names_the_version_that_differs_or_is_missing(
    official: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    version = _available(official)[0]
    copied = tmp_path / "official" / version
    copied.mkdir(parents=True)
    (copied / "schema.json").write_bytes((official / version / "schema.json").read_bytes() + b"\n")
    schema = schema_folder(tmp_path / "schema", version, "ext/tasks")
    assert codegen(schema, tmp_path / "output", "schema-check", str(tmp_path / "official")) == 1
    lines = capsys.readouterr().out.splitlines()
    assert f"{version}: the sha256 of upstream's file differs from the one in PINNED.json" in lines
    assert any(line.startswith("ext/tasks: upstream's file is missing") for line in lines)


def test_schema_check_names_a_version_whose_schema_differs_from_upstreams_without_prose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, upstream = schema_folder(tmp_path / "schema"), tmp_path / "official" / NEWEST / "schema.json"
    upstream.parent.mkdir(parents=True)
    write_json(upstream, newest_schema(lambda defs: defs["Tool"].update(description="Something to call.")))
    _pin_upstream(schema, upstream)
    assert codegen(schema, tmp_path / "output", "schema-check", str(tmp_path / "official")) == 0
    write_json(upstream, newest_schema(lambda defs: defs["Tool"]["required"].remove("name")))
    _pin_upstream(schema, upstream)
    assert codegen(schema, tmp_path / "output", "schema-check", str(tmp_path / "official")) == 1
    assert f"{NEWEST}: our file differs from upstream's without prose" in capsys.readouterr().out


def _pin_upstream(schema: Path, upstream: Path) -> None:
    pinned = read_json(schema / "PINNED.json")
    pinned[NEWEST]["upstream_sha256"] = hashlib.sha256(upstream.read_bytes()).hexdigest()
    write_json(schema / "PINNED.json", pinned)


_RUN = 8
"""As many consecutive words are no coincidence."""


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)}


def _descriptions(node: Json) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _descriptions(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "description" and isinstance(value, str):
                yield value
            yield from _descriptions(value)


def _texts(table: dict[str, Json], path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _texts(value, (*path, key))
        else:
            yield ".".join((*path, key)), str(value)


def test_our_descriptions_share_no_eight_consecutive_words_with_upstreams(official: Path) -> None:
    descriptions = [text for version in _available(official) for text in _descriptions(_upstream(official, version))]
    assert len(descriptions) > 1000
    theirs = {run for text in descriptions for run in _runs(text)}
    ours = tomllib.loads((SCHEMA / "docs.toml").read_text(encoding="utf-8"))
    assert [place for place, text in _texts(ours) if _runs(text) & theirs] == []
