"""Both backends have the same types with the same members, and require the same of them."""

from __future__ import annotations

from typing import Any

import msgspec
from pydantic import BaseModel

from tests import official
from tests.cases import each
from tests.generated.backends import PACKAGES, definitions, open_members

Members = dict[str, tuple[str, bool]]
"""Name on the wire → attribute, and whether the member is required."""


def _of_struct(kind: Any) -> Members | None:
    if not isinstance(kind, type):
        return None
    if (declared := open_members(kind)) is not None:
        return {found.wire: (name, found.required) for name, found in declared.items()}
    if not issubclass(kind, msgspec.Struct):
        return None
    members = {field.encode_name: (field.name, field.required) for field in msgspec.structs.fields(kind)}
    if (tag := kind.__struct_config__.tag_field) is not None:
        members[tag] = (tag, True)
    return members


def _of_model(kind: Any) -> Members | None:
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return None
    kind.model_rebuild()
    return {field.alias or name: (name, field.is_required()) for name, field in kind.model_fields.items()}


@each("version", PACKAGES)
def test_both_backends_have_the_same_types(version: str) -> None:
    assert definitions(version, "exact.structs").keys() == definitions(version, "exact.models").keys()


@each("version", PACKAGES)
def test_both_backends_have_the_same_members(version: str) -> None:
    models = definitions(version, "exact.models")
    compared = 0
    for name, struct in definitions(version, "exact.structs").items():
        expected = _of_struct(struct)
        assert _of_model(getattr(models[name], "__value__", models[name])) == expected, name
        compared += expected is not None
    assert compared > 50


@each("version", PACKAGES)
def test_members_are_those_of_the_schema(version: str) -> None:
    """The expectation is read off upstream's file, not off the compiler's output."""
    schema, key = official.patched_schema(version)
    types = definitions(version, "exact.structs")
    for name, node in schema[key].items():
        members = _of_struct(types[name])
        if members is None or "properties" not in node:
            continue
        allowed = [wire for wire, member in node["properties"].items() if member != {"not": {}}]
        declared = {wire: wire in node.get("required", []) for wire in allowed}
        found = {wire: required for wire, (_, required) in members.items()}
        inherited = found.keys() - declared.keys()
        assert inherited <= {"jsonrpc", "id"}, name
        assert not any(found[wire] for wire in inherited), name
        assert {wire: required for wire, required in found.items() if wire not in inherited} == declared, name
