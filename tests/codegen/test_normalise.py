"""The steps of the compiler return new definitions, and leave their input as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

from mcpspec_codegen import errata
from mcpspec_codegen.defaults import add_defaults
from mcpspec_codegen.inline import hoist_objects
from mcpspec_codegen.messages import inherit_envelope, reference_single_members
from mcpspec_codegen.normalise import mark_kinds, mark_members, merge_definitions
from mcpspec_codegen.order import order_members
from mcpspec_codegen.source import load
from mcpspec_codegen.unions import mark_unions
from tests.cases import each
from tests.codegen.helpers import SCHEMA, Schema, pinned_versions, read_json

_Step: TypeAlias = Callable[[dict[str, Schema]], dict[str, Schema]]

_STEPS: list[_Step] = [
    lambda defs: order_members(defs, {"Tool": ["title", "name"]}),
    reference_single_members,
    inherit_envelope,
    lambda defs: hoist_objects(defs),
    mark_kinds,
    lambda defs: mark_unions(defs),
    lambda defs: mark_members(defs, ""),
    lambda defs: add_defaults({"$defs": defs}, {"Result": {"resultType": "complete"}})["$defs"],
]


_GENERATED = read_json(SCHEMA / "supplement.json")["generated"]
"""Schemas that other steps restore first, see `test_restore.py`."""


@each("version", [version for version in pinned_versions() if version not in _GENERATED])
def test_no_step_changes_its_input(version: str) -> None:
    source = next(source for source in load(SCHEMA) if source.version == version)
    defs = merge_definitions(errata.apply(source.schema, errata.load(SCHEMA), version, source.file), source.file)
    changed = 0
    for step in _STEPS:
        before = json.dumps(defs)
        after = step(defs)
        assert json.dumps(defs) == before
        changed += json.dumps(after) != before
        defs = after
    assert changed >= 5


@each("union", ["ServerRequest", "ClientNotification", "InputRequest"])
def test_a_union_of_one_message_that_is_written_out_refers_to_it(union: str) -> None:
    message: Schema = {"type": "object", "properties": {"method": {"const": "elicitation/create"}}}
    defs: dict[str, Schema] = {"ElicitRequest": message, "Other": {"type": "string"}, union: dict(message)}
    assert reference_single_members(defs) == {**defs, union: {"$ref": "#/$defs/ElicitRequest"}}
