"""Results reach the caller in the dialect: all valid parts, and a problem for each invalid one."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import pytest

from mcpspec.support.objects import is_array, is_object, spread_union
from tests.cases import each
from tests.pairs import examples
from tests.paths import ROOT
from tests.spoken import LEGACY, MODERN_REVISION, SUPPORTED
from tests.strategies import fuzzed, instances
from typedmcp.client.results.decoder import MAX_PROBLEMS, ResultProblem, result_decoder
from typedmcp.dialect import methods, structs
from typedmcp.errors import DecodeError, ProtocolError, UsageError
from typedmcp.revisions.features import DIALECT, methods_of, structs_of

HEADER = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
CACHED = {
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
}

TEXT = {"type": "text", "text": "a"}
TOOL = {"name": "a", "inputSchema": {"type": "object"}}
ICON = {"src": "data:,"}


def encode_result(method: str, revision: str, members: dict[str, Any]) -> bytes:
    """Return a result as a server of the revision sends it."""
    header = HEADER if method in CACHED else {"resultType": "complete"}
    return json.dumps(members if revision != MODERN_REVISION else {**header, **members}).encode()


def read(method: str, revision: str, members: dict[str, Any]) -> tuple[Any, list[ResultProblem]]:
    problems: list[ResultProblem] = []
    return result_decoder(method, revision)(encode_result(method, revision, members), problems), problems


def plain(result: Any) -> dict[str, Any]:
    """Return a result as JSON, without the members that the dialect adds to all results."""
    members: dict[str, Any] = structs.to_builtins(result)
    return {key: value for key, value in members.items() if key not in HEADER}


def rebuilt(result: Any) -> Any:
    """Return the result built again from JSON. Fails if a member does not have its type."""
    return structs.from_builtins(structs.to_builtins(result), cast(Any, type)(result))


@each("revision", SUPPORTED)
@each("uri", [None, 5], ids=repr)
def test_a_schema_that_names_no_dialect_is_a_problem_on_every_revision(revision: str, uri: Any) -> None:
    schema = {"type": "object", "$schema": uri}
    result, problems = read("tools/list", revision, {"tools": [TOOL, {"name": "b", "inputSchema": schema}]})
    assert [tool.name for tool in result.tools] == ["a"]
    assert [problem.path for problem in problems] == ["result.tools[1].inputSchema.$schema"]


# Valid results


@each("revision", SUPPORTED)
@each("method", methods.CLIENT_REQUESTS)
def test_every_request_of_a_revision_has_a_decoder(method: str, revision: str) -> None:
    if method not in methods_of(revision).CLIENT_REQUESTS:
        with pytest.raises(UsageError, match=f"{method}: not a method of {revision}"):
            result_decoder(method, revision)
    else:
        assert result_decoder(method, revision) is result_decoder(method, revision)


@each("method", ["initialize", "ping", "nope"])
def test_an_unknown_method_has_no_decoder(method: str) -> None:
    with pytest.raises(UsageError, match=f"{method}: not a method of"):
        result_decoder(method, "2025-11-25")


@each("revision", LEGACY)
def test_required_members_that_legacy_results_lack_are_filled_in(revision: str) -> None:
    result, problems = read("tools/list", revision, {"tools": [TOOL]})
    assert isinstance(result, structs.ListToolsResult)
    assert (result.result_type, result.ttl_ms, result.cache_scope) == ("complete", 0, "private")
    assert type(result.tools[0]) is structs.Tool
    assert type(result.tools[0].input_schema) is dict
    assert not problems


def test_raw_is_decoded_like_bytes() -> None:
    message = msgspec.json.decode(b'{"result": {"content": []}}', type=dict[str, msgspec.Raw])
    assert result_decoder("tools/call", "2025-06-18")(message["result"], []) == structs.CallToolResult(
        content=[], result_type="complete"
    )


def test_task_members_of_tools_are_dropped_silently() -> None:
    result, problems = read("tools/list", "2025-11-25", {"tools": [{**TOOL, "execution": {"taskSupport": "optional"}}]})
    assert plain(result) == {"tools": [TOOL]}
    assert not problems


def test_the_metadata_of_a_legacy_result_is_a_dict() -> None:
    known = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}, "x": 1}
    result, problems = read("tools/list", "2025-11-25", {"tools": [], "_meta": known})
    assert result.meta == known
    assert not problems


# Result types


INPUT_REQUIRED = {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}, "requestState": "s"}


@each("method", ["tools/call", "prompts/get", "resources/read"])
def test_an_input_required_result_is_never_taken_for_a_complete_one(method: str) -> None:
    problems: list[ResultProblem] = []
    others: list[dict[str, Any]] = [{}, {"_meta": {"x": 1}}, {"content": [], "messages": [], "contents": []}]
    for more in others:
        result = result_decoder(method, MODERN_REVISION)(json.dumps({**INPUT_REQUIRED, **more}).encode(), problems)
        assert isinstance(result, structs.InputRequiredResult)
        assert result.request_state == "s"
    assert not problems


UNKNOWN_TYPES = {
    "another": b'"bogus"', "empty": b'""', "null": b"null", "a number": b"3", "a list": b'["complete"]',
    "another case": b'"Complete"', "very many digits": b"1" * 5000, "very long": b'"%s"' % (b"x" * 5000),
}  # fmt: skip


@each("name", UNKNOWN_TYPES)
def test_an_unknown_result_type_raises_protocol_error(name: str) -> None:
    raw = b'{"content": [], "resultType": %s}' % UNKNOWN_TYPES[name]
    with pytest.raises(ProtocolError, match=r"^result\.resultType: ") as got:
        result_decoder("tools/call", MODERN_REVISION)(raw, [])
    assert len(str(got.value)) < 200


def test_the_error_names_the_known_result_types() -> None:
    with pytest.raises(ProtocolError, match=r': expected "complete" or "input_required", got "bogus"$'):
        result_decoder("prompts/get", MODERN_REVISION)(b'{"resultType": "bogus"}', [])


def test_a_list_cannot_be_an_input_required_result() -> None:
    with pytest.raises(ProtocolError, match=r'result\.resultType: expected "complete", got "input_required"'):
        result_decoder("tools/list", MODERN_REVISION)(json.dumps({**INPUT_REQUIRED, "tools": []}).encode(), [])


def test_the_result_type_of_a_legacy_result_is_ignored() -> None:
    assert read("tools/call", "2025-11-25", {"content": [], "resultType": "bogus"})[0].content == []


BROKEN_INPUT_REQUIRED: dict[str, dict[str, Any]] = {
    "result.inputRequests.r.method": {**INPUT_REQUIRED, "inputRequests": {"r": {"method": "nope"}}},
    "result.inputRequests": {**INPUT_REQUIRED, "inputRequests": []},
    "result.requestState": {**INPUT_REQUIRED, "requestState": 3},
}


@each("path", BROKEN_INPUT_REQUIRED)
def test_an_invalid_input_required_result_raises_decode_error(path: str) -> None:
    with pytest.raises(DecodeError) as got:
        result_decoder("tools/call", MODERN_REVISION)(json.dumps(BROKEN_INPUT_REQUIRED[path]).encode(), [])
    assert got.value.path == path


def test_an_invalid_is_error_raises_decode_error() -> None:
    with pytest.raises(DecodeError, match=r'result\.isError: expected boolean, got "yes"'):
        read("tools/call", MODERN_REVISION, {"content": [], "isError": "yes"})


# Invalid parts


@dataclass
class Case:
    method: str
    sent: dict[str, Any]
    kept: dict[str, Any]
    problems: list[str]
    revisions: tuple[str, ...] = SUPPORTED
    values: list[Any] = field(default_factory=list[Any])


NEEDS_SCHEMA = "required, but missing"
CASES: dict[str, Case] = {
    "a bad tool": Case(
        "tools/list",
        {"tools": [TOOL, {"name": "b", "inputSchema": {"type": "objekt"}}, TOOL]},
        {"tools": [TOOL, TOOL]},
        ['result.tools[1].inputSchema.type: expected "object", got "objekt"'],
        values=[{"name": "b", "inputSchema": {"type": "objekt"}}],
    ),
    "a tool without a schema, and what is no tool": Case(
        "tools/list",
        {"tools": [{"name": "b"}, 3, None]},
        {"tools": []},
        [
            "result.tools[0].inputSchema: required, but missing",
            "result.tools[1]: expected object, got 3",
            "result.tools[2]: expected object, got null",
        ],
        values=[{"name": "b"}, 3, None],
    ),
    "a boolean schema of a property": Case(
        "tools/list",
        {"tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"x": True}}}]},
        {"tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"x": True}}}]},
        [f"result.tools[0].inputSchema.properties.x: expected object, got true; kept, since {DIALECT} allows it"],
        LEGACY,
    ),
    "an output that is no object": Case(
        "tools/list",
        {"tools": [{**TOOL, "outputSchema": {"type": "array"}}]},
        {"tools": [{**TOOL, "outputSchema": {"type": "array"}}]},
        [f'result.tools[0].outputSchema.type: expected "object", got "array"; kept, since {DIALECT} allows it'],
        ("2025-11-25", "2025-06-18"),
    ),
    "a dialect that is no string": Case(
        "tools/list",
        {"tools": [{"name": "a", "inputSchema": {"type": "object", "$schema": 3}}]},
        {"tools": []},
        ["result.tools[0].inputSchema.$schema: expected string, got 3"],
    ),
    "a bad prompt": Case(
        "prompts/list",
        {"prompts": [{"name": "a"}, {"name": "b", "arguments": [{}]}]},
        {"prompts": [{"name": "a"}]},
        ["result.prompts[1].arguments[0].name: required, but missing"],
    ),
    "a bad resource": Case(
        "resources/list",
        {"resources": [{"name": "a", "uri": "u"}, {"name": "b"}]},
        {"resources": [{"name": "a", "uri": "u"}]},
        ["result.resources[1].uri: required, but missing"],
    ),
    "a bad template": Case(
        "resources/templates/list",
        {"resourceTemplates": [{"name": "a", "uriTemplate": 1}, {"name": "a", "uriTemplate": "u"}]},
        {"resourceTemplates": [{"name": "a", "uriTemplate": "u"}]},
        ["result.resourceTemplates[0].uriTemplate: expected string, got 1"],
    ),
    "content of an unknown type": Case(
        "tools/call",
        {"content": [TEXT, {"type": "video", "url": "u"}, TEXT], "isError": True},
        {"content": [TEXT, TEXT], "isError": True},
        ['result.content[1].type: expected "text", "image", "audio", "resource_link" or "resource", got "video"'],
        (MODERN_REVISION, "2025-11-25", "2025-06-18"),
        [{"type": "video", "url": "u"}],
    ),
    "content with a wrong member": Case(
        "tools/call",
        {"content": [{"type": "text", "text": 3}, {"type": "text"}, TEXT, {}]},
        {"content": [TEXT]},
        [
            "result.content[0].text: expected string, got 3",
            "result.content[1].text: required, but missing",
            "result.content[3].type: required, but missing",
        ],
    ),
    "content that came later": Case(
        "tools/call",
        {"content": [{"type": "resource_link", "name": "n", "uri": "u"}]},
        {"content": [{"type": "resource_link", "name": "n", "uri": "u"}]},
        [
            'result.content[0].type: expected "text", "image" or "resource", got "resource_link"; '
            f"kept, since {DIALECT} allows it"
        ],
        ("2024-11-05",),
    ),
    "members that came later": Case(
        "tools/list",
        {"tools": [{**TOOL, "title": "T", "outputSchema": {"type": "object"}, "icons": [ICON], "vendor": 1}, TOOL]},
        {"tools": [{**TOOL, "title": "T", "outputSchema": {"type": "object"}, "icons": [ICON]}, TOOL]},
        [
            f"result.tools[0].{name}: not a member in 2025-03-26; kept, since {DIALECT} has it"
            for name in ("title", "icons", "outputSchema")
        ],
        ("2025-03-26",),
    ),
    "a member that came later, in many items": Case(
        "resources/list",
        {"resources": [{"name": "a", "uri": "u", "title": "T"}] * 3},
        {"resources": [{"name": "a", "uri": "u", "title": "T"}] * 3},
        [f"result.resources[0].title: not a member in 2025-03-26; kept, since {DIALECT} has it"],
        ("2025-03-26",),
    ),
    "a result with a member that came later": Case(
        "tools/call",
        {"content": [TEXT], "structuredContent": {"a": 1}},
        {"content": [TEXT], "structuredContent": {"a": 1}},
        [f"result.structuredContent: not a member in 2024-11-05; kept, since {DIALECT} has it"],
        ("2024-11-05",),
    ),
    "members that came later and are not valid": Case(
        "tools/list",
        {"tools": [{**TOOL, "title": 3}, {**TOOL, "icons": 5}]},
        {"tools": [TOOL, TOOL]},
        [
            f"result.tools[0].title: not a member in 2025-03-26; left out, since it does not fit {DIALECT}",
            f"result.tools[1].icons: not a member in 2025-03-26; left out, since it does not fit {DIALECT}",
        ],
        ("2025-03-26",),
    ),
    "text that names members that came later": Case(
        "tools/call",
        {"content": [{"type": "text", "text": '{"structuredContent": 1, "title": 2}'}]},
        {"content": [{"type": "text", "text": '{"structuredContent": 1, "title": 2}'}]},
        [],
        ("2025-03-26",),
    ),
    "structured content that is no object": Case(
        "tools/call",
        {"content": [], "structuredContent": [1]},
        {"content": [], "structuredContent": [1]},
        [f"result.structuredContent: expected object, got array; kept, since {DIALECT} allows it"],
        ("2025-11-25", "2025-06-18"),
    ),
    "a message with unknown content": Case(
        "prompts/get",
        {"messages": [{"role": "user", "content": {"type": "text"}}, {"role": "user", "content": TEXT}, {"role": "x"}]},
        {"messages": [{"role": "user", "content": TEXT}]},
        ["result.messages[0].content.text: required, but missing", "result.messages[2].content: required, but missing"],
    ),
    "contents that are neither text nor bytes": Case(
        "resources/read",
        {"contents": [{"uri": "u"}, {"uri": "u", "text": "t"}]},
        {"contents": [{"uri": "u", "text": "t"}]},
        ["result.contents[0].text: required, but missing"],
    ),
    "too many values, and a bad one": Case(
        "completion/complete",
        {"completion": {"values": [3, *["v"] * 120], "hasMore": "no"}},
        {"completion": {"values": ["v"] * 100}},
        [
            "result.completion.values[0]: expected string, got 3",
            "result.completion.values: expected at most 100 items, got 120",
            'result.completion.hasMore: expected boolean, got "no"',
        ],
        (MODERN_REVISION,),
    ),
    "a bad cursor": Case(
        "tools/list", {"tools": [], "nextCursor": 3}, {"tools": []}, ["result.nextCursor: expected string, got 3"]
    ),
    "bad additional data": Case(
        "tools/list", {"tools": [], "_meta": []}, {"tools": []}, ["result._meta: expected object, got array"]
    ),
    "a server that says too little of itself": Case(
        "tools/list",
        {"tools": [], "_meta": {"a": 1, "io.modelcontextprotocol/serverInfo": {"name": "s"}}},
        {"tools": [], "_meta": {"a": 1}},
        ['result._meta["io.modelcontextprotocol/serverInfo"].version: required, but missing'],
        (MODERN_REVISION,),
        values=[{"name": "s"}],
    ),
    "null for what is absent": Case(
        "tools/call",
        {"content": [{**TEXT, "annotations": None}], "isError": None, "_meta": None},
        {"content": [TEXT]},
        [
            "result._meta: expected object, got null",
            "result.content[0].annotations: expected object, got null; read as absent",
            "result.isError: expected boolean, got null",
        ],
    ),
    "null in tools": Case(
        "tools/list",
        {"tools": [{**TOOL, "description": None}], "nextCursor": None},
        {"tools": [TOOL]},
        [
            "result.nextCursor: expected string, got null",
            "result.tools[0].description: expected string, got null; read as absent",
        ],
    ),
    "null for structured content": Case(
        "tools/call",
        {"content": [], "structuredContent": None},
        {"content": []},
        ["result.structuredContent: expected object, got null"],
        ("2025-11-25", "2025-06-18"),
    ),
    "sizes of icons as one string": Case(
        "tools/list",
        {"tools": [{**TOOL, "icons": [{**ICON, "sizes": "48x48 any"}, {**ICON, "sizes": ["any"]}]}]},
        {"tools": [{**TOOL, "icons": [{**ICON, "sizes": ["48x48", "any"]}, {**ICON, "sizes": ["any"]}]}]},
        ['result.tools[0].icons[0].sizes: expected array, got "48x48 any"; read as a list'],
        (MODERN_REVISION, "2025-11-25"),
        ["48x48 any"],
    ),
    "sizes of icons of linked resources": Case(
        "prompts/get",
        {
            "messages": [
                {
                    "role": "user",
                    "content": {"type": "resource_link", "name": "n", "uri": "u", "icons": [{**ICON, "sizes": "any"}]},
                }
            ]
        },
        {
            "messages": [
                {
                    "role": "user",
                    "content": {
                        "type": "resource_link", "name": "n", "uri": "u", "icons": [{**ICON, "sizes": ["any"]}],
                    },
                }
            ]
        },
        ['result.messages[0].content.icons[0].sizes: expected array, got "any"; read as a list'],
        (MODERN_REVISION, "2025-11-25"),
    ),
    "sizes of the server's own icons": Case(
        "tools/call",
        {
            "content": [],
            "_meta": {
                "io.modelcontextprotocol/serverInfo": {
                    "name": "s", "version": "1", "icons": [{**ICON, "sizes": "any"}],
                }
            },
        },
        {
            "content": [],
            "_meta": {
                "io.modelcontextprotocol/serverInfo": {
                    "name": "s", "version": "1", "icons": [{**ICON, "sizes": ["any"]}],
                }
            },
        },
        [
            'result._meta["io.modelcontextprotocol/serverInfo"].icons[0].sizes: expected array, got "any"; '
            "read as a list"
        ],
        (MODERN_REVISION,),
    ),
    "a negative time to live": Case(
        "tools/list", {"tools": [], "ttlMs": -1}, {"tools": []},
        ["result.ttlMs: expected at least 0, got -1; read as 0"], (MODERN_REVISION,),
    ),
    "an unknown scope": Case(
        "tools/list", {"tools": [], "cacheScope": "all"}, {"tools": []},
        ['result.cacheScope: expected "private" or "public", got "all"; read as "private"'], (MODERN_REVISION,),
    ),
    "a bad version beside a good one": Case(
        "server/discover",
        {"supportedVersions": [1, MODERN_REVISION], "capabilities": {}},
        {"supportedVersions": [MODERN_REVISION], "capabilities": {}},
        ["result.supportedVersions[0]: expected string, got 1"],
        (MODERN_REVISION,),
    ),
    "a bad capability": Case(
        "server/discover",
        {"supportedVersions": [], "capabilities": {"tools": 3, "prompts": {}}},
        {"supportedVersions": [], "capabilities": {"prompts": {}}},
        ["result.capabilities.tools: expected object, got 3"],
        (MODERN_REVISION,),
    ),
}  # fmt: skip


@each("name, revision", [(name, rev) for name, case in CASES.items() for rev in case.revisions])
def test_valid_parts_are_kept_and_invalid_ones_reported(name: str, revision: str) -> None:
    case = CASES[name]
    result, problems = read(case.method, revision, case.sent)
    assert plain(result) == case.kept
    assert [str(problem) for problem in problems] == case.problems
    if case.values:
        assert [problem.value for problem in problems] == case.values


@each("name", CASES)
def test_kept_parts_have_the_types_of_the_dialect(name: str) -> None:
    case = CASES[name]
    for revision in case.revisions:
        result, _ = read(case.method, revision, case.sent)
        again = rebuilt(result)
        assert again == result
        assert repr(again) == repr(result)


def test_required_members_that_a_modern_server_leaves_out_are_filled_in_and_reported() -> None:
    problems: list[ResultProblem] = []
    result = result_decoder("tools/list", MODERN_REVISION)(b'{"tools": []}', problems)
    assert structs.to_builtins(result) == {**HEADER, "tools": []}
    defaults = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    assert [str(problem) for problem in problems] == [
        f"result.{member}: required, but missing; read as {json.dumps(value)}" for member, value in defaults.items()
    ]
    assert all(problem.is_tolerated for problem in problems)


BEYOND_REPAIR = {
    "no tools": (json.dumps(HEADER).encode(), "result.tools: required, but missing"),
    "no list": (b'{"tools": {}}', "result.tools: expected array, got object"),
    "null for a list": (b'{"tools": null}', "result.tools: expected array, got null"),
    "a list": (b"[]", "result: expected object, got array"),
    "null": (b"null", "result: expected object, got null"),
    "half": (b"{", "result: not JSON: Input data was truncated"),
    "nothing": (b"", "result: not JSON: Input data was truncated"),
    "very deep": (b"[" * 100_000 + b"]" * 100_000, "result: nested too deeply"),
}


@each("name", BEYOND_REPAIR)
@each("revision", SUPPORTED)
def test_bytes_that_are_not_a_result_raise_decode_error_with_a_path(name: str, revision: str) -> None:
    raw, text = BEYOND_REPAIR[name]
    with pytest.raises(DecodeError) as got:
        result_decoder("tools/list", revision)(raw, [])
    assert str(got.value) == text


TOLERATED: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "no content": (
        "tools/call", {"structuredContent": {"a": 1}}, {"content": [], "structuredContent": {"a": 1}},
        "result.content: required, but missing; read as []",
    ),
    "nothing": ("tools/call", {}, {"content": []}, "result.content: required, but missing; read as []"),
    "content that is null": (
        "tools/call", {"content": None}, {"content": []}, "result.content: expected array, got null; read as []",
    ),
    "an empty schema": (
        "tools/list", {"tools": [{"name": "a", "inputSchema": {}}]},
        {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]},
        'result.tools[0].inputSchema.type: required, but missing; read as "object"',
    ),
    "a schema without a type": (
        "tools/list", {"tools": [{"name": "a", "inputSchema": {"properties": {"x": {}}}}]},
        {"tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"x": {}}}}]},
        'result.tools[0].inputSchema.type: required, but missing; read as "object"',
    ),
}  # fmt: skip


@each("name", TOLERATED)
@each("revision", ["2025-06-18", MODERN_REVISION])
def test_what_a_server_leaves_out_is_filled_in_and_tolerated(name: str, revision: str) -> None:
    method, sent, expected, text = TOLERATED[name]
    problems: list[ResultProblem] = []
    header = HEADER if method == "tools/list" else {"resultType": "complete"}
    header = header if revision == MODERN_REVISION else {}
    result = result_decoder(method, revision)(json.dumps({**header, **sent}).encode(), problems)
    kind: Any = result.__class__
    assert result == structs.from_builtins({**HEADER, **expected}, kind)
    assert [(str(problem), problem.is_tolerated) for problem in problems] == [(text, True)]


def test_a_schema_of_another_type_costs_its_tool() -> None:
    problems: list[ResultProblem] = []
    raw = json.dumps({**HEADER, "tools": [{"name": "a", "inputSchema": {"type": "string"}}]}).encode()
    assert result_decoder("tools/list", MODERN_REVISION)(raw, problems).tools == []
    assert [problem.is_tolerated for problem in problems] == [False]


def test_invalid_utf_8_costs_its_item_only() -> None:
    problems: list[ResultProblem] = []
    raw = b'{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "\xff"}]}'
    result = result_decoder("tools/call", "2025-06-18")(raw, problems)
    assert plain(result) == {"content": [TEXT]}
    assert [problem.path for problem in problems] == ["result.content[1]"]
    assert "UTF-8" in problems[0].reason
    assert "\ufffd" in problems[0].value


@each("revision", [MODERN_REVISION, "2025-06-18"])
@each("digits, path", [(30, "result.tools[0].title"), (5000, "result.tools[0]")])
def test_numbers_of_any_size_are_handled(revision: str, digits: int, path: str) -> None:
    problems: list[ResultProblem] = []
    schema = b'{"type": "object", "maximum": %s}' % (b"1" * digits)
    raw = b'{"tools": [{"name": "a", "title": null, "inputSchema": %s}, %s]}' % (
        schema,
        json.dumps({**TOOL, "name": "t"}).encode(),
    )
    tools = result_decoder("tools/list", revision)(raw, problems).tools
    assert tools[-1].name == "t"
    assert [problem.path for problem in problems if "tools" in problem.path] == [path]


# Many problems


MANY = 10_000
FLOODS: dict[str, tuple[str, dict[str, Any], int]] = {
    "bad tools": ("tools/list", {"tools": [{"name": 3}] * MANY}, 0),
    "unknown content": ("tools/call", {"content": [{"type": "video"}] * MANY}, 0),
    "content with null": ("tools/call", {"content": [{**TEXT, "annotations": None}] * MANY}, MANY),
}


@each("flood", FLOODS)
@each("revision", [MODERN_REVISION, "2025-03-26"])
def test_only_the_first_hundred_problems_are_described_and_all_are_counted(flood: str, revision: str) -> None:
    method, members, kept = FLOODS[flood]
    start = time.process_time()
    result, problems = read(method, revision, members)
    assert time.process_time() - start < 3
    assert len(getattr(result, "tools", None) or getattr(result, "content", [])) == kept
    assert len(problems) == MAX_PROBLEMS + 1
    assert str(problems[-1]) == f"result: {MANY - MAX_PROBLEMS} more problems"


def test_one_invalid_tool_does_not_slow_down_a_large_list() -> None:
    properties = {f"p{i}": {"type": "string", "description": "d" * 40} for i in range(8)}
    tools = [{"name": f"t{i}", "inputSchema": {"type": "object", "properties": properties}} for i in range(312)]
    tools[17]["inputSchema"] = {"type": "x"}
    for revision in (MODERN_REVISION, "2025-11-25"):
        raw, problems, times = (
            encode_result("tools/list", revision, {"tools": tools}),
            list[ResultProblem](),
            list[float](),
        )
        for _ in range(5):
            problems.clear()
            start = time.process_time()
            assert len(result_decoder("tools/list", revision)(raw, problems).tools) == 311
            times.append(time.process_time() - start)
        assert [problem.path for problem in problems] == ["result.tools[17].inputSchema.type"]
        assert min(times) < 0.02 * 5  # measured: 0.006; machines differ


def test_problems_are_hashable_whatever_they_hold() -> None:
    assert len({ResultProblem("a", "b", []), ResultProblem("a", "b", [])}) == 1


# Every result of the schemas


def result_name(method: str) -> str:
    (kind,) = (k for k in spread_union(methods.CLIENT_REQUESTS[method].result) if k.__name__ != "InputRequiredResult")
    name: str = kind.__name__
    return name


READ = [(m, rev) for m in methods.CLIENT_REQUESTS for rev in SUPPORTED if m in methods_of(rev).CLIENT_REQUESTS]


@pytest.mark.long
@pytest.mark.parametrize(("method", "revision"), READ)
def test_every_valid_result_is_decoded_completely_and_a_broken_one_names_its_fault(method: str, revision: str) -> None:
    name, seen = result_name(method), 0

    @fuzzed(instances(revision, name), examples(40))
    def check(value: Any) -> None:
        nonlocal seen
        seen += 1
        if revision == MODERN_REVISION:
            value["resultType"] = "complete"
        check_decoded_completely(value, method, revision, name)
        for seed in range(8):
            check_decoded_or_rejected(broken(value, random.Random(f"{seen} {seed}")), method, revision)

    check()
    assert seen >= examples(20)


PROTOCOL_DEFAULTS = [
    item
    for members in msgspec.json.decode((ROOT / "schema" / "supplement.json").read_bytes())["protocol_defaults"].values()
    for item in members.items()
]


def without_defaults(value: Any) -> Any:
    """Return JSON without the members that have the protocol's default, which plain types leave out."""
    if is_array(value):
        return [without_defaults(item) for item in value]
    if not is_object(value):
        return value
    return {key: without_defaults(item) for key, item in value.items() if (key, item) not in PROTOCOL_DEFAULTS}


def check_decoded_completely(value: Any, method: str, revision: str, name: str) -> None:
    problems: list[ResultProblem] = []
    result = result_decoder(method, revision)(json.dumps(value).encode(), problems)
    assert type(result) is getattr(structs, name)
    assert not problems
    expected = structs_of(revision).to_builtins(
        structs_of(revision).from_builtins(value, getattr(structs_of(revision), name))
    )
    for tool in expected.get("tools", []):
        tool.pop("execution", None)
    got, expected = without_defaults(structs.to_builtins(result)), without_defaults(expected)
    assert got == {**got, **expected}
    assert got.keys() - expected.keys() <= HEADER.keys()
    assert rebuilt(result) == result


def check_decoded_or_rejected(value: Any, method: str, revision: str) -> None:
    problems: list[ResultProblem] = []
    try:
        result = result_decoder(method, revision)(json.dumps(value).encode(), problems)
    except (DecodeError, ProtocolError) as error:
        text = str(error)
        assert text.startswith("result")  # both are valid
    else:
        assert result.result_type in ("complete", "input_required")
        assert rebuilt(result) == result
    assert all(problem.path.startswith("result") and problem.reason for problem in problems)


OTHER_VALUES: list[Any] = [None, True, 0, -1, 1.5, "", "complete", [], [None], {}, {"type": "text"}, "\ud800"]


def broken(value: Any, chance: random.Random) -> Any:
    """Return a copy in which up to three places hold another value."""
    made = json.loads(json.dumps(value))
    for _ in range(chance.randint(1, 3)):
        if found := places(made):
            holder, key = chance.choice(found)
            holder[key] = json.loads(json.dumps(chance.choice(OTHER_VALUES)))
    return made


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in a value: its container and its key."""
    keys: Any = value if is_object(value) else range(len(value)) if is_array(value) else []
    return [place for key in keys for place in [(value, key), *places(value[key])]]
