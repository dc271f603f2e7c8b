"""Definitions of schemas: they are collected at the root, under names of their own."""

from __future__ import annotations

from typing import Any

from typedmcp_schemas.definitions import collect_definitions, object_schema, resolve_root


def reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def test_a_root_that_is_only_a_reference_is_replaced_by_its_definition() -> None:
    assert collect_definitions(reference("A"), {"A": {"type": "object"}}) == {"type": "object"}


def test_a_root_that_refers_to_itself_stays_a_reference() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": reference("A")}}}
    schema = collect_definitions(reference("A"), {"A": tree})
    assert schema == {**reference("A"), "$defs": {"A": tree}}
    assert resolve_root(schema) == tree


def test_different_definitions_of_one_name_get_names_of_their_own() -> None:
    first = {**reference("A"), "$defs": {"A": {"type": "string"}}}
    second = {**reference("A"), "$defs": {"A": {"type": "integer"}}}
    schema = object_schema({"a": first, "b": second, "c": first}, additional=False)
    assert schema["$defs"] == {"A": {"type": "string"}, "A_": {"type": "integer"}}
    assert [schema["properties"][name]["$ref"] for name in "abc"] == ["#/$defs/A", "#/$defs/A_", "#/$defs/A"]


def test_data_in_a_schema_is_not_taken_for_schemas() -> None:
    schema = {"enum": [{"$defs": {"A": 1}}], "default": {"uniqueItems": True}}
    assert collect_definitions(schema, {}) == schema
