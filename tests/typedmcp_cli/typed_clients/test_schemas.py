"""The classes for schemas: hostile schemas end at a limit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import each
from tests.hostile_schemas import HOSTILE, find_excess, input_schema
from typedmcp_cli.typed_clients import schemas
from typedmcp_cli.typed_clients.names import Names

LIMIT = 2_000


@each("name", HOSTILE)
def test_the_work_and_the_classes_are_in_proportion_to_the_schema_and_the_limit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schemas, "_MAX_PARTS", LIMIT)
    schema = input_schema(HOSTILE[name])
    types = schemas.SchemaTypes(Names())
    assert not find_excess(lambda: types.add_object(schema, "Tool", "tool"), 30 * LIMIT + len(json.dumps(schema)))
    members = [member for each in types.classes.values() for member in each.members]
    assert len(members) <= 2 * LIMIT
    assert sum(len(member.schema) for member in members) < 100 * LIMIT


def test_the_members_and_the_required_names_of_all_parts_are_one_class() -> None:
    part: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b", 3]}
    whole: dict[str, Any] = {
        "allOf": [{"$ref": "#/$defs/part"}, {"allOf": [{"$ref": "#/$defs/part"}]}],
        "properties": {"b": {}},
    }
    types = schemas.SchemaTypes(Names())
    types.add_object({"properties": {"whole": whole}, "$defs": {"part": part}}, "Tool", "tool")
    whole_class = next(made for made in types.classes.values() if made.name == "ToolWhole")
    assert [(member.name, member.is_required) for member in whole_class.members] == [
        ("b", True),
        ("a", True),
    ]
