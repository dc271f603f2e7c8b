"""The conversions between revisions that the compiler writes: what they do, what they lose, and what lacks a rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mcpspec_codegen.conversions.gaps import find_conversion_gaps, find_gaps_between, find_unused_decisions
from mcpspec_codegen.conversions.modules import conversion_modules
from mcpspec_codegen.conversions.pair import Pair
from mcpspec_codegen.conversions.revision import ConversionFacts, Revision
from mcpspec_codegen.pipeline import load_revisions
from tests.cases import each
from tests.codegen.helpers import NEWEST, PREVIOUS, SCHEMA, Schema, codegen, newest_schema, schema_folder, write_json
from tests.spoken import SUPPORTED

LATER = "2031-05-01"


def test_nothing_lacks_a_decision_and_every_decision_is_needed() -> None:
    revisions, facts = load_revisions(SCHEMA)
    modern = [revision for revision in revisions if revision.is_modern and revision.version in SUPPORTED]
    assert [find_conversion_gaps(revision, revisions, facts) for revision in modern] == [[] for _ in modern]
    assert find_unused_decisions(revisions, facts) == []


def test_the_difference_that_a_bump_makes_shows_what_older_peers_lose(tmp_path: Path) -> None:
    def with_flavour(defs: Schema) -> None:
        defs["Tool"]["properties"]["flavour"] = {"type": "string"}

    schema, output = schema_folder(tmp_path / "schema"), tmp_path / "output"
    upstream = write_json(tmp_path / "upstream.json", newest_schema(with_flavour))
    assert codegen(schema, output, "bump", LATER, str(upstream)) == 0
    text = (output / "mcpspec" / "v2031_05_01" / "conversions" / "v2026_07_28.py").read_text(encoding="utf-8")
    downgrade = text.partition("class Downgrade")[2]
    assert '        if value.flavour is not self.absent:\n            lost.append("Tool.flavour")\n' in downgrade
    assert "flavour" not in text.partition("class Downgrade")[0]


def test_a_class_has_only_the_methods_that_differ_from_those_of_the_next_newer_revision() -> None:
    revisions, facts = load_revisions(SCHEMA)
    files = conversion_modules(revisions, facts)
    seen: dict[tuple[str, str, str], str] = {}
    repeated: list[str] = []
    for path, text in files.items():
        package = path.rpartition("/")[0]
        for part in text.split("\n\nclass ")[1:]:
            kind = part.partition("(")[0]
            for method in part.split("\n    def ")[1:]:
                name, _, body = method.partition("(")
                if seen.get((package, kind, name)) == body.rstrip():
                    repeated.append(f"{path}: {kind}.{name}")
                seen[package, kind, name] = body.rstrip()
    assert repeated == []


# Kinds of differences

STRING: Schema = {"type": "string"}


def _record(name: str, *required: str, **members: Schema) -> dict[str, Schema]:
    facts = {"kind": "record", "names": {member: member for member in members}, "constants": {}}
    return {name: {"type": "object", "properties": members, "required": [*required], "x": facts}}


def _open_record(name: str, *, checks: list[Schema] | None = None, **members: Schema) -> dict[str, Schema]:
    node = _record(name, **members)[name]
    return {name: {**node, **({} if checks is None else {"checks": checks}), "x": {**node["x"], "kind": "open"}}}


def _content(*names: str) -> Schema:
    return {"type": "array", "items": {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in names]}}


TEXT, PICTURE = _record("Text", "text", text=STRING), _record("Picture", "data", data=STRING)
KINDS: dict[str, tuple[dict[str, Schema], dict[str, Schema], dict[str, str]]] = {
    "a member that the older revision requires": (
        _record("Thing"),
        _record("Thing", "a", a=STRING),
        {"Thing.a": "required, but without a source"},
    ),
    "a member that the older revision alone has": (
        _record("Thing"),
        _record("Thing", a=STRING),
        {"Thing.a": "has no such member"},
    ),
    "a member that the newer revision alone has": (_record("Thing", a=STRING), _record("Thing"), {}),
    "a member that the newer revision makes optional": (
        _record("Thing", a=STRING),
        _record("Thing", "a", a=STRING),
        {"Thing.a": "optional in"},
    ),
    "a member that the newer revision requires": (_record("Thing", "a", a=STRING), _record("Thing", a=STRING), {}),
    "a member of another type": (
        _record("Thing", "a", a=STRING),
        _record("Thing", "a", a={"type": "integer"}),
        {"Thing.a": "string in"},
    ),
    "a member with more values": (
        _record("Thing", "a", a={"enum": ["x", "y"]}),
        _record("Thing", "a", a={"enum": ["x"]}),
        {"Thing.a": '"x" | "y" in'},
    ),
    "a bound that the older revision alone has": (
        _record(
            "Thing",
            a=STRING,
            b={"type": "array", "items": STRING},
            c={"type": "object", "additionalProperties": STRING},
        ),
        _record(
            "Thing",
            a={**STRING, "pattern": "^a"},
            b={"type": "array", "items": STRING, "maxItems": 3},
            c={"type": "object", "additionalProperties": STRING, "minProperties": 1},
        ),
        {"Thing.a": "(pattern ^a)", "Thing.b": "(length at most 3)", "Thing.c": "(size at least 1)"},
    ),
    "bounds that differ": (
        _record(
            "Thing",
            a={"type": "integer", "minimum": 1, "maximum": 9},
            b={"type": "array", "items": STRING, "minItems": 0},
        ),
        _record(
            "Thing",
            a={"type": "integer", "minimum": 0, "exclusiveMaximum": 10},
            b={"type": "array", "items": STRING, "minItems": 1},
        ),
        {"Thing.b": "length at least 0"},
    ),
    "a check that the older revision alone has": (
        _record("Thing", a=STRING),
        _open_record("Thing", a=STRING, checks=[{"maxProperties": 1}]),
        {"Thing": "has a check"},
    ),
    "an object that one revision alone has open": (
        {**_open_record("Thing", a={"$ref": "#/$defs/Text"}), **TEXT},
        {**_record("Thing", a={"$ref": "#/$defs/Text"}), **_open_record("Text", text=STRING)},
        {},
    ),
    "a member with fewer values": (
        _record("Thing", "a", a={"enum": ["x"]}),
        _record("Thing", "a", a={"enum": ["x", "y"]}),
        {},
    ),
    "a type that the newer revision alone has": (
        {**_record("Thing", "a", a=_content("Text", "Picture")), **TEXT, **PICTURE},
        {**_record("Thing", "a", a=_content("Text")), **TEXT},
        {"Picture": "no such type in"},
    ),
    "a type that the older revision has elsewhere": (
        {**_record("Thing", "a", a=_content("Text", "Picture")), **TEXT, **PICTURE},
        {**_record("Thing", "a", a=_content("Text")), **TEXT, **PICTURE},
        {"Thing.a": "Picture in"},
    ),
    "the same": (_record("Thing", "a", a=STRING), _record("Thing", "a", a=STRING), {}),
}
"""Definitions of a newer and of an older revision, with what the conversion to the older one lacks."""


@each("kind", KINDS)
def test_a_difference_that_needs_a_rule_is_a_gap(kind: str) -> None:
    newer, older, expected = KINDS[kind]
    found = _pair(newer, older).gaps
    assert found.keys() == expected.keys()
    assert all(text in found[name] for name, text in expected.items()), found


def _pair(newer: dict[str, Schema], older: dict[str, Schema], *, is_upgrade: bool = False, **facts: Any) -> Pair:
    """Return the conversion of `Thing` and of what it refers to."""
    both = [
        Revision(version, f"v{version}", definitions, {}, is_modern=True, everyday=definitions)
        for version, definitions in ((NEWEST, newer), (PREVIOUS, older))
    ]
    source, target = both[::-1] if is_upgrade else both
    none: ConversionFacts = {"renamed_types": {}, "renamed_members": {}, "replaced_content": {}, "decided": {}}
    known: ConversionFacts = {**none, **facts}  # type: ignore[typeddict-item]
    pair = Pair(source, target, known, is_upgrade=is_upgrade, roots=["Thing"])
    assert pair.methods is not None
    return pair


def test_parameters_that_become_an_open_object_are_a_gap() -> None:
    revisions, facts = load_revisions(SCHEMA)
    newest = revisions[-1]
    opened = _open_record("CallToolRequestParams", tool=STRING)
    changed = replace(newest, definitions=newest.definitions | opened, everyday=newest.everyday | opened)
    gaps = [gap for gap in find_gaps_between(changed, [newest], facts) if "tools/call" in gap]
    assert [gap for gap in gaps if "CallToolRequestParams is open in" in gap] == gaps != []


OLD, NEW = _record("Thing", "old", old=STRING), _record("Thing", "new", new=STRING)


@each("is_upgrade, expected", [(False, "old=value.new"), (True, "new=value.old")], ids=["downgrade", "upgrade"])
def test_a_renamed_member_closes_a_gap(is_upgrade: bool, expected: str) -> None:
    assert _pair(NEW, OLD, is_upgrade=is_upgrade).gaps.keys() >= {"Thing.old"}
    pair = _pair(NEW, OLD, is_upgrade=is_upgrade, renamed_members={"Thing.new": "old"})
    assert pair.gaps == {}
    assert expected in pair.methods["Thing"]
    assert "lost.append" not in pair.methods["Thing"]


def test_content_that_has_a_replacement_is_no_gap() -> None:
    newer, older, _ = KINDS["a type that the newer revision alone has"]
    pair = _pair(newer, older, replaced_content={"Picture": "[picture]"})
    assert pair.gaps == {}
    assert "rules.replace_by_text(self.types.TextContent, '[picture]', value, lost)" in pair.methods["Picture"]
