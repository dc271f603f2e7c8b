"""The types of all revisions are merged into one: a member has all types that it has in any of them."""

from __future__ import annotations

import json
from typing import Any

import mcpspec
from mcpspec_codegen.normalise import normalise
from mcpspec_codegen.pipeline import load_base
from mcpspec_codegen.superset import CompatFacts, add_renamed, merge_revisions
from tests.cases import each
from tests.paths import SCHEMA

FACTS: CompatFacts = json.loads((SCHEMA / "compat.json").read_text(encoding="utf-8"))
RESULT: dict[str, Any] = {"type": "object", "properties": {"_meta": {"type": "object", "additionalProperties": {}}}}


def merged_member(*types: dict[str, Any]) -> dict[str, Any]:
    """Merge revisions, oldest first, in which one member has these types; return what the member is then."""
    documents = [
        normalise({"$defs": {"Result": RESULT, "Thing": {"type": "object", "properties": {"member": kind}}}}, "")
        for kind in types
    ]
    merged: dict[str, Any] = merge_revisions(documents, FACTS)["$defs"]["Thing"]["properties"]["member"]
    return merged


ANY_OBJECT: dict[str, Any] = {"type": "object", "additionalProperties": {}}
MERGED: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "the same type": ([{"type": "string"}, {"type": "string"}], {"type": "string"}),
    "a wider type later": ([{"type": "integer"}, {"type": ["integer", "string"]}], {"type": ["integer", "string"]}),
    "a wider type earlier": ([{"type": ["integer", "string"]}, {"type": "integer"}], {"type": ["integer", "string"]}),
    "any value later": ([ANY_OBJECT, {}], {}),
    "other types": ([{"type": "integer"}, {"type": "string"}], {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
    "another type with a bound": (
        [{"type": "integer", "minimum": 0}, {"type": "string"}],
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    ),
    "a list of wider items": (
        [{"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {}}],
        {"type": "array", "items": {}},
    ),
    "a bound in one revision": (
        [{"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "string"}, "maxItems": 9}],
        {"type": "array", "items": {"type": "string"}},
    ),
    "more constants": (
        [{"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["a", "b"]}],
        {"type": "string", "enum": ["a", "b"]},
    ),
}


@each("case", MERGED)
def test_a_member_has_all_types_that_it_has_in_any_revision(case: str) -> None:
    types, expected = MERGED[case]
    assert merged_member(*types) == expected


def test_a_member_is_required_if_all_revisions_that_have_the_definition_require_it() -> None:
    def thing(*required: str) -> dict[str, Any]:
        properties = {name: {"type": "string"} for name in "abc"}
        kinds = {"Result": RESULT, "Thing": {"type": "object", "properties": properties, "required": [*required]}}
        return normalise({"$defs": kinds}, "")

    older = normalise({"$defs": {"Result": RESULT}}, "")
    merged = merge_revisions([older, thing("a", "b"), thing("b", "c")], FACTS)
    assert merged["$defs"]["Thing"]["required"] == ["b"]


def test_every_fact_about_the_official_names_is_confirmed_by_a_revision() -> None:
    known = {name for version in mcpspec.VERSIONS for name in load_base(SCHEMA, version).interface.document["$defs"]}
    assert {*FACTS["renamed"], *FACTS["dropped"]} <= known
    named = known | {*FACTS["renamed"].values(), *FACTS["unions"], *FACTS["empty_objects"].values()}
    places = [*FACTS["empty_objects"], *FACTS["replaced_types"], *FACTS["member_types"].values()]
    assert {place.partition(".")[0] for place in places} <= named
    assert {*FACTS["aliases"].values(), *FACTS["adapters"].values(), *FACTS["extends"].values()} <= named


def record(*required: str, **members: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": [*required]}


TEXT: dict[str, Any] = {"type": "string"}
TAG: dict[str, Any] = {"type": "string", "const": "text"}


def merged(*revisions: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """Merge the definitions of revisions, oldest first."""
    documents = [normalise({"$defs": {"Result": RESULT, **definitions}}, "") for definitions in revisions]
    known: CompatFacts = {**FACTS, **facts}  # type: ignore[typeddict-item]
    found: dict[str, Any] = merge_revisions(documents, add_renamed(documents, known))["$defs"]
    return found


def test_a_definition_that_keeps_its_tag_under_a_new_name_is_the_same_class() -> None:
    other = record("type", "data", type={"type": "string", "const": "image"}, data=TEXT)

    def revision(name: str, **members: dict[str, Any]) -> dict[str, Any]:
        union = {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"$ref": "#/$defs/Image"}]}
        return {name: record("type", "text", type=TAG, text=TEXT, **members), "Image": other, "Content": union}

    found = merged(revision("Text"), revision("TextPart", more=TEXT), revision("TextPiece"))
    assert found.keys() & {"Text", "TextPart", "TextPiece"} == {"Text"}
    assert {*found["Text"]["properties"]} == {"type", "text", "more"}
    assert found["Content"]["discriminator"] == {"propertyName": "type"}


def test_two_classes_with_one_tag_are_told_apart_by_their_members() -> None:
    other = record("type", "data", type={"type": "string", "const": "image"}, data=TEXT)
    text, spoken = record("type", "text", type=TAG, text=TEXT), record("type", "words", type=TAG, words=TEXT)
    union = {"anyOf": [{"$ref": "#/$defs/Text"}, {"$ref": "#/$defs/Image"}]}
    later = {"anyOf": [{"$ref": "#/$defs/Spoken"}, {"$ref": "#/$defs/Image"}]}
    found = merged(
        {"Text": text, "Image": other, "Content": union},
        {"Spoken": spoken, "Image": other, "Content": later},
    )
    assert {"Text", "Spoken"} <= found.keys()
    assert "discriminator" not in found["Content"]
    assert found["Content"]["x"]["kind"] == "union"


def test_a_closed_object_may_have_the_members_of_other_revisions() -> None:
    closed = {**record("name", name=TEXT), "additionalProperties": False}
    for revisions in ([closed], [closed, record("name", name=TEXT)], [record("name", name=TEXT), closed]):
        assert "closed" not in merged(*({"Thing": each} for each in revisions))["Thing"]["x"]


def test_a_class_requires_what_its_base_requires() -> None:
    bases = {"Thing": "Named"}
    named, thing = record("name", name=TEXT), record("name", name=TEXT, size=TEXT)
    relaxed = record(name=TEXT, size=TEXT)
    assert merged({"Named": named, "Thing": thing}, extends=bases)["Thing"]["x"]["bases"] == ["Named"]
    assert merged({"Named": named, "Thing": relaxed}, extends=bases)["Thing"]["x"]["bases"] == []
