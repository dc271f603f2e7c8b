"""Values are constructed, decoded, encoded and copied alike in both backends."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

import msgspec
import pytest
from pydantic_core import MISSING

import mcpspec
from mcpspec.support.structs import OpenObject, constructor, copier, member
from mcpspec.v2026_07_28.exact import models, structs
from tests.cases import each

Types: TypeAlias = Any
"""A module of types of either backend."""


@pytest.fixture(params=["exact.structs", "exact.models"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def types(backend: str) -> Types:
    """The newest revision."""
    return import_module(f"mcpspec.v2026_07_28.{backend}")


def revision(version: str, backend: str) -> Types:
    return import_module(f"mcpspec.v{version.replace('-', '_')}.{backend}")


META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
CALL: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": META, "name": "grep"}}
TASK: dict[str, Any] = {"taskId": "t", "status": "working", "createdAt": "x", "lastUpdatedAt": "y"}


def without(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: member for key, member in value.items() if key not in keys}


def raw(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def again(types: Types, value: object, kind: Any) -> Any:
    """Decode and encode a JSON value. In the result, `1` differs from `1.0`."""
    return json.loads(types.encode(types.decode(raw(value), kind)))


def refusal(types: Types, text: bytes | str, kind: Any) -> Any:
    with pytest.raises(types.DecodeError) as caught:
        types.decode(text, kind)
    return caught.value


def call_params(types: Types) -> Any:
    meta = types.RequestMetaObject(protocol_version="2026-07-28", client_capabilities=types.ClientCapabilities())
    return types.CallToolRequestParams(meta=meta, name="grep")


# Constants


def test_constructors_write_constants(types: Types) -> None:
    assert json.loads(types.encode(types.CallToolRequest(id=1, params=call_params(types)))) == CALL
    assert json.loads(types.encode(types.TextContent(text="x"))) == {"type": "text", "text": "x"}
    assert json.loads(types.encode(types.BooleanSchema())) == {"type": "boolean"}
    assert json.loads(types.encode(types.ToolInputSchema())) == {"type": "object"}


def test_constructors_write_constants_that_may_be_absent(types: Types) -> None:
    schema = types.ElicitRequestFormParamsRequestedSchema(properties={})
    form = types.ElicitRequestFormParams(message="m", requested_schema=schema)
    assert json.loads(types.encode(form))["mode"] == "form"


def test_constants_can_be_read(types: Types) -> None:
    request = types.CallToolRequest(id=1, params=call_params(types))
    assert (request.jsonrpc, request.method) == ("2.0", "tools/call")
    assert types.TextContent(text="x").type == "text"


@each(
    "kind, value, text",
    [
        ("CallToolRequest", without(CALL, "jsonrpc"), "jsonrpc: required, but missing"),
        ("CallToolRequest", CALL | {"jsonrpc": "1.0"}, 'jsonrpc: expected "2.0", got "1.0"'),
        ("CallToolRequest", CALL | {"jsonrpc": 2.0}, 'jsonrpc: expected "2.0", got 2.0'),
        ("CallToolRequest", without(CALL, "method"), "method: required, but missing"),
        ("CallToolRequest", CALL | {"method": "tools/list"}, 'method: expected "tools/call", got "tools/list"'),
        ("ClientRequest", without(CALL, "method"), "method: required, but missing"),
        ("ClientRequest", without(CALL, "jsonrpc"), "jsonrpc: required, but missing"),
        ("TextContent", {"text": "x"}, "type: required, but missing"),
        ("TextContent", {"type": "txet", "text": "x"}, 'type: expected "text", got "txet"'),
        ("ContentBlock", {"text": "x"}, "type: required, but missing"),
        (
            "ContentBlock",
            {"type": "txet", "text": "x"},
            'type: expected "text", "image", "audio", "resource_link" or "resource", got "txet"',
        ),
        ("ToolInputSchema", {}, "type: required, but missing"),
        ("ToolInputSchema", {"type": "array"}, 'type: expected "object", got "array"'),
        ("BooleanSchema", {}, "type: required, but missing"),
        ("HeaderMismatchErrorError", {"code": -32021, "message": "m"}, "code: expected -32020, got -32021"),
    ],
)
def test_decoding_requires_constants_and_tags(types: Types, kind: str, value: object, text: str) -> None:
    assert str(refusal(types, raw(value), getattr(types, kind))) == text


def test_a_constant_that_was_absent_stays_absent(types: Types) -> None:
    form: dict[str, Any] = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}
    assert again(types, form, types.ElicitRequestFormParams) == form


_CACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def test_constructors_of_results_fill_in_what_handlers_write_every_time(types: Types) -> None:
    assert json.loads(types.encode(types.CallToolResult(content=[]))) == {"content": [], "resultType": "complete"}
    assert json.loads(types.encode(types.ListToolsResult(tools=[]))) == {"tools": [], **_CACHED}
    assert json.loads(types.encode(types.InputRequiredResult())) == {"resultType": "input_required"}
    assert json.loads(types.encode(types.Result())) == {"resultType": "complete"}


def test_constructors_of_results_take_other_values(types: Types) -> None:
    result = types.ReadResourceResult(contents=[], result_type="stale", ttl_ms=5, cache_scope="public")
    assert (result.result_type, result.ttl_ms, result.cache_scope) == ("stale", 5, "public")


@each("member", _CACHED)
def test_decoding_does_not_fill_in_members_of_results(types: Types, member: str) -> None:
    complete: dict[str, Any] = {"tools": [], **_CACHED}
    assert again(types, complete, types.ListToolsResult) == complete
    assert (
        str(refusal(types, raw(without(complete, member)), types.ListToolsResult)) == f"{member}: required, but missing"
    )
    with pytest.raises(types.DecodeError, match=f"{member}: required, but missing"):
        types.from_builtins(without(complete, member), types.ListToolsResult)


def test_a_constructor_for_all_members_fills_in_nothing() -> None:
    make = constructor(structs.CallToolResult)
    assert make(content=[], result_type="x") == structs.CallToolResult(content=[], result_type="x")
    with pytest.raises(TypeError, match="Missing required argument 'result_type'"):
        make(content=[])
    assert constructor(structs.TextContent) is structs.TextContent


def test_a_copier_makes_what_the_constructor_makes_and_requires_all_members() -> None:
    make = copier(structs.CallToolResult)
    assert make(content=[], result_type="x") == structs.CallToolResult(content=[], result_type="x")
    with pytest.raises(AttributeError, match="'result_type' is unset"):
        make(content=[])
    assert copier(structs.CallToolResult, {"result_type": "y"})(content=[]).result_type == "y"
    assert copier(structs.TextContent) is structs.TextContent


def test_classes_that_derive_from_a_type_construct_themselves_each_time() -> None:
    class Listing(structs.CallToolResult):
        seen: list[int] = msgspec.field(default_factory=list[int])

    class Frozen(structs.CallToolResult, frozen=True):  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
        note: str = ""

    class Counted(structs.CallToolResult):
        def __post_init__(self) -> None:
            assert self.content is not None
            built.append(self.result_type)

    built: list[str] = []
    for kind in (structs.CallToolResult, Listing, Frozen, Counted):
        for _ in range(3):
            made = kind(content=[])
            assert (type(made), made.result_type, made.content) == (kind, "complete", [])
            with pytest.raises(TypeError, match="Missing required argument 'content'"):
                kind()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert built == ["complete"] * 3
    first, second = Listing(content=[]), Listing(content=[])
    first.seen.append(1)
    assert second.seen == []


# Absence and null


@each(
    "value",
    [
        {"content": [], "resultType": "complete"},
        {"content": [], "resultType": "complete", "structuredContent": None},
        {"content": [], "resultType": "complete", "structuredContent": {"a": None}},
        {"content": [], "resultType": "complete", "isError": False},
        {"content": [], "resultType": "complete", "_meta": {}},
    ],
    ids=str,
)
def test_absent_null_and_empty_members_differ(types: Types, value: dict[str, Any]) -> None:
    assert again(types, value, types.CallToolResult) == value


def test_an_absent_member_is_a_marker_that_is_not_null(types: Types, backend: str) -> None:
    absent = {"exact.structs": msgspec.UNSET, "exact.models": MISSING}[backend]
    result = types.decode(b'{"content":[],"resultType":"complete"}', types.CallToolResult)
    assert result.structured_content is absent
    result = types.decode(b'{"content":[],"resultType":"complete","structuredContent":null}', types.CallToolResult)
    assert result.structured_content is None


def test_a_required_member_may_be_null_but_not_absent(backend: str) -> None:
    types = revision("2025-11-25", backend)
    assert again(types, TASK | {"ttl": None}, types.Task) == TASK | {"ttl": None}
    assert again(types, TASK | {"ttl": 60_000}, types.Task) == TASK | {"ttl": 60_000}
    assert str(refusal(types, raw(TASK), types.Task)) == "ttl: required, but missing"


@each("member", ["title", "annotations", "_meta", "icons", "outputSchema"])
def test_null_is_not_absence(types: Types, member: str) -> None:
    tool = {"name": "x", "inputSchema": {"type": "object"}, member: None}
    assert refusal(types, raw(tool), types.Tool).path == member


# Numbers, identifiers, strings


@each("number", [b"1", b"1.0", b"0.5", b"0", b"-3", b"12345678901234567890123"])
def test_numbers_keep_their_form(types: Types, number: bytes) -> None:
    params = types.decode(b'{"progressToken":1,"progress":' + number + b"}", types.ProgressNotificationParams)
    assert type(params.progress) is (float if b"." in number else int)
    assert b'"progress":' + number in types.encode(params)


def test_numbers_within_any_json_keep_their_form(types: Types) -> None:
    text = b'{"resultType":"complete","content":[],"structuredContent":[1,1.0,0.5,12345678901234567890123]}'
    assert types.encode(types.decode(text, types.CallToolResult)) == text


@each("number", [b"1E400", b"-1e999"])
def test_a_number_too_large_for_a_float_never_becomes_null(types: Types, number: bytes) -> None:
    """It is rejected; or when it is encoded, if Pydantic accepts it in free-form data."""
    refusal(types, b'{"progressToken":1,"progress":' + number + b"}", types.ProgressNotificationParams)
    with pytest.raises(ValueError, match=r"JSON|number"):
        types.encode(
            types.decode(b'{"content":[],"resultType":"x","structuredContent":' + number + b"}", types.CallToolResult)
        )


@each("number", ["true", "null", '"1"', "[]"])
def test_other_values_are_rejected_as_numbers(types: Types, number: str) -> None:
    error = refusal(types, f'{{"progressToken":1,"progress":{number}}}', types.ProgressNotificationParams)
    assert error.path == "progress"


@each("identifier", [1, 0, -5, 2**53, "1", "", "é"])
def test_identifiers_keep_their_type(types: Types, identifier: object) -> None:
    assert types.decode(raw(identifier), types.RequestId) == identifier
    assert type(types.decode(raw(CALL | {"id": identifier}), types.CallToolRequest).id) is type(identifier)
    assert again(types, CALL | {"id": identifier}, types.ClientRequest) == CALL | {"id": identifier}


@each("kind", ["CallToolRequest", "ClientRequest", "JSONRPCRequest", "JSONRPCResultResponse"])
@each(
    "identifier, shown",
    [(True, "true"), (None, "null"), (1.5, "1.5"), (1.0, "1.0"), ({}, "object"), ([], "array")],
    ids=str,
)
def test_other_values_are_rejected_as_identifiers(types: Types, kind: str, identifier: object, shown: str) -> None:
    message = CALL | {"id": identifier, "result": {"resultType": "complete"}}
    error = refusal(types, raw(message), getattr(types, kind))
    assert str(error) == f"id: expected string or integer, got {shown}"
    assert str(refusal(types, raw(identifier), types.RequestId)) == f"expected string or integer, got {shown}"
    with pytest.raises(types.DecodeError):
        types.from_builtins(message, getattr(types, kind))


@each("data", ["aGk=", "aGk", "a-_k", "", "no base64!", "aG\nk=", "QUJD" * 1000])
def test_base64_comes_back_as_it_was(types: Types, data: str) -> None:
    image = {"type": "image", "data": data, "mimeType": "image/png"}
    assert again(types, image, types.ContentBlock) == image
    assert types.decode(raw(image), types.ImageContent).data == data


@each(
    "uri", ["file:///a b", "HTTP://EXAMPLE.com:80", "x:%41%zz", "data:,é", "", "not a uri", "http://example.com/../a"]
)
def test_uris_come_back_as_they_were(types: Types, uri: str) -> None:
    link = {"type": "resource_link", "name": "x", "uri": uri}
    assert again(types, link, types.ContentBlock) == link
    assert types.decode(raw(link), types.ResourceLink).uri == uri


def test_encoding_writes_utf_8_without_escapes_or_line_breaks(types: Types) -> None:
    text = types.encode(types.TextContent(text="é\n\u2028"))
    assert "é\\n\u2028".encode() in text
    assert b"\n" not in text


# Unknown members

TOOL: dict[str, Any] = {
    "name": "x",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}, "x-order": [1, None]},
}


def test_models_keep_unknown_members() -> None:
    tool = models.decode(raw(TOOL | {"colour": {"red": 1}}), models.Tool)
    assert tool.model_extra == {"colour": {"red": 1}}
    assert json.loads(models.encode(tool)) == TOOL | {"colour": {"red": 1}}


def test_structs_drop_unknown_members() -> None:
    tool = structs.decode(raw(TOOL | {"colour": {"red": 1}}), structs.Tool)
    assert not hasattr(tool, "colour")
    assert json.loads(structs.encode(tool)) == TOOL


META_OF: list[tuple[str, dict[str, Any]]] = [
    ("Tool", TOOL),
    ("TextContent", {"type": "text", "text": "x"}),
    ("ContentBlock", {"type": "text", "text": "x"}),
    ("CallToolResult", {"content": [], "resultType": "complete"}),
    ("CancelledNotificationParams", {"requestId": 1}),
    ("SamplingMessage", {"role": "user", "content": []}),
    ("Root", {"uri": "file:///"}),
    ("Prompt", {"name": "x"}),
]


@each("kind, value", META_OF, ids=[kind for kind, _ in META_OF])
def test_members_of_meta_are_kept(types: Types, kind: str, value: dict[str, Any]) -> None:
    value = {**value, "_meta": {"com.example/a": 1, "com.example/b": {"c": [None, 1.5]}, "progress-token": "x"}}
    assert again(types, value, getattr(types, kind)) == value


@each("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_members_of_meta_are_kept_in_older_revisions(version: str, backend: str) -> None:
    types = revision(version, backend)
    meta = {"com.example/a": 1, "progressToken": "t", "com.example/b": {"c": [None, 1.5]}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "_meta": meta}}
    assert again(types, request, types.CallToolRequest) == request
    result: dict[str, Any] = {"content": [], "_meta": {"com.example/a": 1}}
    assert again(types, result, types.CallToolResult) == result


@each(
    "kind, value",
    [
        ("Tool", TOOL),
        ("Tool", TOOL | {"outputSchema": {"$schema": "x", "$defs": {"a": {"type": "null"}}, "oneOf": [True]}}),
        ("RequestMetaObject", META | {"com.example/trace": {"a": 1}}),
        ("Result", {"resultType": "complete", "anything": [1]}),
        ("ElicitRequestFormParamsRequestedSchema", {"type": "object", "properties": {}, "additionalProperties": False}),
    ],
    ids=["inputSchema", "outputSchema", "request metadata", "result", "form"],
)
def test_open_objects_keep_unknown_members(types: Types, kind: str, value: dict[str, Any]) -> None:
    assert again(types, value, getattr(types, kind)) == value


# Names


def test_decoding_accepts_only_names_on_the_wire(types: Types) -> None:
    image = {"type": "image", "data": "", "mime_type": "image/png"}
    assert str(refusal(types, raw(image), types.ImageContent)) == "mimeType: required, but missing"
    with pytest.raises(types.DecodeError):
        types.from_builtins(image, types.ImageContent)


def test_an_attribute_name_in_json_is_an_unknown_member() -> None:
    image = {"type": "image", "data": "", "mimeType": "image/png", "mime_type": "image/gif"}
    model = models.decode(raw(image), models.ImageContent)
    assert (model.mime_type, model.model_extra) == ("image/png", {"mime_type": "image/gif"})
    assert json.loads(models.encode(model)) == image
    struct = structs.decode(raw(image), structs.ImageContent)
    assert struct.mime_type == "image/png"
    assert json.loads(structs.encode(struct)) == without(image, "mime_type")


def test_constructors_accept_attribute_names_and_encoding_writes_names_on_the_wire(types: Types) -> None:
    image = types.ImageContent(data="", mime_type="image/png")
    assert image.mime_type == "image/png"
    assert json.loads(types.encode(image)) == {"type": "image", "data": "", "mimeType": "image/png"}


def test_pydantic_methods_use_the_wire_format_too() -> None:
    image = models.ImageContent(data="", mime_type="image/png")
    wire = {"type": "image", "data": "", "mimeType": "image/png"}
    assert image.model_dump() == wire
    assert json.loads(image.model_dump_json()) == wire
    assert models.ImageContent.model_validate(wire) == image
    assert models.ImageContent.model_validate_json(raw(wire)) == image


def test_constructors_of_models_check_their_arguments() -> None:
    kind: Any = models.ImageContent
    for wrong in ({"data": ""}, {"data": 1, "mime_type": "x"}, {"data": "", "mime_type": "x", "type": "audio"}):
        with pytest.raises(ValueError, match="ImageContent"):
            kind(**wrong)


def test_constructors_of_structs_reject_unknown_arguments() -> None:
    kind: Any = structs.ImageContent
    for wrong in ({"data": ""}, {"data": "", "mime_type": "x", "colour": 1}, {"data": "", "mimeType": "x"}):
        with pytest.raises(TypeError):
            kind(**wrong)


# Input


FORMS: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "str": bytes.decode,
}


@each("form", FORMS)
def test_all_forms_of_json_text_are_decoded(types: Types, form: str) -> None:
    assert types.decode(FORMS[form]('{"type":"text","text":"é"}'.encode()), types.ContentBlock).text == "é"


def test_a_slice_of_a_buffer_is_decoded(types: Types) -> None:
    assert types.decode(memoryview(b'xx{"type":"text","text":"a"}xx')[2:-2], types.TextContent).text == "a"


@each("form", FORMS)
def test_all_forms_of_wrong_json_text_are_rejected_alike(types: Types, form: str) -> None:
    wrong, truncated = FORMS[form](b'{"type":"text","text":1}'), FORMS[form](b'{"type"')
    assert str(refusal(types, wrong, types.TextContent)) == "text: expected string, got 1"
    assert str(refusal(types, truncated, types.TextContent)).startswith("not JSON: ")


def test_builtins_and_bytes_have_the_same_meaning(types: Types) -> None:
    request = types.from_builtins(CALL, types.ClientRequest)
    assert type(request) is types.CallToolRequest
    assert request == types.decode(raw(CALL), types.ClientRequest)
    assert types.to_builtins(request) == CALL


def test_builtins_are_plain_values(types: Types) -> None:
    value = types.to_builtins(types.CallToolResult(content=[types.TextContent(text="x")], result_type="complete"))
    assert value == {"content": [{"type": "text", "text": "x"}], "resultType": "complete"}
    assert (type(value), type(value["content"]), type(value["content"][0])) == (dict, list, dict)


def test_builtins_are_checked_like_bytes(types: Types) -> None:
    with pytest.raises(types.DecodeError) as caught:
        types.from_builtins({"content": [{"type": "text", "text": 1}], "resultType": "complete"}, types.CallToolResult)
    assert str(caught.value) == "content[0].text: expected string, got 1"


def test_builtins_are_not_coerced(types: Types) -> None:
    for wrong in (b"x", 1, None, ["x"]):
        with pytest.raises(types.DecodeError):
            types.from_builtins({"type": "text", "text": wrong}, types.TextContent)


# Rejected input


@each(
    "text, is_json",
    [
        (b"", False),
        (b"{", False),
        (b'{"name": nan}', False),
        (b'{"name": "\xff"}', False),
        (b"[]", True),
        (b"null", True),
        (b'{"name": 1}', True),
    ],
)
def test_an_error_tells_invalid_json_from_invalid_values(text: bytes, is_json: bool, types: Types) -> None:
    with pytest.raises(types.DecodeError) as caught:
        types.decode(text, types.Tool)
    assert caught.value.is_json is is_json
    assert copy.copy(caught.value).is_json is is_json


@each(
    "text",
    [
        b"",
        b" ",
        b"{",
        b"nul",
        b'{"name":',
        b'{"name":"x',
        b"{} {}",
        b'{"name":"x",}',
        b"{'name':'x'}",
        b'\xef\xbb\xbf{"name":"x"}',
        b"NaN",
        b'{"name":NaN}',
        b'{"name":"x","version":"1","a":NaN}',
        b'{"name":"x","version":"1","a":Infinity}',
        b'{"name":"x","version":"1","a":-Infinity}',
        b'{"name":"\xff"}',
        b'{"name":"x","version":"\xc3"}',
        b'{"name":"\xed\xa0\x80"}',
        b'{"name":"\\ud800"}',
        b'{"name":"a\nb"}',
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"name":' * 100_000,
        b"[]",
        b'"x"',
        b"1",
        b"true",
        b"null",
    ],
    ids=lambda text: ascii(text[:40]),
)
def test_a_value_of_another_type_is_rejected_with_one_line(types: Types, text: bytes) -> None:
    for kind in (types.Implementation, types.JSONRPCMessage, types.ContentBlock, types.ServerResult):
        error = refusal(types, text, kind)
        assert "\n" not in str(error)
        assert len(str(error)) < 300
        assert error.reason
        assert "pydantic" not in str(error)
        assert "validation error" not in str(error)


@each("text", ['{"name":"\ud800"}', '{"name":"\ud800 NaN"}', '{"name":NaN}', "\ufeff{}", "", "[" * 100_000])
def test_wrong_text_is_rejected_like_wrong_bytes(types: Types, text: str) -> None:
    assert "\n" not in str(refusal(types, text, types.Implementation))


@each("member", [b"structuredContent", b"undeclared"])
@each("depth", [300, 900, 5_000, 100_000])
def test_nesting_that_is_too_deep_for_a_backend_is_named_as_the_cause(types: Types, depth: int, member: bytes) -> None:
    """How deep that is depends on the version of Python."""
    text = b'{"content":[],"resultType":"complete","%b":' % member + b"[" * depth + b"]" * depth + b"}"
    assert outcome(types, text) in ("read", "nested too deeply")


def outcome(types: Types, text: bytes) -> str:
    try:
        types.decode(text, types.CallToolResult)
    except types.DecodeError as error:
        return str(error)
    return "read"


@each("depth", [50, 150])
def test_moderate_nesting_is_decoded(types: Types, depth: int) -> None:
    text = b'{"resultType":"complete","content":[],"structuredContent":' + b"[" * depth + b"]" * depth + b"}"
    assert types.encode(types.decode(text, types.CallToolResult)) == text


@each("character", ["\u2028", "\u0085", "\x1b", "\u202e"], ids=ascii)
def test_no_character_of_the_input_breaks_or_disguises_the_line(types: Types, character: str) -> None:
    for text in (f'"{character}"'.encode(), raw({"uri": "file:///a", "name": {character: 1}})):
        line = str(refusal(types, text, types.Resource))
        assert line.isprintable()
    line = str(refusal(types, raw({"a" + character * 10_000: "x" * 10_000}), types.ResourceTemplate))
    assert len(line) < 300


def test_an_error_may_be_about_an_integer_that_python_cannot_format(types: Types) -> None:
    with pytest.raises(types.DecodeError, match="expected string, got an integer of very many digits"):
        types.from_builtins({"uri": 10**5000, "name": "a"}, types.Resource)


@each("text, byte", [(b'"\xff"', 1), (b'{"name":"\xff"}', 9), (b'{"name":"x","version":"ab\xc3"}', 25)])
def test_bad_utf_8_is_located_in_the_input(types: Types, text: bytes, byte: int) -> None:
    error = refusal(types, text, types.Implementation)
    assert (error.path, error.reason.partition(":")[0]) == ("", "not UTF-8")
    assert error.reason.endswith(f" at byte {byte}")


MESSAGES: list[tuple[str, Any, str, str]] = [
    # members and items
    (
        "CallToolResult",
        {"content": [{"type": "text", "text": "", "annotations": {"audience": ["system"]}}], "resultType": "complete"},
        "content[0].annotations.audience[0]",
        'expected "assistant" or "user", got "system"',
    ),
    ("CallToolResult", {"resultType": "complete"}, "content", "required, but missing"),
    ("CallToolResult", {"content": {}, "resultType": "complete"}, "content", "expected array, got object"),
    (
        "CallToolResult",
        {"content": [{"type": "text", "text": "x"}, {"type": "image", "data": ""}], "resultType": "complete"},
        "content[1].mimeType",
        "required, but missing",
    ),
    ("Tool", [], "", "expected object, got array"),
    ("Tool", None, "", "expected object, got null"),
    ("Tool", TOOL | {"name": 1}, "name", "expected string, got 1"),
    ("Tool", TOOL | {"annotations": {"readOnlyHint": 1}}, "annotations.readOnlyHint", "expected boolean, got 1"),
    ("Role", "system", "", 'expected "assistant" or "user", got "system"'),
    # keys that are not identifiers
    ("ToolInputSchema", {"type": "object", "$schema": 1}, "$schema", "expected string, got 1"),
    ("CompleteRequestParamsContext", {"arguments": {"odd key": 1}}, 'arguments["odd key"]', "expected string, got 1"),
    ("CompleteRequestParamsContext", {"arguments": {'a"b\n': 1}}, 'arguments["a\\"b\\n"]', "expected string, got 1"),
    ("CompleteRequestParamsContext", {"arguments": {"é": 1}}, 'arguments["é"]', "expected string, got 1"),
    ("CompleteRequestParamsContext", {"arguments": {"": 1}}, 'arguments[""]', "expected string, got 1"),
    (
        "CallToolRequest",
        CALL | {"params": {"name": "x", "_meta": {}}},
        'params._meta["io.modelcontextprotocol/clientCapabilities"]',
        "required, but missing",
    ),
    # bounds
    ("Annotations", {"priority": 1.5}, "priority", "expected at most 1, got 1.5"),
    ("Annotations", {"priority": -1}, "priority", "expected at least 0, got -1"),
    ("CompleteResultCompletion", {"values": ["x"] * 101}, "values", "expected at most 100 items, got 101"),
    # unions
    (
        "ElicitResult",
        {"action": "accept", "content": {"a": None}},
        "content.a",
        "expected array, string, number or boolean, got null",
    ),
    ("ElicitResult", {"action": "accept", "content": {"a": [1]}}, "content.a[0]", "expected string, got 1"),
    ("SamplingMessage", {"role": "user", "content": [{"type": "text"}]}, "content[0].text", "required, but missing"),
    ("SamplingMessage", {"role": "user", "content": {"type": "text"}}, "content.text", "required, but missing"),
    ("JSONRPCMessage", {"jsonrpc": "2.0", "id": 1, "method": 1}, "method", "expected string, got 1"),
    ("JSONRPCMessage", {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}, "error.message", "required, but missing"),
    # long values, and values with line breaks
    ("Role", "x" * 200, "", 'expected "assistant" or "user", got "' + "x" * 58 + "…"),
    ("Role", "a\nb", "", 'expected "assistant" or "user", got "a\\nb"'),
]


@each(
    "kind, value, path, reason",
    [pytest.param(*case, id=f"{number}-{case[0]}-{case[2]}") for number, case in enumerate(MESSAGES)],
)
def test_errors_name_the_place_and_the_cause(types: Types, kind: str, value: object, path: str, reason: str) -> None:
    error = refusal(types, raw(value), getattr(types, kind))
    assert (error.path, error.reason) == (path, reason)
    assert str(error) == (f"{path}: {reason}" if path else reason)


def test_an_error_can_be_pickled_and_caught_as_a_value_error(types: Types) -> None:
    error = refusal(types, b"[]", types.Tool)
    assert isinstance(error, ValueError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301
    assert error.__cause__ is not None


def test_both_backends_raise_the_same_error_type() -> None:
    assert structs.DecodeError is models.DecodeError


# Unions

LIST: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
RESULTS: list[tuple[str, str, dict[str, Any], str]] = [
    ("2026-07-28", "ServerResult", {"resultType": "complete"}, "Result"),
    ("2026-07-28", "ServerResult", {"resultType": "complete", "_meta": {"a": 1}}, "Result"),
    ("2026-07-28", "ServerResult", {"resultType": "complete", "content": []}, "CallToolResult"),
    ("2026-07-28", "ServerResult", {"resultType": "complete", "messages": []}, "GetPromptResult"),
    ("2026-07-28", "ServerResult", {"resultType": "complete", "completion": {"values": []}}, "CompleteResult"),
    ("2026-07-28", "ServerResult", {"resultType": "input_required", "inputRequests": {}}, "InputRequiredResult"),
    ("2026-07-28", "ServerResult", {"resultType": "input_required", "requestState": "s"}, "InputRequiredResult"),
    ("2026-07-28", "ServerResult", LIST | {"tools": []}, "ListToolsResult"),
    ("2026-07-28", "ServerResult", LIST | {"tools": [], "nextCursor": "c", "_meta": {}}, "ListToolsResult"),
    ("2026-07-28", "ServerResult", LIST | {"prompts": []}, "ListPromptsResult"),
    ("2026-07-28", "ServerResult", LIST | {"resources": []}, "ListResourcesResult"),
    ("2026-07-28", "ServerResult", LIST | {"resourceTemplates": []}, "ListResourceTemplatesResult"),
    ("2026-07-28", "ServerResult", LIST | {"contents": []}, "ReadResourceResult"),
    ("2026-07-28", "ServerResult", LIST | {"supportedVersions": [], "capabilities": {}}, "DiscoverResult"),
    ("2026-07-28", "InputResponse", {"action": "cancel"}, "ElicitResult"),
    ("2026-07-28", "InputResponse", {"roots": []}, "ListRootsResult"),
    ("2025-11-25", "ServerResult", {}, "Result"),
    ("2025-11-25", "ServerResult", {"_meta": {"a": 1}}, "Result"),
    ("2025-11-25", "ServerResult", {"vendor": 1}, "Result"),
    ("2025-11-25", "ServerResult", {"content": []}, "CallToolResult"),
    ("2025-11-25", "ServerResult", {"content": [], "_meta": {"a": 1}, "structuredContent": {}}, "CallToolResult"),
    ("2025-11-25", "ServerResult", {"tasks": []}, "ListTasksResult"),
    ("2025-11-25", "ClientResult", {"action": "accept"}, "ElicitResult"),
    ("2025-11-25", "ClientResult", {"action": "accept", "content": {"a": 1}}, "ElicitResult"),
    ("2025-11-25", "CallToolRequestResult", {"content": []}, "CallToolResult"),
    ("2025-11-25", "CallToolRequestResult", {"task": TASK | {"ttl": None}}, "CreateTaskResult"),
    ("2025-11-25", "ElicitRequestResult", {"task": TASK | {"ttl": 1}, "_meta": {}}, "CreateTaskResult"),
    ("2024-11-05", "ServerResult", {}, "Result"),
    ("2024-11-05", "ServerResult", {"tools": []}, "ListToolsResult"),
    ("2024-11-05", "ServerResult", {"contents": []}, "ReadResourceResult"),
    (
        "2024-11-05",
        "ServerResult",
        {"protocolVersion": "x", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}},
        "InitializeResult",
    ),
    ("2024-11-05", "ClientResult", {"roots": []}, "ListRootsResult"),
    (
        "2024-11-05",
        "ClientResult",
        {"model": "m", "role": "user", "content": {"type": "text", "text": "x"}},
        "CreateMessageResult",
    ),
]


@each("version, union, value, kind", RESULTS, ids=str)
def test_a_result_is_the_most_specific_that_fits(
    version: str, union: str, value: dict[str, Any], kind: str, backend: str
) -> None:
    types = revision(version, backend)
    result = types.decode(raw(value), getattr(types, union))
    assert type(result) is getattr(types, kind)
    assert type(types.from_builtins(value, getattr(types, union))) is type(result)


def test_a_server_result_keeps_its_declared_members(types: Types) -> None:
    value = LIST | {"tools": [TOOL], "nextCursor": "c"}
    assert again(types, value, types.ServerResult) == value


@each("meta", [{}, {"_meta": {}}, {"_meta": {"com.example/a": 1}}], ids=str)
@each("union", ["CallToolResultResponseResult", "GetPromptResultResponseResult"])
def test_a_request_for_input_does_not_decode_as_an_empty_result(types: Types, meta: dict[str, Any], union: str) -> None:
    value = {"resultType": "input_required", "requestState": "s", **meta}
    assert type(types.decode(raw(value), getattr(types, union))) is types.InputRequiredResult
    assert again(types, value, getattr(types, union)) == value


@each("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
@each(
    "value, kind",
    [
        ({"id": 1, "method": "x/y"}, "JSONRPCRequest"),
        ({"id": "1", "method": "x/y", "params": {"a": 1}}, "JSONRPCRequest"),
        ({"method": "x/y"}, "JSONRPCNotification"),
        ({"method": "x/y", "params": {"a": 1}}, "JSONRPCNotification"),
        ({"id": 1, "result": {"resultType": "complete"}}, "JSONRPCResultResponse"),
        ({"id": 1, "error": {"code": 1, "message": "m"}}, "JSONRPCErrorResponse"),
    ],
    ids=str,
)
def test_a_message_is_a_request_notification_response_or_error(
    version: str, value: dict[str, Any], kind: str, backend: str
) -> None:
    types = revision(version, backend)
    old = {"JSONRPCResultResponse": "JSONRPCResponse", "JSONRPCErrorResponse": "JSONRPCError"}
    expected = kind if version >= "2025-11-25" else old.get(kind, kind)
    message = {"jsonrpc": "2.0", **value}
    assert type(types.decode(raw(message), types.JSONRPCMessage)) is getattr(types, expected)
    assert again(types, message, types.JSONRPCMessage) == message


@each("id", [None, 1.5, True, {}, []], ids=str)
@each("version", mcpspec.VERSIONS)
def test_a_request_with_a_wrong_id_is_no_notification(version: str, id: object, backend: str) -> None:
    types = revision(version, backend)
    error = refusal(types, raw({"jsonrpc": "2.0", "id": id, "method": "x"}), types.JSONRPCMessage)
    assert (error.path, error.reason.partition(",")[0]) == ("id", "expected string or integer")


def test_a_request_with_a_wrong_id_in_a_batch_is_no_notification(backend: str) -> None:
    types = revision("2025-03-26", backend)
    batch = [{"jsonrpc": "2.0", "method": "x"}, {"jsonrpc": "2.0", "id": None, "method": "x"}]
    assert refusal(types, raw(batch), types.JSONRPCMessage).path == "[1].id"


def test_2025_03_26_has_batches(backend: str) -> None:
    types = revision("2025-03-26", backend)
    batch = [{"jsonrpc": "2.0", "method": "x"}, {"jsonrpc": "2.0", "id": 1, "method": "x"}]
    decoded = types.decode(raw(batch), types.JSONRPCMessage)
    assert [type(message) for message in decoded] == [types.JSONRPCNotification, types.JSONRPCRequest]


@each("value", [{}, {"jsonrpc": "2.0"}, {"jsonrpc": "2.0", "id": 1}, {"id": 1, "method": "x"}], ids=str)
def test_a_value_that_is_not_a_message_is_rejected(types: Types, value: object) -> None:
    refusal(types, raw(value), types.JSONRPCMessage)


def test_unions_can_be_parts_of_other_types(types: Types) -> None:
    message = {"jsonrpc": "2.0", "method": "x"}
    assert type(types.decode(raw([message]), list[types.JSONRPCMessage])[0]) is types.JSONRPCNotification
    assert type(types.decode(raw({"a": message}), dict[str, types.JSONRPCMessage])["a"]) is types.JSONRPCNotification
    assert types.decode(b"null", types.JSONRPCMessage | None) is None


@each(
    "value, union, member",
    [
        (structs.JSONRPCRequest(id=1, method="x"), "JSONRPCMessage", True),
        (structs.JSONRPCNotification(method="x"), "JSONRPCMessage", True),
        (structs.JSONRPCNotification(method="x"), "JSONRPCResponse", False),
        (structs.TextContent(text="x"), "JSONRPCMessage", False),
        ({"jsonrpc": "2.0", "method": "x"}, "JSONRPCMessage", False),
        (1, "JSONRPCMessage", False),
        (structs.Result(result_type="complete"), "ServerResult", True),
        ({"resultType": "complete"}, "ServerResult", False),
        (structs.BooleanSchema(), "PrimitiveSchemaDefinition", True),
        (structs.TextContent(text="x"), "ContentBlock", True),
        (structs.BooleanSchema(), "ContentBlock", False),
    ],
    ids=str,
)
def test_isinstance_checks_membership_in_unions_of_structs(value: object, union: str, member: bool) -> None:
    assert isinstance(value, getattr(structs, union)) is member


# Open objects of structs


def meta_object() -> structs.RequestMetaObject:
    return structs.RequestMetaObject(
        protocol_version="2026-07-28", client_capabilities=structs.ClientCapabilities(roots={})
    )


def test_an_open_object_has_attributes_for_what_it_declares() -> None:
    meta = structs.decode(raw(META | {"progressToken": "t"}), structs.RequestMetaObject)
    assert meta.protocol_version == "2026-07-28"
    assert meta.client_capabilities == structs.ClientCapabilities()
    assert meta.progress_token == "t"  # noqa: S105
    assert meta.client_info is structs.UNSET


def test_an_open_object_is_a_dict_of_names_on_the_wire() -> None:
    meta = meta_object()
    meta["com.example/trace"] = {"id": 1}
    meta.progress_token = 7
    assert meta["progressToken"] == 7
    assert list(meta) == [*META, "com.example/trace", "progressToken"]
    assert json.loads(structs.encode(meta)) == {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
        "com.example/trace": {"id": 1},
        "progressToken": 7,
    }


def test_setting_unset_removes_a_member() -> None:
    meta = meta_object()
    meta.progress_token = 7
    meta.progress_token = structs.UNSET
    assert "progressToken" not in meta
    meta.progress_token = structs.UNSET
    assert meta.progress_token is structs.UNSET


def test_a_member_that_is_set_to_unset_is_absent() -> None:
    assert dict(structs.ToolInputSchema(schema_=structs.UNSET)) == {"type": "object"}


@each(
    "arguments, text",
    [
        ({"colour": 1}, "colour"),
        ({"progressToken": 1}, "progressToken"),
        ({"protocol_version": "x"}, "client_capabilities"),
        ({}, "protocol_version, client_capabilities"),
        ({"protocol_version": structs.UNSET, "client_capabilities": {}}, "protocol_version"),
    ],
    ids=str,
)
def test_constructors_of_open_objects_reject_unknown_and_missing_arguments(
    arguments: dict[str, Any], text: str
) -> None:
    kind: Any = structs.RequestMetaObject
    with pytest.raises(TypeError, match=f"RequestMetaObject .*{text}"):
        kind(**arguments)


def test_reading_a_removed_required_member_is_an_error() -> None:
    meta = meta_object()
    del meta["io.modelcontextprotocol/protocolVersion"]
    with pytest.raises(AttributeError, match="protocolVersion"):
        _ = meta.protocol_version


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),  # noqa: S301
}


@each("duplicate", [*COPIES.values(), structs.RequestMetaObject.copy], ids=[*COPIES, "own copy"])
def test_copies_of_open_objects_are_equal_and_of_their_type(duplicate: Callable[[Any], Any]) -> None:
    meta = meta_object()
    meta["com.example/trace"] = {"id": 1}
    twin = duplicate(meta)
    assert twin == meta
    assert type(twin) is structs.RequestMetaObject
    assert type(twin.client_capabilities) is structs.ClientCapabilities
    twin.protocol_version = "other"
    assert meta.protocol_version == "2026-07-28"


def test_open_objects_are_equal_by_their_members() -> None:
    assert meta_object() == meta_object()
    assert structs.ToolInputSchema() == {"type": "object"}
    assert structs.ToolInputSchema() != structs.ToolInputSchema(schema_="x")


def test_the_repr_of_an_open_object_names_its_type() -> None:
    assert repr(structs.ToolInputSchema()) == "exact.ToolInputSchema({'type': 'object'})"


def test_declared_members_of_open_objects_are_decoded_to_their_types() -> None:
    value = META | {"io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"}, "other": {"name": "x"}}
    meta = structs.decode(raw(value), structs.RequestMetaObject)
    assert meta.client_info == structs.Implementation(name="x", version="1")
    assert meta["other"] == {"name": "x"}


# Copies

VALUES: dict[str, Callable[[Types], Any]] = {
    "constants": lambda types: types.CallToolRequest(id=1, params=call_params(types)),
    "tag": lambda types: types.TextContent(text="x"),
    "constant only": lambda types: types.BooleanSchema(),
    "absent constant": lambda types: types.decode(
        b'{"message":"m","requestedSchema":{"type":"object","properties":{}}}', types.ElicitRequestFormParams
    ),
    "null": lambda types: types.CallToolResult(content=[], result_type="complete", structured_content=None),
    "open object within": lambda types: types.decode(raw(TOOL), types.Tool),
}


@each("duplicate", COPIES)
@each("value", VALUES)
def test_a_copy_is_equal_and_encodes_to_the_same_json(types: Types, duplicate: str, value: str) -> None:
    original = VALUES[value](types)
    twin = COPIES[duplicate](original)
    assert twin == original
    assert twin is not original
    assert types.encode(twin) == types.encode(original)


@each("value", VALUES)
def test_replacing_nothing_in_a_struct_changes_nothing(value: str) -> None:
    original = VALUES[value](structs)
    assert structs.encode(msgspec.structs.replace(original)) == structs.encode(original)


def test_replacing_a_member_of_a_struct_keeps_its_constants() -> None:
    request = structs.CallToolRequest(id=1, params=call_params(structs))
    assert json.loads(structs.encode(msgspec.structs.replace(request, id="2"))) == CALL | {"id": "2"}
    form = structs.decode(
        b'{"message":"m","requestedSchema":{"type":"object","properties":{}}}', structs.ElicitRequestFormParams
    )
    assert msgspec.structs.replace(form, message="n").mode is structs.UNSET


@each("value", VALUES)
def test_a_model_copy_changes_nothing(value: str) -> None:
    original = VALUES[value](models)
    assert original.model_copy() == original
    assert models.encode(original.model_copy(deep=True)) == models.encode(original)


def test_a_model_copy_accepts_new_members() -> None:
    image = models.ImageContent(data="", mime_type="image/png").model_copy(update={"mime_type": "image/gif"})
    assert json.loads(models.encode(image)) == {"type": "image", "data": "", "mimeType": "image/gif"}


def test_values_are_equal_by_their_members(types: Types) -> None:
    assert types.TextContent(text="x") == types.TextContent(text="x")
    assert types.TextContent(text="x") != types.TextContent(text="y")
    assert types.decode(b'{"type":"text","text":"x"}', types.ContentBlock) == types.TextContent(text="x")


def test_a_changed_member_is_encoded(types: Types) -> None:
    tool = types.decode(raw(TOOL), types.Tool)
    tool.title = "Grep"
    assert json.loads(types.encode(tool)) == TOOL | {"title": "Grep"}


def test_encoded_json_is_copied() -> None:
    value = {"a": msgspec.Raw(b'{"b": null}'), "c": None}
    assert structs.encode(value) == b'{"a":{"b": null},"c":null}'


@each("number", [float("nan"), float("inf"), float("-inf")])
@each("where", ["a declared number", "any JSON"])
def test_nan_and_infinity_are_rejected_and_never_encoded_as_null(types: Types, number: float, where: str) -> None:
    value = types.CallToolResult(content=[], result_type="complete", structured_content={"a": [None, 1.5]})
    assert b'{"a":[null,1.5]}' in types.encode(value)
    if where == "any JSON":
        value.structured_content = {"a": [number]}
    else:
        value = types.ProgressNotificationParams(progress=1, progress_token=1)
        value.progress = number
    with pytest.raises(ValueError, match="JSON has neither NaN nor infinity"):
        types.encode(value)


@each("text", ["wind " * 20_000, "No Idea. " * 20_000, "null" * 20_000], ids=["a", "No I", "null"])
@each("where", ["itself", "in an array", "in a tuple", "behind many"])
def test_nan_and_infinity_are_rejected_beside_large_texts(types: Types, text: str, where: str) -> None:
    content = types.TextContent(text=text)
    for number in (1.5, None, float("inf"), float("-inf"), float("nan")):
        places = {"itself": number, "in an array": [number], "in a tuple": ({"a": [number]},)}
        structured = {"text": text, "number": places.get(where, [0] * 9000 + [number])}
        value = types.CallToolResult(content=[content], result_type="complete", structured_content=structured)
        if number in (1.5, None):
            decoded = types.decode(types.encode(value), types.CallToolResult)
            assert decoded.structured_content == json.loads(json.dumps(structured))
        else:
            with pytest.raises(ValueError, match="JSON has neither NaN nor infinity"):
                types.encode(value)


def test_large_text_that_is_not_json_is_rejected(types: Types) -> None:
    for text in ("wind " * 20_000, "No Idea. " * 20_000):
        for word in ("NaN", "Infinity", "-Infinity"):
            data = f'{{"content":[],"resultType":"complete","structuredContent":{{"a":"{text}","b":{word}}}}}'
            for given in (data, data.encode(), bytearray(data.encode()), memoryview(data.encode())):
                with pytest.raises(types.DecodeError, match="not JSON"):
                    types.decode(given, types.CallToolResult)


# Subclasses of users


def test_a_subclass_of_a_type_with_constants_keeps_them(types: Types) -> None:
    class Loud(types.TextContent):  # type: ignore[misc]
        pass

    class Call(types.CallToolRequest):  # type: ignore[misc]
        pass

    assert json.loads(types.encode(Loud(text="x"))) == {"type": "text", "text": "x"}
    assert json.loads(types.encode(Call(id=1, params=call_params(types)))) == CALL


def test_a_subclass_of_an_open_object_keeps_its_members() -> None:
    class Mine(structs.ToolInputSchema):
        pass

    schema = Mine(schema_="https://a.org")
    assert schema == {"type": "object", "$schema": "https://a.org"}
    assert schema.schema_ == "https://a.org"


def test_an_open_object_has_no_attributes_but_those_it_declares() -> None:
    """A misspelt attribute would not be encoded."""
    meta: Any = meta_object()
    with pytest.raises(AttributeError, match="RequestMetaObject declares no member 'progresToken'"):
        meta.progresToken = 1


@each("version", mcpspec.VERSIONS)
def test_open_objects_have_no_second_dict_for_attributes(version: str) -> None:
    """Every request contains one, so a second dict would cost time and memory."""
    members: dict[str, Any] = revision(version, "exact.structs").__dict__
    classes = [kind for kind in members.values() if isinstance(kind, type)]
    kinds = [kind for kind in classes if issubclass(kind, OpenObject)]
    found = [kind.__name__ for kind in kinds if hasattr(kind.__new__(kind), "__dict__")]
    assert kinds
    assert found == []


@each("name", ["from", "ﬁ", "value", "self", "checked"])
def test_members_of_open_objects_may_have_any_attribute(name: str) -> None:
    members = {"__annotations__": {name: structs.Implementation}, name: member(name="{wire!r}'s")}
    kind: Any = type("Mine", (OpenObject,), members)
    value = {"{wire!r}'s": {"name": "x", "version": "1"}}
    assert getattr(structs.from_builtins(value, kind), name) == structs.Implementation(name="x", version="1")


def test_merging_into_an_open_object_keeps_its_type() -> None:
    merged = meta_object() | {"progressToken": 1}
    assert type(merged) is structs.RequestMetaObject
    assert merged.progress_token == 1
