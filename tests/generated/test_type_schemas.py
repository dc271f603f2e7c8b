"""The JSON Schemas that msgspec makes of the types are valid, and accept what the types accept."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import pytest

from mcpspec.support.plain_structs import schema_hook as plain_schema_hook
from mcpspec.support.structs import OpenObject, Struct, member, schema_hook, untagged
from mcpspec.v2026_07_28 import structs
from tests.generated.backends import PACKAGES, backend, definitions
from tests.generated.json_schemas import Schema, check_schema, schema_accepts
from tests.generated.vectors import REVISIONS, RejectedValue, invalid_values, valid_values

STRUCTS = ("structs", "plain.structs")
each_package = pytest.mark.parametrize("version", PACKAGES)
each_revision = pytest.mark.parametrize("version", REVISIONS)
each_face = pytest.mark.parametrize("face", STRUCTS)


@cache
def accepts(version: str, face: str, definition: str) -> Callable[[Any], bool]:
    """Return the function that tells whether the schema of a type accepts a value."""
    return schema_accepts(msgspec.json.schema(backend(version, face).type(definition), schema_hook=schema_hook))


def fits(vector: RejectedValue, face: str) -> bool:
    """Return whether a type accepts a value: plain ones accept null for absent members."""
    types = backend(vector.version, face)
    try:
        types.decode(json.dumps(vector.value).encode(), types.type(vector.definition))
    except types.module.DecodeError:
        return False
    return True


@each_package
@each_face
def test_every_type_has_a_valid_schema(version: str, face: str) -> None:
    for name in definitions(version, face):
        check_schema(msgspec.json.schema(backend(version, face).type(name), schema_hook=schema_hook))


@each_revision
@each_face
def test_the_schema_of_a_type_accepts_its_valid_values(version: str, face: str) -> None:
    for vector in valid_values(version):
        assert accepts(version, face, vector.definition)(json.loads(vector.text)), vector


@each_revision
@each_face
def test_the_schema_of_a_type_rejects_its_invalid_values(version: str, face: str) -> None:
    rejected = 0
    for vector in invalid_values(version):
        if not fits(vector, face):
            assert not accepts(version, face, vector.definition)(vector.value), vector
            rejected += 1
    assert rejected > 50


def test_parts_of_other_types_are_described() -> None:
    schema = msgspec.json.schema(structs.CallToolRequestParams, schema_hook=schema_hook)
    meta = schema["$defs"]["CallToolRequestParams"]["properties"]["_meta"]
    assert meta["description"].startswith("Metadata of a request")
    assert "io.modelcontextprotocol/clientCapabilities" in meta["required"]
    client = meta["properties"]["io.modelcontextprotocol/clientCapabilities"]
    assert client["title"] == "ClientCapabilities"
    assert "sampling" in client["properties"]


def test_types_of_others_have_no_schema() -> None:
    with pytest.raises(TypeError, match="is not supported"):
        msgspec.json.schema(complex, schema_hook=schema_hook)


def test_plain_types_have_the_same_hook() -> None:
    assert plain_schema_hook is schema_hook


class Branch(OpenObject):
    """Part of a tree."""

    branches: list[Branch] | msgspec.UnsetType = member(name="branches", default=msgspec.UNSET)
    leaf: Leaf = member(name="leaf")


class Leaf(Struct, kw_only=True):
    tree: Tree | msgspec.UnsetType = msgspec.UNSET
    leaf: Leaf | msgspec.UnsetType = msgspec.UNSET


if TYPE_CHECKING:
    Tree: TypeAlias = Branch | Leaf
else:
    Tree = untagged("Tree", __name__, lambda: Branch | Leaf)

LEAF: Schema = {"tree": {"leaf": {"leaf": {}}}}
BRANCH: Schema = {"leaf": LEAF, "branches": [{"leaf": {}, "branches": []}]}


@pytest.mark.parametrize(
    ("kind", "value"), [(Branch, BRANCH), (Leaf, LEAF), (Tree, LEAF), (Tree, BRANCH), (list[Tree], [LEAF, BRANCH])]
)
def test_a_type_that_contains_itself_is_any_object_there(kind: Any, value: Any) -> None:
    schema = msgspec.json.schema(kind, schema_hook=schema_hook)
    check_schema(schema)
    assert schema_accepts(schema)(value)
    assert not schema_accepts(schema)(3)
