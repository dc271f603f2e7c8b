"""Members that a type does not declare, and that Structs drop, are found by their paths."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcpspec
from mcpspec.support.errors import DecodeError
from mcpspec.support.objects import is_array, is_object
from mcpspec.support.unknown import unknown_members
from mcpspec.v2025_11_25 import structs as plain
from mcpspec.v2025_11_25.exact import structs
from tests.cases import each

TOOL = {"name": "a", "inputSchema": {"type": "object", "color": 1}, "_meta": {"x": 1}}
TEXT = {"type": "text", "text": "hi"}

CASES: list[tuple[Any, str, list[str]]] = [
    (TOOL, "Tool", []),
    (TOOL | {"color": 1}, "Tool", ["color"]),
    (TOOL | {"annotations": {"title": "t", "a.b": 1}}, "Tool", ['annotations["a.b"]']),
    ({"tools": [TOOL, TOOL | {"color": {"name": 1}}]}, "ListToolsResult", ["tools[1].color"]),
    ({"content": [TEXT | {"lang": "en"}], "more": 1}, "CallToolResult", ["content[0].lang", "more"]),
    (TEXT | {"uri": "x"}, "ContentBlock", ["uri"]),
    ({"type": "resource", "resource": {"uri": "a:b", "text": "t", "size": 1}}, "ContentBlock", ["resource.size"]),
    ({"jsonrpc": "2.0", "id": 1, "method": "ping", "trace": 1}, "ClientRequest", ["trace"]),
    ({"content": [], "structuredContent": {"anything": {"goes": 1}}}, "CallToolResult", []),
]


@each("types", [structs, plain], ids=["exact", "plain"])
@each("value, kind, paths", CASES)
def test_undeclared_members_are_listed_with_their_paths(types: Any, value: Any, kind: str, paths: list[str]) -> None:
    assert sorted(unknown_members(json.dumps(value), getattr(types, kind))) == paths


def test_the_types_of_lists_may_be_plain_too() -> None:
    text = json.dumps([TOOL | {"color": 1, "title": None}])
    assert unknown_members(text, list[plain.Tool]) == ["[0].color"]
    with pytest.raises(DecodeError, match="title: expected string, got null"):
        unknown_members(text, list[structs.Tool])


def test_text_that_does_not_fit_is_rejected() -> None:
    with pytest.raises(DecodeError, match="inputSchema: required, but missing"):
        unknown_members(b'{"name": "a"}', structs.Tool)


def test_values_of_any_depth_are_not_searched_where_nothing_is_declared() -> None:
    deep = "[" * 300 + "]" * 300
    text = f'{{"content": [], "structuredContent": {{"a": {deep}}}, "more": 1}}'
    assert unknown_members(text, structs.CallToolResult) == ["more"]


RESULT: dict[str, Any] = {
    "content": [TEXT, {"type": "resource", "resource": {"uri": "a:b", "blob": ""}, "annotations": {"priority": 1}}],
    "isError": False,
    "_meta": {"a/b": {"c": []}},
}


def list_objects(value: Any) -> list[dict[str, Any]]:
    if is_object(value):
        return [value, *(each for part in value.values() for each in list_objects(part))]
    return [each for part in value for each in list_objects(part)] if is_array(value) else []


@given(st.sampled_from([v for v in mcpspec.VERSIONS if "ping" in mcpspec.revision(v).methods.METHODS]), st.data())
def test_decoding_drops_exactly_the_members_that_are_listed(version: str, data: st.DataObject) -> None:
    types = mcpspec.revision(version).exact.structs
    value = json.loads(json.dumps(RESULT))
    for place in list_objects(value):
        place |= data.draw(
            st.dictionaries(st.sampled_from(["zz", "a b", "0"]), st.integers() | st.lists(st.integers()))
        )
    text = json.dumps(value)
    listed = unknown_members(text, types.CallToolResult)
    kept = json.loads(types.encode(types.decode(text, types.CallToolResult)))
    assert len(listed) == count_members(value) - count_members(kept)
    assert unknown_members(json.dumps(kept), types.CallToolResult) == []


def count_members(value: Any) -> int:
    return sum(len(each) for each in list_objects(value))
