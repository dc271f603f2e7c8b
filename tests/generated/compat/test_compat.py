"""Code that was written for either major version of the official package runs on the types free of revisions."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any, Literal

import pytest
from pydantic import AnyUrl, TypeAdapter, ValidationError

from mcpspec import compat
from mcpspec.support.compat import Model
from tests.cases import each

# The types have attributes and accept keywords that only exist at run time.
types: Any = compat


# Names of members


def test_members_have_names_of_both_kinds() -> None:
    tool = types.Tool(name="a", inputSchema={"type": "object"})
    assert tool == types.Tool(name="a", input_schema={"type": "object"})
    assert tool.inputSchema == tool.input_schema == {"type": "object"}
    assert types.Tool.model_validate({"name": "a", "input_schema": {}}, by_name=True).inputSchema == {}


def test_a_member_that_is_set_by_its_name_on_the_wire_is_the_same_member() -> None:
    result = types.CallToolResult(content=[])
    result.isError = True
    assert result.is_error is True
    assert result.model_extra == {}
    assert result.model_dump(exclude_none=True)["isError"] is True


def test_a_member_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="inputSchemas"):
        _ = types.Tool(name="a", input_schema={}).inputSchemas


def test_a_name_of_the_official_package_that_is_missing_is_an_error_with_the_reason() -> None:
    for name, reason in compat.names.MISSING.items():
        with pytest.raises(AttributeError) as caught:
            getattr(types, name)
        assert str(caught.value) == f"module 'mcpspec.compat' has no attribute {name!r}: {reason}"
    with pytest.raises(AttributeError, match=r"^module 'mcpspec.compat' has no attribute 'Nonsense'$"):
        getattr(types, "Nonsense")  # noqa: B009  # checkers know that it is missing


def test_a_copy_takes_members_by_either_name() -> None:
    result = types.CallToolResult(content=[])
    for update in ({"isError": True}, {"is_error": True}):
        copied = result.model_copy(update=update)
        assert copied.isError is True
        assert json.loads(copied.model_dump_json(exclude_none=True))["isError"] is True
        assert copied.model_extra == {}


def test_undeclared_members_are_kept_and_are_attributes() -> None:
    tool = types.Tool.model_validate({"name": "a", "inputSchema": {}, "vendor": 1})
    assert tool.vendor == 1
    assert tool.model_dump(exclude_none=True)["vendor"] == 1


def test_a_dumped_object_can_be_constructed_again() -> None:
    result = types.ListToolsResult(tools=[types.Tool(name="a", input_schema={})], _meta={"k": 1})
    assert types.ListToolsResult(**result.model_dump()) == result
    assert types.ListToolsResult(**result.model_dump(by_alias=False)) == result


# Absence and null


def test_absent_members_are_none_or_the_default_of_the_protocol() -> None:
    result = types.CallToolResult(content=[])
    assert (result.is_error, result.structured_content, result.meta) == (False, None, None)
    assert types.EmptyResult().model_dump(exclude_none=True) == {}
    assert types.ListToolsResult(tools=[]).next_cursor is None


@each(
    "name, value",
    {
        "LoggingMessageNotificationParams": {"level": "info", "data": None},
        "Task": {
            "taskId": "1", "status": "working", "createdAt": "2025-11-25T00:00:00Z",
            "lastUpdatedAt": "2025-11-25T00:00:00Z", "ttl": None,
        },
    }.items(),
)  # fmt: skip
def test_null_of_a_required_member_is_written(name: str, value: dict[str, Any]) -> None:
    made = getattr(types, name).model_validate(value)
    assert types.to_builtins(made) == value
    assert json.loads(types.encode(made)) == value
    assert made.model_dump(exclude_none=True) == value
    assert set(made.model_dump(by_alias=False, exclude_none=True)) <= set(getattr(types, name).model_fields)


# Messages


def test_a_message_is_constructed_with_its_method_or_without() -> None:
    params = types.CallToolRequestParams(name="a", arguments={"b": 1})
    request = types.CallToolRequest(params=params)
    assert request == types.CallToolRequest(method="tools/call", params=params)
    assert request.model_dump(exclude_none=True) == {
        "method": "tools/call",
        "params": {"name": "a", "arguments": {"b": 1}},
    }
    line = types.JSONRPCRequest(jsonrpc="2.0", id=1, **request.model_dump(by_alias=True, exclude_none=True))
    assert types.jsonrpc_message_adapter.validate_json(types.encode(line)) == line


@each("method", ["tools/list", "prompts/list", "ping", "server/discover", "roots/list"])
def test_parameters_may_be_absent_where_nothing_is_required(method: str) -> None:
    union = types.ServerRequest if method == "roots/list" else types.ClientRequest
    assert union.model_validate({"method": method}).params is None


UNIONS: dict[str, Any] = {
    "ClientRequest": types.PingRequest(),
    "ServerNotification": types.ToolListChangedNotification(),
    "ServerResult": types.CallToolResult(content=[]),
    "ClientResult": types.ElicitResult(action="decline"),
    "JSONRPCMessage": types.JSONRPCResponse(jsonrpc="2.0", id=1, result={}),
}


@each("name", UNIONS)
def test_a_union_can_be_called_and_gives_its_member(name: str) -> None:
    union, member = getattr(types, name), UNIONS[name]
    for made in (
        union(member),
        union(root=member),
        union.model_validate(member),
        TypeAdapter(union).validate_python(member),
    ):
        assert made is member
        assert made.root is member
        assert isinstance(made, union)
    assert union.model_validate_json(member.model_dump_json(exclude_none=True)) == member


@pytest.mark.filterwarnings("error")
def test_a_member_named_root_comes_before_the_root_of_1_x() -> None:
    class Tree(Model):
        root: str | None = None  # type: ignore[assignment]

    assert Tree(root="a").root == "a"
    assert Tree().root is None
    assert types.TextContent(text="a").root == types.TextContent(text="a")


@each("name", UNIONS)
def test_a_union_rejects_what_is_no_member(name: str) -> None:
    with pytest.raises(ValidationError):
        getattr(types, name)(1)


@each("id", [None, 1.5, [], {}])
def test_a_request_with_a_wrong_id_is_no_notification(id: object) -> None:
    with pytest.raises(types.DecodeError, match=r"^id: "):
        types.from_builtins({"jsonrpc": "2.0", "id": id, "method": "x"}, types.JSONRPCMessage)


def test_classes_derive_from_each_other_as_in_the_official_package() -> None:
    assert issubclass(types.ListToolsResult, types.PaginatedResult)
    assert issubclass(types.ListToolsResult, types.CacheableResult)
    assert issubclass(types.CallToolRequestParams, types.RequestParams)
    assert issubclass(types.ResourceLink, types.Resource)
    assert isinstance(types.CallToolResult(content=[]), types.Result)
    assert isinstance(types.PingRequest(), types.Request)
    assert isinstance(types.ToolListChangedNotification(), types.Notification)


def test_a_vendor_derives_requests_of_its_own() -> None:
    class Params(compat.RequestParams):
        max_size: int

    class Request(compat.Request[Params, Literal["acme/shrink"]]):
        method: Literal["acme/shrink"] = "acme/shrink"

    request = Request.model_validate({"method": "acme/shrink", "params": {"maxSize": 3}})
    assert request.params.max_size == 3
    assert request.model_dump(exclude_none=True) == {"method": "acme/shrink", "params": {"maxSize": 3}}


def test_content_is_a_block_or_a_list_of_blocks() -> None:
    block = types.TextContent(text="a")
    for content in (block, [block]):
        assert types.SamplingMessage(role="user", content=content).content_as_list == [block]


def test_a_request_for_input_has_requests_or_state() -> None:
    with pytest.raises(ValidationError, match="expected inputRequests or requestState"):
        types.InputRequiredResult.model_validate({"resultType": "input_required"})
    assert types.InputRequiredResult(request_state="s").result_type == "input_required"


# Values


def test_meta_of_parameters_is_a_dict_with_attributes() -> None:
    params = types.CallToolRequestParams.model_validate({"name": "a", "_meta": {"progressToken": 1, "x": 2}})
    assert (params.meta.progressToken, params.meta.progress_token, params.meta["progress_token"]) == (1, 1, 1)
    assert params.meta == {"progressToken": 1, "x": 2}
    assert params.meta.x == 2
    assert "progress_token" in params.meta
    made = types.CallToolRequestParams(name="a", _meta=types.RequestParams.Meta(progress_token=1, x=2))
    assert made == params
    assert made.model_dump(exclude_none=True)["_meta"] == {"progressToken": 1, "x": 2}
    assert types.CallToolRequestParams(name="a", meta={}).meta.progressToken is None
    with pytest.raises(AttributeError, match="'y'"):
        _ = params.meta.y


def test_a_uri_is_a_string_with_parts() -> None:
    resource = types.Resource(name="a", uri=AnyUrl("test://host:80/b?c#d"))
    uri: compat.Uri = resource.uri
    assert (uri.scheme, uri.host, uri.port) == ("test", "host", 80)
    assert (uri.path, uri.query, uri.fragment) == ("/b", "c", "d")
    assert uri == AnyUrl("test://host:80/b?c#d")
    assert str(uri) == uri.unicode_string() == "test://host:80/b?c#d"
    assert json.loads(resource.model_dump_json())["uri"] == "test://host:80/b?c#d"
    assert types.Resource.model_json_schema()["properties"]["uri"]["format"] == "uri"
    with pytest.raises(ValidationError):
        types.Resource(name="a", uri=1)


def test_values_are_copied_and_pickled() -> None:
    params = types.CallToolRequestParams(name="a", _meta={"progressToken": 1})
    result = types.ReadResourceResult(contents=[types.TextResourceContents(uri="a://b", text="")])
    for value in (params, result):
        for same in (copy.deepcopy(value), pickle.loads(pickle.dumps(value)), value.model_copy(deep=True)):  # noqa: S301
            assert same == value
            assert same.model_dump() == value.model_dump()
    assert isinstance(copy.deepcopy(params).meta, compat.RequestParamsMeta)


def test_a_fault_is_named_with_its_place() -> None:
    with pytest.raises(compat.DecodeError) as caught:
        compat.decode(b'{"content": [{"type": "text"}]}', compat.CallToolResult)
    assert (caught.value.path, caught.value.reason) == ("content[0].text", "required, but missing")


def test_meta_of_parameters_is_changed_by_either_name() -> None:
    def made() -> Any:
        return types.RequestParams(meta={"a": 1}).meta

    by_attribute, by_item, updated, defaulted = made(), made(), made(), made()
    by_attribute.progress_token = 7
    by_item["progress_token"] = 7
    updated.update(progress_token=7)
    defaulted.setdefault("progress_token", 7)
    merged = made() | {"progress_token": 7}
    for meta in (by_attribute, by_item, updated, defaulted, merged, merged.copy()):
        assert type(meta) is compat.RequestParamsMeta
        assert dict(meta) == {"a": 1, "progressToken": 7}
        assert meta.pop("progress_token") == 7
    assert dict(compat.RequestParamsMeta([("progress_token", 1)], self=2)) == {"progressToken": 1, "self": 2}


def test_meta_from_a_peer_cannot_replace_methods() -> None:
    text = b'{"_meta": {"__deepcopy__": 1, "__reduce_ex__": 2, "get": 3}}'
    params = compat.decode(text, compat.RequestParams)
    assert params.model_copy(deep=True) == params == pickle.loads(pickle.dumps(params))  # noqa: S301


@each("name", ["GetTaskRequestParams", "CancelTaskRequestParams", "GetTaskPayloadRequestParams"])
def test_all_parameters_have_meta(name: str) -> None:
    params = getattr(types, name)(task_id="x", meta={"progressToken": 1})
    assert isinstance(params, compat.RequestParams)
    assert compat.to_builtins(params) == {"_meta": {"progressToken": 1}, "taskId": "x"}
    assert getattr(types, name)(task_id="x").meta is None


def test_numbers_that_json_has_not_are_rejected() -> None:
    with pytest.raises(compat.DecodeError):
        compat.decode(b'{"name": "x", "arguments": {"a": NaN}}', compat.CallToolRequestParams)
    with pytest.raises(ValueError, match="finite"):
        compat.ProgressNotificationParams(progress_token=1, progress=float("inf"))
    with pytest.raises(ValueError, match="NaN"):
        compat.encode(compat.CallToolRequestParams(name="x", arguments={"a": float("nan")}))


def test_a_class_that_keeps_null_is_described_and_written_in_part() -> None:
    assert "taskId" in types.Task.model_json_schema(mode="serialization")["properties"]
    params = types.LoggingMessageNotificationParams(level="info", data=None)
    assert params.model_dump(exclude={"data"}, exclude_none=True) == {"level": "info"}
    assert params.model_dump(include={"level"}) == {"level": "info"}
    assert types.LoggingMessageNotificationParams.model_construct(level="info").model_dump(exclude_none=True) == {
        "level": "info"
    }


def test_the_result_of_a_tool_may_lack_content_inside_of_messages() -> None:
    assert types.ToolResultContent.model_validate({"type": "tool_result", "toolUseId": "x"}).content == []
