"""The plain types say the same as the exact ones, with None and defaults for what is absent."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, Field

from mcpspec.support import everyday_structs
from mcpspec.support.everyday_structs import find_null_members
from mcpspec.support.objects import is_array, is_object, spread_union
from mcpspec.support.structs import shape_of
from mcpspec.v2026_07_28 import models, structs
from tests.cases import each
from tests.generated.backends import PACKAGES
from tests.generated.vectors import REVISIONS, valid_values
from tests.paths import ROOT

LIBRARIES = (structs, models)
each_library = each("types", LIBRARIES, ids=["structs", "models"])
each_revision = each("version", REVISIONS)
each_face = each("library", ["structs", "models"])


def both(version: str, library: str) -> tuple[ModuleType, ModuleType]:
    """Return the exact and the everyday module of a revision."""
    package = PACKAGES[version]
    return import_module(f"{package}.exact.{library}"), import_module(f"{package}.{library}")


# What people write and read


@each_library
def test_absent_members_are_none(types: Any) -> None:
    tool = types.Tool(name="a", input_schema={"type": "object"}, title=None)
    assert (tool.description or "") == ""
    assert f"{tool.title}" == "None"
    assert tool.annotations is None
    assert types.encode(tool) == b'{"name":"a","inputSchema":{"type":"object"}}'


@each_library
def test_a_result_is_no_error_unless_it_says_so(types: Any) -> None:
    result = types.CallToolResult(content=[])
    assert result.is_error is False
    assert result.structured_content is None
    assert json.loads(types.encode(result)) == {"resultType": "complete", "content": []}
    assert json.loads(types.encode(types.CallToolResult(content=[], is_error=True)))["isError"] is True


def test_an_absent_member_of_an_open_object_has_the_protocols_default() -> None:
    class Report(everyday_structs.OpenObject):
        is_done: bool = everyday_structs.member(name="isDone", default=False)
        note: str | None = everyday_structs.member(name="note", default=None)

    report = Report()
    assert (report.is_done, report.note, {**report}) == (False, None, {})
    copied = copy.copy(report)
    copied.is_done = True
    assert (type(copied), {**copied}, {**report}) == (Report, {"isDone": True}, {})
    copied.is_done = False
    assert copied == report


@each_library
def test_the_last_page_has_no_cursor(types: Any) -> None:
    text = types.encode(types.ListToolsResult(tools=[], next_cursor=None))
    assert "nextCursor" not in json.loads(text)
    assert types.decode(text, types.ListToolsResult).next_cursor is None


@each_library
def test_schemas_and_meta_are_plain_dicts(types: Any) -> None:
    text = b'{"name": "a", "inputSchema": {"type": "object", "x": null}, "_meta": {"k": [1]}}'
    tool = types.decode(text, types.Tool)
    assert [value.__class__ for value in (tool.input_schema, tool.meta)] == [dict, dict]
    assert json.loads(json.dumps(tool.input_schema)) == {"type": "object", "x": None}
    assert tool.input_schema["type"] == "object"
    assert json.loads(types.encode(tool)) == json.loads(text)


def test_a_dumped_model_is_what_is_on_the_wire() -> None:
    tool = models.Tool(name="a", input_schema={"type": "object"}, annotations=models.ToolAnnotations(title="b"))
    assert json.dumps(tool.model_dump()) == json.dumps(json.loads(models.encode(tool)))
    assert json.loads(tool.model_dump_json()) == tool.model_dump()
    assert (
        json.loads(Shelf(tool=tool).model_dump_json()) == Shelf(tool=tool).model_dump() == {"tool": tool.model_dump()}
    )


class Shelf(BaseModel):
    """A model of somebody else, with one of ours in it."""

    tool: models.Tool


class Priced(models.Tool):
    """A tool with a member of a vendor."""

    price: int | None = None
    currency: str | None = Field(default=None, exclude_if=lambda value: value == "EUR")


def test_absent_members_of_a_class_that_inherits_are_left_out_unless_it_says_otherwise() -> None:
    assert Priced(name="a", input_schema={}).model_dump() == {"name": "a", "inputSchema": {}, "currency": None}
    assert "currency" not in Priced(name="a", input_schema={}, currency="EUR").model_dump()


@each_library
def test_constants_can_be_given(types: Any) -> None:
    assert types.TextContent(type="text", text="a") == types.TextContent(text="a")
    listing = types.ListToolsRequest(method="tools/list", jsonrpc="2.0", id=1, params={"_meta": {}})
    assert listing == types.ListToolsRequest(id=1, params={"_meta": {}})
    assert types.TextContent(text="a").type == "text"


@each("types, error", [(structs, TypeError), (models, ValueError)], ids=["structs", "models"])
def test_another_constant_is_rejected(types: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="'text'"):
        types.TextContent(type="image", text="a")


def test_models_accept_names_of_both_kinds() -> None:
    expected = models.ImageContent(data="", mime_type="image/png")
    assert models.ImageContent(data="", mimeType="image/png") == expected  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


@each_library
def test_hints_that_are_given_are_kept_also_if_they_say_what_their_absence_means(types: Any) -> None:
    assert types.ToolAnnotations().destructive_hint is None
    text = b'{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}'
    assert types.encode(types.decode(text, types.ToolAnnotations)) == text
    hints = types.ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    )
    assert types.encode(hints) == text


@each_library
def test_values_are_matched_copied_pickled_and_compared(types: Any) -> None:
    result = types.CallToolResult(content=[types.TextContent(text="a")], structured_content={"b": [1]})
    assert copy.deepcopy(result) == result
    assert copy.copy(result) == result
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301  # our own bytes
    assert [result].index(types.from_builtins(types.to_builtins(result), types.CallToolResult)) == 0
    assert isinstance(result.content[0], types.TextContent)


def test_content_is_matched_by_its_members() -> None:
    block: structs.ContentBlock = structs.decode(b'{"type": "text", "text": "a"}', structs.ContentBlock)
    match block:
        case structs.TextContent(type="text", text=text):
            assert text == "a"
        case _:
            pytest.fail("no text")


# Null


@each_library
def test_null_and_absence_differ_where_any_value_is_allowed(types: Any) -> None:
    null = types.CallToolResult(content=[], structured_content=types.NULL)
    text = types.encode(null)
    assert json.loads(text)["structuredContent"] is None
    assert types.decode(text, types.CallToolResult) == null
    assert types.from_builtins(json.loads(text), types.CallToolResult) == null
    assert types.to_builtins(null) == json.loads(text)
    assert not null.structured_content
    assert types.CallToolResult(content=[], structured_content=None) == types.CallToolResult(content=[])


@each_library
def test_null_is_kept_inside_of_other_results(types: Any) -> None:
    block: dict[str, Any] = {"type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": None}
    message = {"role": "user", "content": [{"type": "text", "text": ""}, block]}
    decoded = types.from_builtins(message, types.SamplingMessage)
    assert decoded.content[1].structured_content is types.NULL
    assert types.to_builtins(decoded) == message


@each_revision
@each_face
def test_null_stands_for_any_optional_member(version: str, library: str) -> None:
    _, plain = both(version, library)
    _, everyday_structs = both(version, "structs")
    checked = 0
    for vector in valid_values(version):
        kind = getattr(everyday_structs, vector.definition)
        shape, value = shape_of(kind), json.loads(vector.text)
        if shape is None or not is_object(value):
            continue
        for member in shape.members:
            if member.required or any(option is Any for option in spread_union(member.hint)):
                continue
            without = {key: each for key, each in value.items() if key != member.wire}
            text = json.dumps({**without, member.wire: None})
            target = getattr(plain, vector.definition)
            assert plain.decode(text, target) == plain.from_builtins(without, target), (vector.definition, member.wire)
            assert member.wire in find_null_members(text, kind)
            checked += 1
    assert checked > 50


@each_library
def test_null_is_no_value_of_a_required_member(types: Any) -> None:
    with pytest.raises(types.DecodeError) as caught:
        types.decode(b'{"name": null, "inputSchema": {}}', types.Tool)
    assert caught.value.path == "name"


def test_values_of_any_depth_raise_decode_errors() -> None:
    for deep in ("[" * 5000 + "]" * 5000, '{"a":' * 5000 + "null" + "}" * 5000):
        with pytest.raises(structs.DecodeError):
            structs.decode(f'{{"name": 1, "inputSchema": {deep}}}', structs.Tool)


# The same as the exact types


@cache
def _meanings(version: str) -> list[tuple[str, Any]]:
    """Return the members, with their values, that may be left out because they mean what absence means."""
    supplement = json.loads((ROOT / "schema" / "supplement.json").read_text(encoding="utf-8"))
    stated = [each for members in supplement["protocol_defaults"].values() for each in members.items()]
    return [*stated, ("mode", "form"), ("jsonrpc", "2.0")]


def lost_members(exact: Any, plain: Any, sent: Any, version: str, path: str = "") -> Iterator[str]:
    """Yield the places where plain types encode something else than exact ones, other than defaults.

    Plain objects also have what was sent and exact types do not declare.
    """
    if is_object(exact) and is_object(plain):
        for key, value in exact.items():
            if key in plain:
                yield from lost_members(value, plain[key], sent.get(key, {}), version, f"{path}.{key}")
            elif (key, value) not in _meanings(version):
                yield f"{path}.{key}"
        yield from (f"{path}.{key} is new" for key in plain.keys() - exact.keys() - sent.keys())
    elif is_array(exact) and is_array(plain) and len(exact) == len(plain):
        for i, (left, right) in enumerate(zip(exact, plain, strict=True)):
            yield from lost_members(left, right, sent[i], version, f"{path}[{i}]")
    elif exact != plain or type(exact) is not type(plain):
        yield f"{path}: {exact!r} became {plain!r}"


@each_revision
@each_face
def test_a_valid_value_means_the_same_in_both_faces(version: str, library: str) -> None:
    exact, plain = both(version, library)
    for vector in valid_values(version):
        kind, plain_kind = getattr(exact, vector.definition), getattr(plain, vector.definition)
        decoded = plain.decode(vector.text, plain_kind)
        text = plain.encode(decoded)
        unchanged = exact.encode(exact.decode(vector.text, kind))
        sent = json.loads(vector.text)
        assert [*lost_members(json.loads(unchanged), json.loads(text), sent, version)] == [], vector
        assert plain.decode(text, plain_kind) == decoded, vector
        exact.decode(text, kind)
