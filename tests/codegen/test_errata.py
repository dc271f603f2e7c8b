"""Errata: each names a definition, a defect in it, and the versions that have it. A listed version must have it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspec_codegen import errata
from mcpspec_codegen.errata import Erratum
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.source import parse
from tests.cases import each
from tests.codegen.helpers import (
    NEWEST,
    SCHEMA,
    codegen,
    newest_schema,
    pin,
    schema_folder,
    snapshot,
    write_json,
)

_VERSION, _OLDER, _OTHER = "2030-01-01", "2029-01-01", "2028-01-01"
_FILE = f"schema/{_VERSION}.json"
_WRONG, _RIGHT = ["string", "integer"], ["string", "number"]


def _schema(**definitions: Any) -> dict[str, Any]:
    return {"$defs": definitions}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _entry(*versions: str, pointer: str = "", **members: Any) -> Erratum:
    facts: dict[str, Any] = {"definition": "Answer", "keyword": "type", "wrong": _WRONG, "right": _RIGHT, **members}
    return Erratum(**facts, pointer=pointer, reason="r", upstream="u", versions=[*versions])


def _apply(schema: dict[str, Any], *entries: Erratum) -> dict[str, Any]:
    return errata.apply(schema, [*entries], _VERSION, _FILE)


_HOLDERS: dict[str, Callable[[Any], Any]] = {
    "the definition itself": lambda node: node,
    "a property": lambda node: _object(text={"type": "string"}, value=node),
    "a property whose name has a slash": lambda node: _object(**{"a/b~c": node}),
    "a property that is called like a keyword": lambda node: _object(properties=_object(type=node)),
    "a member of a union": lambda node: {"anyOf": [{"type": "null"}, node]},
    "the values of a map": lambda node: _object(content={"additionalProperties": {"anyOf": [{"type": "null"}, node]}}),
    "the items of a list": lambda node: {"type": "array", "items": node},
}


@each("holder", _HOLDERS.values(), ids=_HOLDERS)
def test_a_defect_is_corrected_wherever_in_its_definition_it_is(holder: Callable[[Any], Any]) -> None:
    other = holder({"type": _WRONG})
    patched = _apply(_schema(Answer=holder({"type": _WRONG}), Other=other), _entry(_VERSION))
    assert patched == _schema(Answer=holder({"type": _RIGHT}), Other=other)


@each("key", ["$defs", "definitions"])
def test_the_definitions_of_all_drafts_are_found(key: str) -> None:
    assert _apply({key: {"Answer": {"type": _WRONG}}}, _entry(_VERSION)) == {key: {"Answer": {"type": _RIGHT}}}


def test_any_keyword_can_be_corrected() -> None:
    node = _object(a={"type": "string", "minLength": 1}, b={"type": "string"})
    schema = _schema(Answer={**node, "required": ["a", "b"]})
    patched = _apply(
        schema,
        _entry(_VERSION, keyword="required", wrong=["a", "b"], right=["a"]),
        _entry(_VERSION, keyword="minLength", wrong=1, right=2),
    )
    assert patched["$defs"]["Answer"]["required"] == ["a"]
    assert patched["$defs"]["Answer"]["properties"]["a"]["minLength"] == 2


def test_a_property_that_is_called_like_the_keyword_is_not_the_keyword() -> None:
    schema = _schema(Answer=_object(type={"type": "string"}, enum={"type": _WRONG}))
    assert _apply(schema, _entry(_VERSION))["$defs"]["Answer"] == _object(
        type={"type": "string"}, enum={"type": _RIGHT}
    )


def test_the_order_of_types_does_not_matter() -> None:
    assert _apply(_schema(Answer={"type": _WRONG[::-1]}), _entry(_VERSION)) == _schema(Answer={"type": _RIGHT})


def test_a_number_is_not_a_boolean() -> None:
    with pytest.raises(SchemaError, match="neither the wrong value true nor the right one"):
        _apply(_schema(Answer={"const": 1}), _entry(_VERSION, keyword="const", wrong=True, right=False))


def test_applying_errata_does_not_change_the_schema_or_the_entry() -> None:
    schema, entry = _schema(Answer={"type": _WRONG}), _entry(_VERSION)
    before = copy.deepcopy((schema, entry))
    _apply(schema, entry)["$defs"]["Answer"]["type"].append("null")
    assert (schema, entry) == before


def test_an_erratum_of_another_version_is_not_applied() -> None:
    schema = _schema(Answer={"type": _WRONG})
    assert _apply(schema, _entry(_OLDER)) == schema


def test_an_erratum_is_applied_to_a_version_that_was_carried_over_and_not_to_an_unclear_one() -> None:
    schema = _schema(Answer={"type": _WRONG})
    assert _apply(schema, _entry(_OLDER, carried_over=[_VERSION])) == _schema(Answer={"type": _RIGHT})
    assert _apply(schema, _entry(_OLDER, unclear=[_VERSION])) == schema


_TWO = _object(value={"type": _WRONG}, other={"type": _WRONG})
_CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "mended": ({"Answer": {"type": _RIGHT}}, "upstream has mended it"),
    "a third value": ({"Answer": {"type": ["string"]}}, "neither the wrong value"),
    "the keyword is gone": ({"Answer": {}}, "neither the wrong value"),
    "the definition is gone": ({"Reply": {"type": _WRONG}}, "the definition is gone"),
    "moved to another definition": (
        {"Answer": _object(value={"$ref": "#/$defs/Value"}), "Value": {"type": _WRONG}},
        "neither the wrong value",
    ),
    "at several places": ({"Answer": _TWO}, "at several places (/properties/value, /properties/other); add `pointer`"),
    "mended at one of several places": (
        {"Answer": _object(value={"type": _WRONG}, other={"type": _RIGHT})},
        "at several places (/properties/value, /properties/other); add `pointer`",
    ),
}
"""What may have become of a defect."""


@each("definitions, reason", _CHANGES.values(), ids=_CHANGES)
def test_generation_stops_if_a_listed_version_does_not_have_the_defect(definitions: Any, reason: str) -> None:
    with pytest.raises(SchemaError) as caught:
        _apply(_schema(**definitions), _entry(_OLDER, _VERSION))
    assert (caught.value.file, caught.value.pointer) == (_FILE, "/$defs/Answer")
    assert reason in caught.value.reason
    assert "errata.json: Answer, `type`: " in caught.value.reason
    assert f"remove {_VERSION} from the entry, or correct the entry" in caught.value.reason


def test_a_pointer_names_the_part_of_the_definition() -> None:
    patched = _apply(_schema(Answer=_TWO), _entry(_VERSION, pointer="/properties/value"))
    assert patched == _schema(Answer=_object(value={"type": _RIGHT}, other={"type": _WRONG}))


def test_a_pointer_does_not_name_a_property_whose_name_only_begins_like_it() -> None:
    with pytest.raises(SchemaError, match="neither the wrong value"):
        _apply(_schema(Answer=_object(values={"type": _WRONG})), _entry(_VERSION, pointer="/properties/value"))


# Importing a schema


def _update(entry: Erratum, definitions: Any, older: str | None = _OLDER) -> tuple[list[Erratum], list[str]]:
    return errata.update([entry], _schema(**definitions), _VERSION, older)


_DEFECT = {"Answer": _object(moved={"items": {"type": _WRONG}})}


@each("older", [_OLDER, None, "2027-01-01"])
def test_a_defect_that_a_new_schema_has_is_carried_over(older: str | None) -> None:
    assert _update(_entry(_OLDER), _DEFECT, older) == (
        [_entry(_OLDER, carried_over=[_VERSION])],
        ["carried over: Answer, `type`: r"],
    )


def test_a_defect_that_the_new_file_of_a_version_still_has_is_not_reported() -> None:
    for entry in (_entry(_OLDER, _VERSION), _entry(_OLDER, carried_over=[_VERSION])):
        assert _update(entry, _DEFECT) == ([entry], [])


def test_a_defect_that_a_new_schema_does_not_have_any_more_is_reported_as_mended() -> None:
    report = ["mended by upstream: Answer, `type`"]
    for entry in (_entry(_OLDER), _entry(_OLDER, _VERSION), _entry(_OLDER, carried_over=[_VERSION])):
        assert _update(entry, _CHANGES["mended"][0]) == ([_entry(_OLDER)], report)


def test_an_erratum_that_no_version_has_any_more_is_deleted() -> None:
    report = ["mended by upstream: Answer, `type`; no other version has it, so the entry is deleted"]
    assert _update(_entry(_VERSION), _CHANGES["mended"][0]) == ([], report)


_UNCLEAR = {name: change for name, change in _CHANGES.items() if name != "mended"}


@each("definitions, reason", _UNCLEAR.values(), ids=_UNCLEAR)
def test_a_defect_that_is_neither_there_nor_mended_is_unclear(definitions: Any, reason: str) -> None:
    for entry in (_entry(_OLDER), _entry(_OLDER, _VERSION), _entry(_OLDER, unclear=[_VERSION])):
        updated, (line,) = _update(entry, definitions)
        assert updated == [_entry(_OLDER, unclear=[_VERSION])]
        assert line.startswith("unclear, so not applied: Answer, `type`: ")
        assert reason in line


@each("case, place", [("moved to another definition", "Value"), ("the definition is gone", "Reply")])
def test_the_report_names_the_definition_to_which_a_defect_may_have_moved(case: str, place: str) -> None:
    _, report = _update(_entry(_OLDER), _CHANGES[case][0])
    assert report[0].endswith(f"; the wrong value is in {place}")


@each("definitions", [value for value, _ in _CHANGES.values()], ids=_CHANGES)
def test_an_erratum_that_the_revision_before_did_not_have_is_mentioned_only_if_the_defect_is_there(
    definitions: Any,
) -> None:
    assert _update(_entry(_OTHER), definitions) == ([_entry(_OTHER)], [])


@given(
    before=st.sampled_from(list(_HOLDERS.values())),
    after=st.sampled_from(list(_HOLDERS.values())),
    members=st.dictionaries(st.sampled_from("abc"), st.sampled_from(["string", "boolean", ["string", "null"]])),
)
def test_a_carried_over_erratum_applies_to_the_schema_that_it_was_carried_over_to(
    before: Callable[[Any], Any], after: Callable[[Any], Any], members: dict[str, Any]
) -> None:
    """Wherever the defect was, wherever it is now, and whatever else the definition has."""

    def holder(node: Any) -> Any:
        others = {name: {"type": kind} for name, kind in members.items()}
        return {"anyOf": [after(node), _object(**others)]}

    entry = _entry(_OLDER)
    errata.apply(_schema(Answer=before({"type": _WRONG})), [entry], _OLDER, _FILE)
    schema = _schema(Answer=holder({"type": _WRONG}))
    updated, _ = errata.update([entry], schema, _VERSION, _OLDER)
    assert errata.apply(schema, updated, _VERSION, _FILE) == _schema(Answer=holder({"type": _RIGHT}))


def test_a_version_can_be_removed_from_all_errata() -> None:
    entries = [_entry(_OLDER, _VERSION), _entry(_VERSION), _entry(_OLDER, carried_over=[_VERSION], unclear=[_OTHER])]
    assert errata.remove_version(entries, _VERSION) == [_entry(_OLDER), _entry(_OLDER, unclear=[_OTHER])]


def test_what_a_person_has_to_look_at_is_listed() -> None:
    entries = [_entry(_VERSION), _entry(_OLDER, carried_over=[_VERSION]), _entry(_OLDER, unclear=[_VERSION])]
    assert errata.list_unreviewed(entries, _OLDER) == []
    assert [line.partition(";")[0] for line in errata.list_unreviewed(entries, _VERSION)] == [
        "errata.json: Answer, `type` was carried over",
        "errata.json: Answer, `type` is unclear",
    ]


# The file


_ENTRIES = errata.load(SCHEMA)


@each("entry", _ENTRIES, ids=lambda entry: entry.name)
def test_a_committed_erratum_has_a_reason_and_applies(entry: Erratum) -> None:
    assert entry.reason.endswith(".")
    assert entry.upstream.startswith("schema/")
    for version in entry.affected:
        schema = parse((SCHEMA / f"{version}.json").read_bytes(), version)
        assert errata.apply(schema, [entry], version, _FILE) != schema


def test_committed_errata_have_different_places() -> None:
    places = [
        (entry.definition, entry.pointer, entry.keyword, version) for entry in _ENTRIES for version in entry.affected
    ]
    assert len(set(places)) == len(places)


def test_the_file_is_in_the_form_in_which_bump_writes_it(tmp_path: Path) -> None:
    errata.save(_ENTRIES, tmp_path)
    assert (tmp_path / "errata.json").read_bytes() == (SCHEMA / "errata.json").read_bytes()


@each(
    "tool, cause",
    [
        pytest.param({"type": "object"}, "upstream has mended it; remove", id="mended"),
        pytest.param(
            {"type": "array"}, 'neither the wrong value "string" nor the right one is there; remove', id="changed"
        ),
        pytest.param({}, 'neither the wrong value "string" nor the right one is there; remove', id="gone"),
    ],
)
def test_the_command_fails_if_an_erratum_no_longer_matches(
    tool: dict[str, Any], cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = schema_folder(tmp_path / "schema"), tmp_path / "output"
    file = pin(schema, NEWEST, newest_schema(lambda defs: defs.update(Thing=tool)))
    entry = _entry(NEWEST, definition="Thing", wrong="string", right="object")
    errata.save([*errata.load(schema), entry], schema)
    before = snapshot(tmp_path)
    assert codegen(schema, output, "generate") == 2
    error = capsys.readouterr().err
    assert f"{file}#/$defs/Thing: errata.json: Thing, `type`: {cause} {NEWEST} from the entry" in error
    assert snapshot(tmp_path) == before


@each(
    "lists, cause",
    [
        ({"versions": ["2024-13-99"]}, "no schema is pinned for '2024-13-99'; remove it"),
        ({"versions": [NEWEST], "unclear": ["2024-13-99"]}, "no schema is pinned for '2024-13-99'; remove it"),
        ({"versions": [NEWEST], "carried_over": [NEWEST]}, f"{NEWEST} is listed twice; remove one"),
    ],
)
def test_a_version_that_cannot_be_checked_is_an_error(
    lists: dict[str, list[str]], cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An erratum of a version that is not pinned would never be checked again, and outlive its cause."""
    schema = schema_folder(tmp_path / "schema")
    entry = {"definition": "Tool", "keyword": "type", "wrong": 1, "right": 2, "reason": "r", "upstream": "u", **lists}
    write_json(schema / "errata.json", [entry])
    assert codegen(schema, tmp_path / "output", "generate") == 2
    assert f"errata.json#/0: Tool, `type`: {cause}" in capsys.readouterr().err
