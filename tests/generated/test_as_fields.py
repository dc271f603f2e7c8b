"""Types of either library are fields of classes of the other library."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from typing import Any, TypeAlias

import msgspec
import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from mcpspec.support.models import dec_hook, enc_hook, schema_hook
from mcpspec.support.structs import OpenObject, Struct, member
from mcpspec.v2026_07_28 import models as everyday_models
from mcpspec.v2026_07_28 import structs as everyday_structs
from mcpspec.v2026_07_28.exact import models, structs
from tests.cases import each
from tests.generated.backends import PACKAGES, backend, definitions, same_json
from tests.generated.json_schemas import check_schema, schema_accepts
from tests.generated.vectors import REVISIONS, invalid_values, valid_values

Json: TypeAlias = dict[str, Any]

STRUCTS = ("exact.structs", "structs")
each_face = each("face", STRUCTS)
each_package = each("version", PACKAGES)
each_revision = each("version", REVISIONS)
each_structs = each("types", [structs, everyday_structs], ids=STRUCTS)
each_models = each("types", [models, everyday_models], ids=["exact.models", "models"])

TOOL: Json = {"name": "weather", "inputSchema": {"type": "object", "x": None}}
TEXT = {"type": "text", "text": "rain"}
RESULT: Json = {"resultType": "complete", "content": [TEXT]}


# Structs in models


def config_of(types: Any) -> type[BaseModel]:
    """Return a model with types of a module as its fields."""
    fields: dict[str, Any] = {
        "tool": types.Tool,
        "blocks": (list[types.ContentBlock], []),
        "result": (types.CallToolResult | None, None),
        "either": (types.CallToolResultResponseResult | None, None),
    }
    return create_model("Config", **fields)


@each_structs
def test_a_struct_is_validated_from_json_from_dicts_and_from_instances(types: Any) -> None:
    kind = config_of(types)
    value: Json = {"tool": TOOL, "blocks": [TEXT], "result": RESULT, "either": RESULT}
    made = kind.model_validate(value)
    assert made == kind.model_validate_json(json.dumps(value))
    assert made == kind(**vars(made))
    assert [type(found) for found in vars(made).values()] == [types.Tool, list, *[types.CallToolResult] * 2]
    assert made.model_dump() == value
    assert same_json(made.model_dump_json().encode(), json.dumps(value).encode())


@each_structs
def test_an_instance_is_not_copied(types: Any) -> None:
    tool = types.from_builtins(TOOL, types.Tool)
    assert config_of(types)(tool=tool).tool is tool  # type: ignore[attr-defined]


@each_structs
@each(
    "value, place, message, found",
    [
        ({"tool": {**TOOL, "name": 3}}, ("tool", "name"), "expected string, got 3", 3),
        ({"tool": {"name": "a"}}, ("tool", "inputSchema"), "required, but missing", {"name": "a"}),
        ({"tool": 3}, ("tool",), "expected object, got 3", 3),
        (
            {"tool": TOOL, "result": {"resultType": "complete", "content": [TEXT, {"type": "text"}]}},
            ("result", "content", 1, "text"),
            "required, but missing",
            {"type": "text"},
        ),
    ],
)
def test_an_error_names_the_place(types: Any, value: Any, place: Any, message: str, found: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        config_of(types).model_validate(value)
    (error,) = caught.value.errors()
    assert (error["loc"], error["msg"], error["input"]) == (place, message, found)
    with pytest.raises(ValidationError) as caught_in_json:
        config_of(types).model_validate_json(json.dumps(value))
    assert caught_in_json.value.errors() == caught.value.errors()


@each_structs
@each("name", ["a", "a.b/c d", 'quoted "]', "[0]", "\\", "line\nbreak", "é", "long" * 30])
def test_an_error_names_members_of_any_name(types: Any, name: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(types.ClientCapabilities).validate_python({"experimental": {name: 3}})
    first, second = caught.value.errors()[0]["loc"]
    assert first == "experimental"
    assert second == name or len(name) > 60  # errors shorten long names


def test_plain_types_read_null_as_absence() -> None:
    kind = config_of(everyday_structs)
    made = kind.model_validate({"tool": {**TOOL, "title": None}})
    assert made.model_dump()["tool"] == TOOL
    with pytest.raises(ValidationError):
        config_of(structs).model_validate({"tool": {**TOOL, "title": None}})


@each_package
@each_face
def test_every_struct_has_a_schema_in_a_model(version: str, face: str) -> None:
    fields: dict[str, Any] = {f"its_{name}": kind for name, kind in definitions(version, face).items()}
    made = create_model("Everything", **fields)
    for mode in ("validation", "serialization"):
        schema = made.model_json_schema(mode=mode)
        check_schema(schema)
        assert schema["properties"].keys() == fields.keys()


@cache
def adapter(version: str, face: str, definition: str) -> tuple[TypeAdapter[Any], Any]:
    made: TypeAdapter[Any] = TypeAdapter(backend(version, face).type(definition))
    return made, schema_accepts(made.json_schema())


@each_revision
@each_face
def test_pydantic_accepts_and_describes_what_the_type_accepts(version: str, face: str) -> None:
    types = backend(version, face)
    for vector in valid_values(version):
        made, accepts = adapter(version, face, vector.definition)
        decoded = types.decode(vector.text, types.type(vector.definition))
        assert made.validate_json(vector.text) == decoded, vector
        assert same_json(made.dump_json(decoded), types.encode(decoded)), vector
        assert accepts(json.loads(vector.text)), vector


@each_revision
@each_face
def test_pydantic_rejects_what_the_type_rejects(version: str, face: str) -> None:
    types = backend(version, face)
    rejected = 0
    for vector in invalid_values(version):
        made, accepts = adapter(version, face, vector.definition)
        try:
            types.module.from_builtins(vector.value, types.type(vector.definition))
        except types.module.DecodeError:
            with pytest.raises(ValidationError):
                made.validate_python(vector.value, strict=True)  # strict for aliases of scalars, which are Pydantic's
            assert not accepts(vector.value), vector
            rejected += 1
    assert rejected > len(invalid_values(version)) // 2


@each_structs
def test_members_are_described_under_their_own_names(types: Any) -> None:
    schema = config_of(types).model_json_schema()
    tool = schema["$defs"]["Tool"]
    assert schema["properties"]["tool"] == {"$ref": "#/$defs/Tool"}
    assert tool["description"].startswith("A function that the server offers")
    assert tool["required"] == ["name", "inputSchema"]
    arguments = {**schema["$defs"].get("ToolInputSchema", {}), **tool["properties"]["inputSchema"]}
    assert arguments["description"] == "JSON Schema of the tool's arguments."
    assert schema["$defs"]["TextContent"]["properties"]["type"]["const"] == "text"
    priority = schema["$defs"]["Annotations"]["properties"]["priority"]
    assert {option.get("maximum") for option in priority["anyOf"]} - {None} == {1}


class Tree(OpenObject):
    """A tree of trees."""

    trees: list[Tree] = member(name="trees")


class Branch(Struct, kw_only=True):
    branches: list[Branch] | msgspec.UnsetType = msgspec.UNSET


TREE: Json = {"trees": [{"trees": []}]}
BRANCH: Json = {"branches": [{}]}


@each("kind, value", [(Tree, TREE), (Branch, BRANCH)])
def test_a_type_that_contains_itself_is_described_by_itself(kind: Any, value: Any) -> None:
    made: TypeAdapter[Any] = TypeAdapter(kind)
    check_schema(made.json_schema())
    assert made.dump_python(made.validate_python(value)) == value
    assert schema_accepts(made.json_schema())(value)
    assert not schema_accepts(made.json_schema())({key: [3] for key in value})


def test_structs_do_not_import_pydantic() -> None:
    code = (
        "import sys; from mcpspec.v2026_07_28.exact import structs; from mcpspec.v2026_07_28 import structs; "
        "assert 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Models in Structs


def struct_of(types: Any) -> Any:
    """Return a Struct of msgspec with types of a module as its members."""
    members: list[Any] = [
        ("tool", types.Tool),
        ("tools", list[types.Tool], []),
        ("result", types.CallToolResult | None, None),
        ("meta", structs.RequestMetaObject | None, None),
    ]
    return msgspec.defstruct("Holder", members, omit_defaults=True)


@each_models
def test_a_model_is_a_member_of_a_struct(types: Any) -> None:
    kind = struct_of(types)
    text = json.dumps({"tool": TOOL, "tools": [TOOL], "result": {"resultType": "complete", "content": [TEXT]}}).encode()
    made = msgspec.json.decode(text, type=kind, dec_hook=dec_hook)
    assert type(made.tool) is types.Tool
    assert type(made.result.content[0]) is types.TextContent
    assert same_json(msgspec.json.encode(made, enc_hook=enc_hook), text)
    assert msgspec.convert(msgspec.to_builtins(made, enc_hook=enc_hook), kind, dec_hook=dec_hook) == made


@each_models
def test_the_error_of_a_model_in_a_struct_names_both_places(types: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"name: expected string, got 3 - at `\$.tool`"):
        msgspec.convert({"tool": {**TOOL, "name": 3}}, struct_of(types), dec_hook=dec_hook)


@each_models
def test_a_struct_with_models_has_a_schema(types: Any) -> None:
    schema = msgspec.json.schema(struct_of(types), schema_hook=schema_hook)
    check_schema(schema)
    accepts = schema_accepts(schema)
    assert accepts({"tool": TOOL, "tools": [TOOL]})
    assert not accepts({"tool": {"name": 3, "inputSchema": {}}})


def test_the_hooks_of_models_know_structs_and_nothing_else() -> None:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    made = msgspec.convert({"tool": TOOL, "meta": meta}, struct_of(models), dec_hook=dec_hook)
    assert type(made.meta) is structs.RequestMetaObject
    for hook in (lambda: dec_hook(complex, 1), lambda: enc_hook(1j), lambda: schema_hook(complex)):
        with pytest.raises(NotImplementedError, match="complex"):
            hook()
