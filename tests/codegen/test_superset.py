"""The types of all revisions are merged into one: a member has all types that it has in any of them."""

from __future__ import annotations

import json
from typing import Any

import mcpspec
from mcpspec_codegen.normalise import normalise
from mcpspec_codegen.pipeline import load_base
from mcpspec_codegen.superset import CompatFacts, merge_revisions
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
