"""A tag distinguishes the members of a union, in both backends, with `if` and `match`, exhaustively."""

from __future__ import annotations

from typing import Literal, assert_never, assert_type

from mcpspec.v2025_11_25.exact import structs as structs_2025
from mcpspec.v2026_07_28.exact import models, structs


def if_on_the_type_of_a_struct(block: structs.ContentBlock) -> None:
    if block.type == "text":
        assert_type(block, structs.TextContent)
        assert_type(block.text, str)
    elif block.type == "image":
        assert_type(block, structs.ImageContent)
        assert_type(block.data, str)
    elif block.type == "audio":
        assert_type(block, structs.AudioContent)
    elif block.type == "resource_link":
        assert_type(block, structs.ResourceLink)
    elif block.type == "resource":
        assert_type(block, structs.EmbeddedResource)
    else:
        assert_never(block)


def if_on_the_type_of_a_model(block: models.ContentBlock) -> None:
    if block.type == "text":
        assert_type(block, models.TextContent)
        assert_type(block.text, str)
    elif block.type == "image":
        assert_type(block, models.ImageContent)
        assert_type(block.data, str)
    elif block.type == "audio":
        assert_type(block, models.AudioContent)
    elif block.type == "resource_link":
        assert_type(block, models.ResourceLink)
    elif block.type == "resource":
        assert_type(block, models.EmbeddedResource)
    else:
        assert_never(block)


def match_on_the_type_of_a_struct(block: structs.ContentBlock) -> str:
    match block.type:
        case "text":
            return assert_type(block, structs.TextContent).text
        case "image":
            return assert_type(block, structs.ImageContent).data
        case "audio":
            return assert_type(block, structs.AudioContent).data
        case "resource_link":
            return assert_type(block, structs.ResourceLink).uri
        case "resource":
            return assert_type(block, structs.EmbeddedResource).resource.uri


def match_on_the_type_of_a_model(block: models.ContentBlock) -> str:
    match block.type:
        case "text":
            return assert_type(block, models.TextContent).text
        case "image":
            return assert_type(block, models.ImageContent).data
        case "audio":
            return assert_type(block, models.AudioContent).data
        case "resource_link":
            return assert_type(block, models.ResourceLink).uri
        case "resource":
            return assert_type(block, models.EmbeddedResource).resource.uri


def match_on_the_class_of_a_struct(block: structs.ContentBlock) -> str:
    match block:
        case structs.TextContent(text=text):
            return assert_type(text, str)
        case structs.ImageContent() | structs.AudioContent():
            assert_type(block, structs.ImageContent | structs.AudioContent)
            return block.mime_type
        case structs.ResourceLink() | structs.EmbeddedResource():
            return block.type
        case _:
            assert_never(block)


def match_on_the_class_of_a_model(block: models.ContentBlock) -> str:
    match block:
        case models.TextContent(text=text):
            return assert_type(text, str)
        case models.ImageContent() | models.AudioContent():
            assert_type(block, models.ImageContent | models.AudioContent)
            return block.mime_type
        case models.ResourceLink() | models.EmbeddedResource():
            return block.type
        case _:
            assert_never(block)


def tags_are_literals(text: structs.TextContent, image: models.ImageContent, call: structs.CallToolRequest) -> None:
    assert_type(text.type, Literal["text"])
    assert_type(image.type, Literal["image"])
    assert_type(call.method, Literal["tools/call"])


def if_on_the_method_of_a_request_as_struct(request: structs.ClientRequest) -> None:
    if request.method == "tools/call":
        assert_type(request, structs.CallToolRequest)
        assert_type(request.params, structs.CallToolRequestParams)
    elif request.method == "server/discover":
        assert_type(request, structs.DiscoverRequest)
        assert_type(request.params, structs.RequestParams)


def if_on_the_method_of_a_request_as_model(request: models.ClientRequest) -> None:
    if request.method == "tools/call":
        assert_type(request, models.CallToolRequest)
        assert_type(request.params, models.CallToolRequestParams)
    elif request.method == "server/discover":
        assert_type(request, models.DiscoverRequest)
        assert_type(request.params, models.RequestParams)


def match_on_the_method_of_a_request_as_struct(request: structs.ClientRequest) -> str:
    match request.method:
        case "completion/complete":
            return assert_type(request, structs.CompleteRequest).params.argument.value
        case "prompts/get":
            return assert_type(request, structs.GetPromptRequest).params.name
        case "resources/read":
            return assert_type(request, structs.ReadResourceRequest).params.uri
        case "server/discover":
            return assert_type(request, structs.DiscoverRequest).params.meta.protocol_version
        case "subscriptions/listen":
            return assert_type(request, structs.SubscriptionsListenRequest).method
        case "tools/call":
            return assert_type(request, structs.CallToolRequest).params.name
        case "prompts/list" | "resources/list" | "resources/templates/list" | "tools/list":
            assert_type(request.params, structs.PaginatedRequestParams)
            return request.method


def match_on_the_method_of_a_request_as_model(request: models.ClientRequest) -> str:
    match request.method:
        case "completion/complete":
            return assert_type(request, models.CompleteRequest).params.argument.value
        case "prompts/get":
            return assert_type(request, models.GetPromptRequest).params.name
        case "resources/read":
            return assert_type(request, models.ReadResourceRequest).params.uri
        case "server/discover":
            return assert_type(request, models.DiscoverRequest).params.meta.protocol_version
        case "subscriptions/listen":
            return assert_type(request, models.SubscriptionsListenRequest).method
        case "tools/call":
            return assert_type(request, models.CallToolRequest).params.name
        case "prompts/list" | "resources/list" | "resources/templates/list" | "tools/list":
            assert_type(request.params, models.PaginatedRequestParams)
            return request.method


def match_on_the_method_of_a_notification_as_struct(notification: structs.ServerNotification) -> None:
    match notification.method:
        case "notifications/cancelled":
            assert_type(notification, structs.CancelledNotification)
        case "notifications/progress":
            assert_type(notification, structs.ProgressNotification)
            assert_type(notification.params, structs.ProgressNotificationParams)
        case "notifications/message":
            assert_type(notification, structs.LoggingMessageNotification)
        case "notifications/resources/updated":
            assert_type(notification, structs.ResourceUpdatedNotification)
        case "notifications/resources/list_changed":
            assert_type(notification, structs.ResourceListChangedNotification)
        case "notifications/prompts/list_changed":
            assert_type(notification, structs.PromptListChangedNotification)
        case "notifications/tools/list_changed":
            assert_type(notification, structs.ToolListChangedNotification)
        case "notifications/subscriptions/acknowledged":
            assert_type(notification, structs.SubscriptionsAcknowledgedNotification)
        case _:
            assert_never(notification)


def match_on_the_method_of_a_notification_as_model(notification: models.ServerNotification) -> None:
    match notification.method:
        case "notifications/cancelled":
            assert_type(notification, models.CancelledNotification)
        case "notifications/progress":
            assert_type(notification, models.ProgressNotification)
            assert_type(notification.params, models.ProgressNotificationParams)
        case "notifications/message":
            assert_type(notification, models.LoggingMessageNotification)
        case "notifications/resources/updated":
            assert_type(notification, models.ResourceUpdatedNotification)
        case "notifications/resources/list_changed":
            assert_type(notification, models.ResourceListChangedNotification)
        case "notifications/prompts/list_changed":
            assert_type(notification, models.PromptListChangedNotification)
        case "notifications/tools/list_changed":
            assert_type(notification, models.ToolListChangedNotification)
        case "notifications/subscriptions/acknowledged":
            assert_type(notification, models.SubscriptionsAcknowledgedNotification)
        case _:
            assert_never(notification)


def if_on_the_method_of_a_request_that_a_server_sends(request: structs_2025.ServerRequest) -> None:
    if request.method == "sampling/createMessage":
        assert_type(request, structs_2025.CreateMessageRequest)
    elif request.method == "elicitation/create":
        assert_type(request, structs_2025.ElicitRequest)


def isinstance_on_the_members_of_an_untagged_union(message: structs.JSONRPCMessage) -> None:
    if isinstance(message, structs.JSONRPCRequest):
        assert_type(message, structs.JSONRPCRequest)
    elif isinstance(message, structs.JSONRPCNotification):
        assert_type(message, structs.JSONRPCNotification)
    elif isinstance(message, structs.JSONRPCResultResponse):
        assert_type(message, structs.JSONRPCResultResponse)
    else:
        assert_type(message, structs.JSONRPCErrorResponse)
