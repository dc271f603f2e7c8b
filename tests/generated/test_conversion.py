"""Values of one revision become values of another, and what is lost is named."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from itertools import cycle, islice
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator, Draft202012Validator

import mcpspec
from mcpspec import compat
from mcpspec.support.conversion import Converted
from mcpspec.support.errors import ConversionError
from mcpspec.support.objects import find_differences
from tests import official
from tests.cases import each
from tests.generated.conversions import check_converted, convert, structs_of
from tests.generated.vectors import valid_values
from tests.pairs import examples
from tests.strategies import fuzzed, instances

OTHER_FACES = ("exact.models", "structs", "models")
OLDEST, NEWEST = mcpspec.VERSIONS[0], mcpspec.VERSIONS[-1]
PREFIX = "io.modelcontextprotocol/"


def shared(source: str, target: str) -> Iterator[str]:
    """Yield the names of the objects that both revisions have."""
    official_names = [schema[key].keys() for schema, key in map(official.patched_schema, (source, target))]
    for name in sorted(official_names[0] & official_names[1]):
        kinds = [getattr(structs_of(version), name, None) for version in (source, target)]
        if all(isinstance(kind, type) and hasattr(kind, "__struct_fields__") for kind in kinds):
            yield name


def is_valid(version: str, name: str, value: Any) -> bool:
    schema, key = official.patched_schema(version)
    kind = Draft7Validator if key == "definitions" else Draft202012Validator
    checked: Any = kind({**schema, "$ref": f"#/{key}/{name}"})
    found: bool = checked.is_valid(value)
    return found


@pytest.mark.long
@pytest.mark.parametrize("source", mcpspec.VERSIONS)
def test_a_converted_value_is_valid_and_converted_back_lacks_only_what_was_lost(source: str) -> None:
    targets = {target: {*shared(source, target)} for target in mcpspec.VERSIONS if target != source}
    converted: Counter[str] = Counter()
    rejected: Counter[str] = Counter()

    def check(name: str, value: Any) -> None:
        for target in (target for target, names in targets.items() if name in names):
            done = check_converted(value, name, source, target, partial(is_valid, target))
            (converted if done else rejected)[target] += 1

    def check_generated(name: str) -> None:
        fuzzed(instances(source, name), examples(10))(lambda value: check(name, value))()

    for name in sorted(set[str]().union(*targets.values())):
        check_generated(name)
    for vector in valid_values(source):
        check(vector.definition, json.loads(vector.text))
    assert all(converted[target] > 4 * rejected[target] and converted[target] >= examples(300) for target in targets)


@pytest.mark.parametrize("source", mcpspec.VERSIONS)
def test_every_face_converts_as_structs_do(source: str) -> None:
    """Each value is converted to each revision, and in each face. The faces take turns at the revisions."""
    older = structs_of(source)
    targets = [version for version in mcpspec.VERSIONS if version != source]
    for turn, vector in enumerate(valid_values(source)):
        value: Any = older.decode(vector.text, getattr(older, vector.definition))
        if not isinstance(value, msgspec.Struct):
            continue
        for target, face in zip(targets, islice(cycle(OTHER_FACES), turn % len(OTHER_FACES), None), strict=False):
            types, builtins = types_of(source, face), older.to_builtins(value)
            expected = convert(value, builtins, target)
            made = convert(types.from_builtins(builtins, getattr(types, vector.definition)), builtins, target)
            if isinstance(expected, ConversionError):
                assert str(made) == str(expected), vector
                continue
            assert isinstance(made, Converted), vector
            newer = types_of(target, face)
            kind = getattr(newer, type(expected.value).__name__)
            assert type(made.value) is kind
            same = newer.from_builtins(structs_of(target).to_builtins(expected.value), kind)
            assert newer.to_builtins(made.value) == newer.to_builtins(same), vector
            # A plain type may say a default by leaving it out, and keeps what a type of its `_meta` does not declare.
            undeclared = {path.removeprefix(".") for path in find_differences(json.loads(vector.text), builtins, "")}
            assert {*made.lost} <= {*expected.lost} | undeclared, vector


def types_of(version: str, face: str) -> Any:
    return import_module(f"{mcpspec.revision(version).__name__}.{face}")


newest, oldest = types_of(NEWEST, "exact.structs"), types_of(OLDEST, "exact.structs")
last_legacy = types_of("2025-11-25", "exact.structs")
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}]},
        "toppings": {"type": "array", "items": {"type": "string", "enum": ["ham"]}},
    },
}
FORM_OF_2025_06_18: dict[str, Any] = {
    "type": "object",
    "properties": {"size": {"type": "string", "enum": ["s"], "enumNames": ["Small"]}},
}
REQUIRED_META: dict[str, Any] = {f"{PREFIX}protocolVersion": NEWEST, f"{PREFIX}clientCapabilities": {}}

LOSSES: dict[str, tuple[Any, str, list[str], dict[str, Any]]] = {
    "nothing": (newest.TextContent(text="hi"), OLDEST, [], {"type": "text", "text": "hi"}),
    "a response whose type has another name": (
        newest.JSONRPCErrorResponse(id=1, error=newest.Error(code=-32602, message="no")),
        OLDEST,
        [],
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}},
    ),
    "a member": (
        newest.Tool(name="t", title="T", input_schema={"type": "object"}),
        OLDEST,
        ["title"],
        {"name": "t", "inputSchema": {"type": "object"}},
    ),
    "a member of an item of a list": (
        newest.CallToolResult(
            content=[newest.TextContent(text="a", annotations=newest.Annotations(last_modified="x"))]
        ),
        OLDEST,
        ["content[0].annotations.lastModified"],
        {"content": [{"type": "text", "text": "a", "annotations": {}}]},
    ),
    "the type of content": (
        newest.CallToolResult(content=[newest.AudioContent(data=b"", mime_type="audio/wav")]),
        OLDEST,
        ["content[0].type", "content[0].data", "content[0].mimeType"],
        {"content": [{"type": "text", "text": "[audio, audio/wav]"}]},
    ),
    "structured content that is no object": (
        newest.CallToolResult(content=[], structured_content=[1]),
        "2025-06-18",
        ["structuredContent"],
        {"content": []},
    ),
    "nothing of a result that says what clients assume": (
        newest.ListToolsResult(tools=[], ttl_ms=0, cache_scope="private"),
        OLDEST,
        [],
        {"tools": []},
    ),
    "how long a result may be kept": (
        newest.ListToolsResult(tools=[], ttl_ms=9, cache_scope="private"),
        OLDEST,
        ["ttlMs"],
        {"tools": []},
    ),
    "nothing of metadata that the newest revision alone lacks": (
        oldest.ListRootsResult(roots=[], meta={"a": 1}),
        "2025-11-25",
        [],
        {"roots": [], "_meta": {"a": 1}},
    ),
    "nothing of metadata with a name that the newest revision reserves": (
        oldest.CompleteResult(
            completion=oldest.CompleteResultCompletion(values=[]), meta={f"{PREFIX}serverInfo": {"name": "a"}}
        ),
        "2025-11-25",
        [],
        {"completion": {"values": []}, "_meta": {f"{PREFIX}serverInfo": {"name": "a"}}},
    ),
    "nothing of metadata of parameters that the newest revision alone lacks": (
        last_legacy.from_builtins(
            {"messages": [], "maxTokens": 1, "_meta": {"progressToken": 1}}, last_legacy.CreateMessageRequestParams
        ),
        OLDEST,
        [],
        {"messages": [], "maxTokens": 1, "_meta": {"progressToken": 1}},
    ),
    "nothing of a list's metadata, whose parameters have another name": (
        last_legacy.from_builtins(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"progressToken": 1}}},
            last_legacy.ListToolsRequest,
        ),
        OLDEST,
        [],
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"progressToken": 1}}},
    ),
    "metadata that the newest revision requires": (
        newest.from_builtins({"_meta": {**REQUIRED_META, "a": 1}}, newest.RequestParams),
        "2025-11-25",
        [f'_meta["{name}"]' for name in REQUIRED_META],
        {"_meta": {"a": 1}},
    ),
    "a multiple choice, but not the titles of a choice": (
        newest.from_builtins({"message": "?", "requestedSchema": FORM}, newest.ElicitRequestFormParams),
        "2025-06-18",
        ["requestedSchema.properties.toppings", "requestedSchema.properties.size.oneOf"],
        {"message": "?", "requestedSchema": FORM_OF_2025_06_18},
    ),
    "nothing of a result without members": (
        oldest.from_builtins({"jsonrpc": "2.0", "id": 1, "result": {}}, oldest.JSONRPCResponse),
        NEWEST,
        [],
        {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}},
    ),
    "nothing of a result that says that it is complete": (
        newest.from_builtins(
            {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}}, newest.JSONRPCResultResponse
        ),
        OLDEST,
        [],
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ),
}


@each("case", LOSSES)
def test_what_is_lost_is_named_with_its_path(case: str) -> None:
    value, target, lost, sent = LOSSES[case]
    made = mcpspec.convert(value, target)
    assert sorted(made.lost) == sorted(lost)
    assert structs_of(target).to_builtins(made.value) == sent


def test_an_undeclared_member_of_a_model_is_lost() -> None:
    models = types_of(NEWEST, "exact.models")
    tool = models.from_builtins({"name": "t", "inputSchema": {"type": "object"}, "x": 1}, models.Tool)
    assert mcpspec.convert(tool, OLDEST).lost == ["x"]


def test_members_of_meta_are_given_to_a_request_that_needs_them() -> None:
    request = oldest.CallToolRequest(id=1, params=oldest.CallToolRequestParams(name="t"))
    with pytest.raises(ConversionError, match=r"^params\._meta.*required") as caught:
        mcpspec.convert(request, NEWEST)
    assert caught.value.path == "params._meta"
    made = mcpspec.convert(request, NEWEST, meta=REQUIRED_META)
    assert newest.to_builtins(made.value)["params"] == {"name": "t", "_meta": REQUIRED_META}
    assert made.lost == []


@each(
    "value, given",
    [
        (oldest.CallToolRequest(id=1, params=oldest.CallToolRequestParams(name="t")), None),
        (oldest.CallToolRequestParams(name="t"), None),
        (oldest.ListToolsRequest(id=1), None),
        (oldest.ListToolsRequest(id=1), {"io.modelcontextprotocol/protocolVersion": NEWEST}),
    ],
    ids=["request", "parameters", "no parameters", "incomplete"],
)
def test_an_error_about_missing_metadata_names_the_argument(value: Any, given: dict[str, Any] | None) -> None:
    with pytest.raises(ConversionError, match=r"required, but missing \(from .*; pass .* as `meta=`$"):
        mcpspec.convert(value, NEWEST, meta=given)


@each("path, reason", [("params.name", "required, but missing"), ("params._meta", "expected object, got 1")])
def test_an_error_about_something_else_does_not_name_the_argument(path: str, reason: str) -> None:
    assert str(ConversionError(path, reason, OLDEST, NEWEST)).endswith(f"(from {OLDEST} to {NEWEST})")


@each("target", mcpspec.VERSIONS[:-1])
def test_all_parts_of_a_converted_value_are_of_the_target(target: str) -> None:
    plain: dict[str, Any] = {"content": [{"type": "text", "text": "a"}], "resultType": "complete", "_meta": {}}
    made = mcpspec.convert(newest.from_builtins(plain, newest.CallToolResult), target).value
    assert type(made.content[0]) is structs_of(target).TextContent
    assert type(made.meta) is type(structs_of(target).from_builtins(plain, structs_of(target).CallToolResult).meta)


ERRORS: dict[str, tuple[Any, str, type[Exception], str]] = {
    **{
        f"a schema whose dialect is {name}": (
            oldest.from_builtins({"name": "t", "inputSchema": {"type": "object", "$schema": value}}, oldest.Tool),
            NEWEST,
            ConversionError,
            rf"^inputSchema\.\$schema: expected string, got {name} ",
        )
        for name, value in {"null": None, "5": 5}.items()
    },
    "a type that the revision lacks": (
        newest.Icon(src="https://example.com/i.png"),
        OLDEST,
        ConversionError,
        rf"Icon does not exist there \(from {NEWEST} to {OLDEST}\)",
    ),
    "a revision that does not exist": (newest.TextContent(text=""), "2020-01-01", LookupError, "2020-01-01"),
    "a value of the types free of revisions": (
        compat.TextContent(text=""),
        OLDEST,
        TypeError,
        "TextContent of mcpspec.compat is of no revision; decode it as a type of the revision first",
    ),
    "an everyday value that its own revision does not allow": (
        mcpspec.revision("2025-06-18").structs.Tool(name="w", input_schema={}),
        NEWEST,
        ConversionError,
        "inputSchema.type: required, but missing, as the exact type of 2025-06-18 says",
    ),
    "a value of no revision": ({"type": "text"}, OLDEST, TypeError, "expected a value of a type of mcpspec, got dict"),
}


@each("case", ERRORS)
def test_what_cannot_be_converted_is_an_error(case: str) -> None:
    value, target, kind, words = ERRORS[case]
    with pytest.raises(kind, match=words):
        mcpspec.convert(value, target)


def test_a_value_of_the_revision_itself_is_returned_as_it_is() -> None:
    content = newest.TextContent(text="hi")
    assert mcpspec.convert(content, NEWEST).value is content


@each("source", mcpspec.VERSIONS)
@each("target", mcpspec.VERSIONS)
def test_the_schemas_of_a_tool_keep_all_their_members_and_are_of_the_target(source: str, target: str) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "x-mine": 1}
    plain = {"name": "weather", "inputSchema": schema, "outputSchema": schema}
    tool, there = (structs_of(version).Tool for version in (source, target))
    converted = mcpspec.convert(structs_of(source).from_builtins(plain, tool), target)
    assert converted.value.input_schema == schema
    assert type(converted.value.input_schema) is structs_of(target).ToolInputSchema
    if all("output_schema" in kind.__struct_fields__ for kind in (tool, there)):
        assert converted.value.output_schema == schema
        assert type(converted.value.output_schema) is structs_of(target).ToolOutputSchema
    assert [path for path in converted.lost if not path.startswith("outputSchema")] == []


def test_members_of_the_given_metadata_replace_those_of_the_request() -> None:
    older = mcpspec.revision("2025-06-18").structs
    own = {"io.modelcontextprotocol/protocolVersion": "2025-06-18", "mine": 1}
    request = older.CallToolRequest(id=1, params=older.CallToolRequestParams(name="a", meta=own))
    given: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    made = mcpspec.convert(request, "2026-07-28", meta=given)
    assert dict(made.value.params.meta) == {**given, "mine": 1}


@each("value", [mcpspec.v2026_07_28.structs.Tool, mcpspec.v2026_07_28.models.Tool, 1, None], ids=repr)
def test_what_is_no_value_of_a_revision_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match="expected a value of a type of mcpspec"):
        mcpspec.convert(value, "2025-06-18")
