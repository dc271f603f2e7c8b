"""Unions are types for `isinstance`, and constructors of Pydantic know them by their names."""

from __future__ import annotations

from importlib import import_module
from typing import Any, get_args

import msgspec
from pydantic import create_model

from mcpspec.support.objects import spread_union
from tests.cases import each
from tests.generated.backends import PACKAGES

FACES = ("exact.structs", "exact.models", "structs", "models")
UNIONS: dict[str, tuple[str, dict[str, Any], str]] = {
    "of types with a tag": ("ContentBlock", {"type": "text", "text": "a"}, "TextContent"),
    "of messages": (
        "ServerNotification",
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        "ToolListChangedNotification",
    ),
    "without a tag": ("JSONRPCMessage", {"jsonrpc": "2.0", "id": 1, "method": "x"}, "JSONRPCRequest"),
    "of results": ("ServerResult", {"content": [], "resultType": "complete"}, "CallToolResult"),
}
each_face = each("face", FACES)
each_union = each("case", UNIONS)


def types_of(face: str) -> Any:
    return import_module(f"{PACKAGES['2026-07-28']}.{face}")


@each_face
@each_union
def test_a_value_is_an_instance_of_its_union_and_other_values_are_not(case: str, face: str) -> None:
    types = types_of(face)
    name, value, kind = UNIONS[case]
    union = getattr(types, name)
    decoded = types.from_builtins(value, union)
    assert isinstance(decoded, union)
    assert type(decoded).__name__ == kind
    assert issubclass(type(decoded), union)
    for other in (None, value, types.Tool(name="t", input_schema={"type": "object"}), object()):
        assert not isinstance(other, union)


@each("face", ["exact.models", "models"])
@each_union
def test_schemas_refer_to_a_union_of_models_by_its_name(case: str, face: str) -> None:
    name = UNIONS[case][0]
    holder = create_model("Holder", value=getattr(types_of(face), name))
    assert holder.model_json_schema()["properties"]["value"]["$ref"] == f"#/$defs/{name}"


@each_face
def test_the_members_of_every_union_are_listed(face: str) -> None:
    types = types_of(face)
    assert [kind.__name__ for kind in spread_union(types.ContentBlock)] == [
        "TextContent", "ImageContent", "AudioContent", "ResourceLink", "EmbeddedResource",
    ]  # fmt: skip


@each("face", ["exact.structs", "structs"])
def test_a_union_without_a_tag_is_widened_by_a_type_of_ones_own(face: str) -> None:
    types = types_of(face)

    class Purchase(types.Struct):  # type: ignore[misc, name-defined]
        receipt: str
        total: int

    union = types.ServerResult | Purchase
    made = types.from_builtins({"receipt": "r", "total": 1, "resultType": "complete"}, union)
    assert isinstance(made, Purchase)
    assert isinstance(made, union)
    content = types.decode(b'{"content": [], "resultType": "complete"}', union)
    assert isinstance(content, types.CallToolResult)
    assert (types.ServerResult | Purchase) is (types.ServerResult | Purchase)


@each("absent", [None, msgspec.UnsetType])
def test_a_union_that_may_be_absent_is_a_union_of_msgspec(absent: Any) -> None:
    union = types_of("exact.structs").ServerResult
    assert get_args(union | absent) == (union, absent or type(None))
