"""The plain types are inferred, narrowed and matched exhaustively like the exact ones, in both libraries."""

from __future__ import annotations

from typing import Any, TypeVar, assert_never, assert_type

from mcpspec.support.unknown import Kept, decode_keeping
from mcpspec.v2026_07_28 import methods, models, models_methods, structs
from mcpspec.v2026_07_28.exact import models as exact_models
from mcpspec.v2026_07_28.exact import structs as exact_structs
from mcpspec.v2026_07_28.methods import Method

P = TypeVar("P")
R = TypeVar("R")


def decoding_infers_the_type(raw: bytes, parsed: object) -> None:
    assert_type(structs.decode(raw, structs.Tool), structs.Tool)
    assert_type(structs.decode(raw, structs.ClientRequest), structs.ClientRequest)
    assert_type(structs.from_builtins(parsed, structs.ContentBlock), structs.ContentBlock)
    assert_type(structs.decode(raw, list[structs.Tool]), list[structs.Tool])
    assert_type(models.decode(raw, models.Tool), models.Tool)
    assert_type(models.decode(raw, models.ClientRequest), models.ClientRequest)
    assert_type(models.from_builtins(parsed, models.ContentBlock), models.ContentBlock)
    assert_type(models.decode(raw, list[models.Tool]), list[models.Tool])


def validating_and_keeping_infer_the_type(raw: bytes, tool: structs.Tool, model: exact_models.Tool) -> None:
    assert_type(structs.validate(tool), structs.Tool)
    assert_type(exact_models.validate(model), exact_models.Tool)
    assert_type(structs.validate([tool], list[structs.Tool]), list[structs.Tool])
    assert_type(decode_keeping(raw, exact_structs.Tool), Kept[exact_structs.Tool])
    assert_type(decode_keeping(raw, structs.ContentBlock).value, structs.ContentBlock)


def absent_members_are_none(tool: structs.Tool, model: models.Tool) -> None:
    assert_type(tool.title, str | None)
    assert_type(model.title, str | None)
    assert_type(tool.title or tool.name, str)
    assert_type(tool.input_schema, dict[str, Any])


def match_on_the_class_of_a_request_as_struct(request: structs.ClientRequest) -> str:
    match request:
        case structs.CallToolRequest(params=params):
            return assert_type(params, structs.CallToolRequestParams).name
        case structs.CompleteRequest() | structs.GetPromptRequest() | structs.ReadResourceRequest():
            return request.jsonrpc
        case structs.DiscoverRequest() | structs.SubscriptionsListenRequest():
            return request.method
        case structs.ListPromptsRequest() | structs.ListToolsRequest():
            return assert_type(request.params, structs.PaginatedRequestParams).cursor or ""
        case structs.ListResourcesRequest() | structs.ListResourceTemplatesRequest():
            return request.method
        case _:
            assert_never(request)


def match_on_the_class_of_a_request_as_model(request: models.ClientRequest) -> str:
    match request:
        case models.CallToolRequest(params=params):
            return assert_type(params, models.CallToolRequestParams).name
        case models.CompleteRequest() | models.GetPromptRequest() | models.ReadResourceRequest():
            return request.jsonrpc
        case models.DiscoverRequest() | models.SubscriptionsListenRequest():
            return request.method
        case models.ListPromptsRequest() | models.ListToolsRequest():
            return assert_type(request.params, models.PaginatedRequestParams).cursor or ""
        case models.ListResourcesRequest() | models.ListResourceTemplatesRequest():
            return request.method
        case _:
            assert_never(request)


def match_on_the_method_of_a_request_as_struct(request: structs.ClientRequest) -> None:
    match request.method:
        case "tools/call":
            assert_type(request, structs.CallToolRequest)
        case "completion/complete" | "prompts/get" | "resources/read" | "server/discover" | "subscriptions/listen":
            pass
        case "prompts/list" | "resources/list" | "resources/templates/list" | "tools/list":
            assert_type(request.params, structs.PaginatedRequestParams)
        case _:
            assert_never(request)


def match_on_the_method_of_a_request_as_model(request: models.ClientRequest) -> None:
    match request.method:
        case "tools/call":
            assert_type(request, models.CallToolRequest)
        case "completion/complete" | "prompts/get" | "resources/read" | "server/discover" | "subscriptions/listen":
            pass
        case "prompts/list" | "resources/list" | "resources/templates/list" | "tools/list":
            assert_type(request.params, models.PaginatedRequestParams)
        case _:
            assert_never(request)


def match_on_the_class_of_a_notification_as_struct(notification: structs.ServerNotification) -> None:
    match notification:
        case structs.CancelledNotification() | structs.ProgressNotification() | structs.LoggingMessageNotification():
            pass
        case structs.ResourceUpdatedNotification(params=params):
            assert_type(params.uri, str)
        case structs.ResourceListChangedNotification() | structs.PromptListChangedNotification():
            pass
        case structs.ToolListChangedNotification() | structs.SubscriptionsAcknowledgedNotification():
            pass
        case _:
            assert_never(notification)


def match_on_the_class_of_a_notification_as_model(notification: models.ServerNotification) -> None:
    match notification:
        case models.CancelledNotification() | models.ProgressNotification() | models.LoggingMessageNotification():
            pass
        case models.ResourceUpdatedNotification(params=params):
            assert_type(params.uri, str)
        case models.ResourceListChangedNotification() | models.PromptListChangedNotification():
            pass
        case models.ToolListChangedNotification() | models.SubscriptionsAcknowledgedNotification():
            pass
        case _:
            assert_never(notification)


def match_on_content(block: structs.ContentBlock, model: models.ContentBlock) -> None:
    match block:
        case structs.TextContent(type="text", text=text):
            assert_type(text, str)
        case structs.ImageContent() | structs.AudioContent():
            assert_type(block.mime_type, str)
        case structs.ResourceLink() | structs.EmbeddedResource():
            pass
        case _:
            assert_never(block)
    match model.type:
        case "text":
            assert_type(model, models.TextContent)
        case "image" | "audio":
            assert_type(model.mime_type, str)
        case "resource_link" | "resource":
            pass
        case _:
            assert_never(model)


async def send(method: Method[P, R], params: P) -> R:
    """Send a request; the record of its method ties the types together."""
    raw = await exchange(method.name, structs.encode(params))
    return structs.decode(raw, method.result)


async def exchange(method: str, params: bytes) -> bytes:
    raise NotImplementedError(method, params)


async def sending_infers_the_result(meta: dict[str, Any]) -> None:
    result = await send(methods.TOOLS_CALL, structs.CallToolRequestParams(meta=meta, name="grep"))
    assert_type(result, structs.CallToolResult | structs.InputRequiredResult)
    page = structs.PaginatedRequestParams(meta=meta)
    assert_type(await send(methods.TOOLS_LIST, page), structs.ListToolsResult)
    model_page = models.PaginatedRequestParams(meta=meta)
    assert_type(await send(models_methods.TOOLS_LIST, model_page), models.ListToolsResult)
