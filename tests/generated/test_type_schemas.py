"""The JSON Schemas that msgspec and Pydantic make of the types are valid, and accept what the types accept."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import pytest
from pydantic import BaseModel, Field, TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from mcpspec.support.everyday_structs import schema_hook as plain_schema_hook
from mcpspec.support.models import Model, UnionMeta
from mcpspec.support.structs import OpenObject, Struct, member, schema_hook, untagged
from mcpspec.v2026_07_28 import models as plain
from mcpspec.v2026_07_28.exact import models, structs
from mcpspec_codegen.pipeline import find_gaps
from tests.cases import each
from tests.generated.backends import FACES, PACKAGES, backend, definitions
from tests.generated.json_schemas import Schema, check_schema, schema_accepts
from tests.generated.vectors import REVISIONS, RejectedValue, invalid_values, valid_values
from tests.paths import SCHEMA

each_package = each("version", PACKAGES)
each_revision = each("version", REVISIONS)
each_face = each("face", FACES)
each_model_face = each("face", ["exact.models", "models"])


@cache
def schemas_of(version: str, face: str, mode: JsonSchemaMode = "validation") -> dict[str, Schema]:
    """Return the JSON Schemas that the library of a face makes of all types of a module, by their names."""
    kinds = definitions(version, face)
    if face.endswith("exact.structs"):
        schemas, parts = msgspec.json.schema_components(
            kinds.values(), schema_hook=schema_hook, ref_template="#/$defs/{name}"
        )
        return {name: {**schema, "$defs": parts} for name, schema in zip(kinds, schemas, strict=True)}
    made, shared = TypeAdapter.json_schemas([(name, mode, TypeAdapter(kind)) for name, kind in kinds.items()])
    return {name: {**schema, "$defs": shared["$defs"]} for (name, _), schema in made.items()}


@cache
def accepts(version: str, face: str, definition: str, mode: JsonSchemaMode = "validation") -> Callable[[Any], bool]:
    """Return the function that tells whether the schema of a type accepts a value."""
    return schema_accepts(schemas_of(version, face, mode)[definition])


def fits(vector: RejectedValue, face: str) -> bool:
    """Return whether a type accepts a value: plain ones accept null for absent members."""
    types = backend(vector.version, face)
    try:
        types.decode(json.dumps(vector.value).encode(), types.type(vector.definition))
    except types.module.DecodeError:
        return False
    return True


@pytest.mark.parametrize("face", FACES)
@each_package
def test_every_type_has_a_valid_schema(version: str, face: str) -> None:
    schemas = schemas_of(version, face)
    assert schemas.keys() == definitions(version, face).keys()
    parts = next(iter(schemas.values()))["$defs"]
    check_schema({"anyOf": [{**schema, "$defs": {}} for schema in schemas.values()], "$defs": parts})


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
    assert rejected > len(invalid_values(version)) // 2


@each_model_face
def test_a_class_and_its_adapter_have_one_schema(face: str) -> None:
    for kind in definitions(REVISIONS[-1], face).values():
        if isinstance(kind, type) and not isinstance(kind, UnionMeta):
            assert issubclass(kind, BaseModel)
            assert kind.model_json_schema() == TypeAdapter(kind).json_schema()


@each_revision
@each_model_face
def test_a_model_is_described_as_it_is_encoded(version: str, face: str) -> None:
    types = backend(version, face)
    for vector in valid_values(version):
        encoded = types.encode(types.decode(vector.text, types.type(vector.definition)))
        assert accepts(version, face, vector.definition, "serialization")(json.loads(encoded)), vector


@cache
def unfinished() -> set[str]:
    """Return the versions for which a person still has to write something, as `make bump` has told."""
    return {gap.version for gap in find_gaps(SCHEMA)}


@each_package
@each_model_face
def test_every_member_of_a_model_is_described(version: str, face: str) -> None:
    described = 0
    for name, schema in next(iter(schemas_of(version, face).values()))["$defs"].items():
        properties: Schema = schema.get("properties", {})
        undescribed = [name for name, member in properties.items() if not member.get("description")]
        assert undescribed == [] or version in unfinished(), name
        described += len(properties)
    assert described > 100


@each("types", [models, plain], ids=["exact.models", "plain"])
def test_a_model_has_the_docstrings_and_the_bounds_of_its_members(types: Any) -> None:
    by_alias = types.Annotations.model_json_schema()["properties"]
    assert by_alias["lastModified"]["description"] == "Time of the last change of the object, in ISO 8601."
    by_name = types.Annotations.model_json_schema(by_alias=False)["properties"]
    assert by_name["last_modified"]["description"] == by_alias["lastModified"]["description"]
    bounds = [option for option in by_alias["priority"]["anyOf"] if option["type"] != "null"]
    assert bounds == [{"type": kind, "minimum": 0, "maximum": 1} for kind in ("number", "integer")]


class Tracked(models.Tool):
    """A vendor's tool."""

    name: str = Field(description="Name, as the vendor says.")
    price: int
    """Price of a call."""


def test_a_class_that_inherits_has_the_docstrings_of_its_bases() -> None:
    members = Tracked.model_json_schema()["properties"]
    assert members["name"]["description"] == "Name, as the vendor says."
    assert members["price"]["description"] == "Price of a call."
    assert members["title"] == models.Tool.model_json_schema()["properties"]["title"]


def test_members_of_a_class_without_source_code_have_no_description() -> None:
    names: dict[str, Any] = {"Model": Model, "__name__": "nowhere"}
    exec("class Made(Model):\n    name: str\n    'Not readable.'\n", names)  # noqa: S102
    assert names["Made"].model_json_schema()["properties"] == {"name": {"title": "Name", "type": "string"}}


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


@each("kind, value", [(Branch, BRANCH), (Leaf, LEAF), (Tree, LEAF), (Tree, BRANCH), (list[Tree], [LEAF, BRANCH])])
def test_a_type_that_contains_itself_is_any_object_there(kind: Any, value: Any) -> None:
    schema = msgspec.json.schema(kind, schema_hook=schema_hook)
    check_schema(schema)
    assert schema_accepts(schema)(value)
    assert not schema_accepts(schema)(3)
