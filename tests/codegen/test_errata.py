"""Errata: each states the value that it expects, and stops generation if it finds another."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from mcpspec_codegen import errata
from mcpspec_codegen.errors import SchemaError
from tests.codegen.helpers import (
    NEWEST,
    SCHEMA,
    codegen,
    newest_schema,
    pin,
    pinned_versions,
    read_json,
    schema_folder,
    snapshot,
    write_json,
)

_SCHEMA: dict[str, Any] = {
    "$defs": {
        "Thing": {"type": "object", "properties": {"a/b": {"type": ["string", "integer"]}, "c~d": {"type": "integer"}}},
        "Other": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    }
}
_FILE = "schema/2030-01-01.json"


def _entry(pointer: str, old: Any, new: Any, version: str = "2030-01-01") -> errata.Erratum:
    return {"version": version, "pointer": pointer, "old": old, "new": new, "reason": "r", "upstream": "u"}


def _apply(*entries: errata.Erratum) -> dict[str, Any]:
    return errata.apply(_SCHEMA, list(entries), "2030-01-01", _FILE)


@pytest.mark.parametrize(
    ("pointer", "old", "new"),
    [
        pytest.param("/$defs/Other/anyOf/1/type", "integer", "number", id="a value in a list"),
        pytest.param("/$defs/Other/anyOf/0", {"type": "string"}, {"type": "null"}, id="a member of a list"),
        pytest.param("/$defs/Thing/properties/c~0d/type", "integer", "number", id="a name with a tilde"),
        pytest.param("/$defs/Thing/properties/a~1b/type", ["string", "integer"], ["string"], id="a name with a slash"),
        pytest.param("/$defs/Thing/properties/a~1b/type/1", "integer", "number", id="an item of a list of values"),
        pytest.param("/$defs/Other", _SCHEMA["$defs"]["Other"], {"type": "string"}, id="a definition"),
    ],
)
def test_a_patch_replaces_the_value_that_it_expects(pointer: str, old: Any, new: Any) -> None:
    patched = _apply(_entry(pointer, old, new))
    assert patched != _SCHEMA
    assert _apply_back(patched, pointer, new, old) == _SCHEMA


def _apply_back(schema: dict[str, Any], pointer: str, new: Any, old: Any) -> dict[str, Any]:
    return errata.apply(schema, [_entry(pointer, new, old)], "2030-01-01", _FILE)


def test_applying_a_patch_does_not_change_its_argument() -> None:
    before = copy.deepcopy(_SCHEMA)
    _apply(_entry("/$defs/Other/anyOf/1/type", "integer", "number"))
    assert before == _SCHEMA


def test_a_patch_of_another_version_is_not_applied() -> None:
    assert _apply(_entry("/$defs/Other/anyOf/1/type", "integer", "number", version="2029-01-01")) == _SCHEMA


def test_patches_are_applied_in_their_order() -> None:
    patched = _apply(
        _entry("/$defs/Other", _SCHEMA["$defs"]["Other"], {"type": "string"}),
        _entry("/$defs/Other/type", "string", "null"),
    )
    assert patched["$defs"]["Other"] == {"type": "null"}


def test_a_patch_that_finds_another_value_stops_generation() -> None:
    with pytest.raises(SchemaError, match="expected 'boolean', found 'integer'") as caught:
        _apply(_entry("/$defs/Other/anyOf/1/type", "boolean", "number"))
    assert (caught.value.file, caught.value.pointer) == (_FILE, "/$defs/Other/anyOf/1/type")


def test_a_patch_whose_defect_upstream_has_fixed_names_the_entry_to_delete() -> None:
    with pytest.raises(SchemaError, match="upstream has fixed it; delete the entry") as caught:
        _apply(_entry("/$defs/Other/anyOf/1/type", "number", "integer"))
    assert "errata.json entry 2030-01-01 /$defs/Other/anyOf/1/type" in str(caught.value)
    assert caught.value.file == _FILE


@pytest.mark.parametrize(
    "pointer",
    [
        pytest.param("/$defs/Gone/type", id="a definition"),
        pytest.param("/$defs/Thing/required", id="a keyword"),
        pytest.param("/$defs/Thing/properties/e/type", id="a property"),
        pytest.param("/$defs/Other/anyOf/2/type", id="a member of a union"),
        pytest.param("/$defs/Other/anyOf/last", id="a key into a list"),
        pytest.param("/$defs/Other/anyOf/1/type/0", id="an item of what is no longer a list"),
        pytest.param("", id="the whole document"),
    ],
)
def test_a_patch_without_its_place_names_the_place(pointer: str) -> None:
    with pytest.raises(SchemaError, match="the place no longer exists; delete or move the entry") as caught:
        _apply(_entry(pointer, "old", "new"))
    assert (caught.value.file, caught.value.pointer) == (_FILE, pointer)


def test_carrying_over_proposes_the_entries_whose_defect_the_new_schema_has_too() -> None:
    proposed = _entry("/$defs/Other/anyOf/1/type", "integer", "number", version="2029-01-01")
    entries = [
        proposed,
        _entry("/$defs/Other/anyOf/0/type", "boolean", "number", version="2029-01-01"),
        _entry("/$defs/Gone/type", "integer", "number", version="2029-01-01"),
    ]
    assert errata.carry_over(_SCHEMA, entries, "2030-01-01") == [{**proposed, "version": "2030-01-01"}]


def test_carrying_over_proposes_nothing_for_a_place_with_an_entry() -> None:
    entries = [
        _entry("/$defs/Other/anyOf/1/type", "integer", "number", version="2029-01-01"),
        _entry("/$defs/Other/anyOf/1/type", "integer", "number"),
    ]
    assert errata.carry_over(_SCHEMA, entries, "2030-01-01") == []


def test_carrying_over_proposes_a_defect_of_several_versions_once() -> None:
    entries = [
        _entry("/$defs/Other/anyOf/1/type", "integer", "number", version=version)
        for version in ("2028-01-01", "2029-01-01")
    ]
    assert len(errata.carry_over(_SCHEMA, entries, "2030-01-01")) == 1


def test_carrying_over_ignores_an_entry_whose_place_is_no_longer_a_list() -> None:
    entries = [_entry("/$defs/Other/anyOf/1/type/0", "integer", "number", version="2029-01-01")]
    assert errata.carry_over(_SCHEMA, entries, "2030-01-01") == []


_ENTRIES: list[errata.Erratum] = read_json(SCHEMA / "errata.json")


@pytest.mark.parametrize("entry", _ENTRIES, ids=lambda entry: f"{entry['version']} {entry['pointer']}")
def test_a_committed_patch_has_a_reason_and_applies(entry: errata.Erratum) -> None:
    assert list(entry) == ["version", "pointer", "old", "new", "reason", "upstream"]
    assert entry["version"] in pinned_versions()
    assert entry["old"] != entry["new"]
    assert entry["reason"].endswith(".")
    assert entry["upstream"].startswith("schema/")
    schema = read_json(SCHEMA / f"{entry['version']}.json")
    patched = errata.apply(schema, [entry], entry["version"], _FILE)
    assert patched != schema


def test_committed_patches_have_different_places() -> None:
    places = [(entry["version"], entry["pointer"]) for entry in _ENTRIES]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize(
    ("tool", "cause"),
    [
        pytest.param({"type": "object"}, "upstream has fixed it; delete the entry", id="fixed"),
        pytest.param({"type": "array"}, "expected 'string', found 'array'; review the entry", id="changed"),
        pytest.param({}, "the place no longer exists; delete or move the entry", id="gone"),
    ],
)
def test_the_command_fails_if_a_patch_no_longer_matches(
    tool: dict[str, Any], cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = schema_folder(tmp_path / "schema"), tmp_path / "output"
    file = pin(schema, NEWEST, newest_schema(lambda defs: defs.update(Thing=tool)))
    entries = [*read_json(schema / "errata.json"), _entry("/$defs/Thing/type", "string", "object", version=NEWEST)]
    write_json(schema / "errata.json", entries)
    before = snapshot(tmp_path)
    assert codegen(schema, output, "generate") == 2
    error = capsys.readouterr().err
    assert f"{file}#/$defs/Thing/type: errata.json entry {NEWEST} /$defs/Thing/type: {cause}" in error
    assert snapshot(tmp_path) == before


def test_a_patch_of_a_version_that_is_not_pinned_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would never be checked again, and outlive its cause."""
    schema = schema_folder(tmp_path / "schema")
    entries = [*read_json(schema / "errata.json"), _entry("/$defs/Tool/type", "object", "string", version="2024-13-99")]
    write_json(schema / "errata.json", entries)
    assert codegen(schema, tmp_path / "output", "generate") == 2
    assert "2024-13-99" in capsys.readouterr().err
