"""Members that a type does not declare are kept if one asks for it, and encoded at their places."""

from __future__ import annotations

import copy
import json
import pickle
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mcpspec.support.errors import DecodeError
from mcpspec.support.objects import is_array, is_object
from mcpspec.support.unknown import Kept, decode_keeping, unknown_members
from mcpspec.v2026_07_28 import structs as plain
from mcpspec.v2026_07_28.exact import structs
from tests.cases import each
from tests.generated.backends import backend, same_json
from tests.generated.vectors import REVISIONS, ValidValue, valid_values

RESULT = (
    b'{"resultType": "complete", "content": [{"type": "text", "text": "rain", "lang": "en"}, '
    b'{"type": "text", "text": "snow"}], "structuredContent": {"any": {"thing": 1}}, "trace": {"id": [1.0]}}'
)

each_structs = each("types", [structs, plain], ids=["exact", "plain"])


@each_structs
def test_undeclared_members_are_encoded_at_their_places(types: Any) -> None:
    kept = decode_keeping(RESULT, types.CallToolResult)
    assert kept.value == types.decode(RESULT, types.CallToolResult)
    assert same_json(kept.encode(), RESULT)
    assert kept.to_builtins() == json.loads(RESULT)
    assert kept.undeclared == [(kept.value, {"trace": {"id": [1.0]}}), (kept.value.content[0], {"lang": "en"})]


@each_structs
def test_undeclared_members_stay_with_their_struct(types: Any) -> None:
    kept = decode_keeping(RESULT, types.CallToolResult)
    kept.value.content.reverse()
    kept.value.content[1].text = "drizzle"
    kept.value.content.insert(0, types.TextContent(text="now:"))
    assert kept.to_builtins()["content"] == [
        {"type": "text", "text": "now:"},
        {"type": "text", "text": "snow"},
        {"type": "text", "text": "drizzle", "lang": "en"},
    ]
    del kept.value.content[2]
    assert unknown_members(kept.encode(), types.CallToolResult) == ["trace"]


def test_members_can_be_added() -> None:
    tool = structs.Tool(name="a", input_schema=structs.ToolInputSchema())
    assert Kept(tool, [(tool, {"color": 1})]).encode() == b'{"name":"a","inputSchema":{"type":"object"},"color":1}'


def test_a_declared_member_wins() -> None:
    tool = structs.Tool(name="a", input_schema=structs.ToolInputSchema())
    assert Kept(tool, [(tool, {"name": "b"})]).to_builtins()["name"] == "a"


def test_copies_and_pickles_keep_them() -> None:
    kept = decode_keeping(RESULT, structs.CallToolResult)
    for again in (copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):  # noqa: S301  # our own bytes
        assert same_json(again.encode(), RESULT)


def test_text_that_does_not_fit_is_rejected() -> None:
    with pytest.raises(DecodeError, match="inputSchema: required, but missing"):
        decode_keeping(b'{"name": "a", "color": 1}', structs.Tool)


def test_deep_values_are_kept() -> None:
    text = b'{"resultType": "complete", "content": [], "structuredContent": %s, "more": 1}' % (b"[" * 500 + b"]" * 500)
    assert same_json(decode_keeping(text, structs.CallToolResult).encode(), text)


@each("version", REVISIONS)
@each("face", ["exact.structs", "structs"])
def test_without_undeclared_members_nothing_changes(version: str, face: str) -> None:
    types = backend(version, face)
    for vector in valid_values(version):
        kind = types.type(vector.definition)
        kept = decode_keeping(types.encode(types.decode(vector.text, kind)), kind)
        assert kept.undeclared == []
        assert kept.encode() == types.encode(kept.value)


@cache
def values_of(version: str) -> list[ValidValue]:
    return valid_values(version)


NAMES = st.sampled_from(["x", "a b", "type", "name", "text", "uri", "_meta", "mimeType", "params", "id"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)


def list_objects(value: Any) -> list[dict[str, Any]]:
    if is_object(value):
        return [value, *(each for part in value.values() for each in list_objects(part))]
    return [each for part in value for each in list_objects(part)] if is_array(value) else []


@st.composite
def mutated(draw: st.DrawFn, version: str) -> tuple[str, bytes]:
    """Draw a valid value of a revision with more members, at random places: definition and text."""
    vector = draw(st.sampled_from(values_of(version)))
    value = json.loads(vector.text)
    places = list_objects(value)
    assume(places)
    for place in draw(st.lists(st.sampled_from(places), min_size=1, max_size=4)):
        for name, member in draw(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3)).items():
            place.setdefault(name, member)
    return vector.definition, json.dumps(value).encode()


@settings(max_examples=200)
@given(version=st.sampled_from(REVISIONS), data=st.data())
def test_whatever_decodes_is_encoded_as_it_was(version: str, data: st.DataObject) -> None:
    types = backend(version, "exact.structs")
    definition, text = data.draw(mutated(version))
    kind = types.type(definition)
    try:
        types.decode(text, kind)
    except DecodeError:  # members at places that allow only certain ones
        assume(False)
    assert same_json(decode_keeping(text, kind).encode(), text)


@settings(max_examples=200)
@given(version=st.sampled_from(REVISIONS), data=st.data())
def test_plain_types_keep_the_same_undeclared_members(version: str, data: st.DataObject) -> None:
    types = backend(version, "structs")
    definition, text = data.draw(mutated(version))
    kind = types.type(definition)
    try:
        decoded = types.decode(text, kind)
    except DecodeError:
        assume(False)
    encoded = decode_keeping(text, kind).encode()
    assert types.decode(encoded, kind) == decoded
    assert unknown_members(encoded, kind) == unknown_members(text, kind)
    for _, members in decode_keeping(text, kind).undeclared:
        assert all(json.dumps(member) in json.dumps(json.loads(encoded)) for member in members.values())
