"""A method's record ties the type of its parameters to that of its result."""

from __future__ import annotations

from typing import TypeVar, assert_type

from mcpspec.v2025_11_25 import methods as methods_2025
from mcpspec.v2025_11_25 import structs as structs_2025
from mcpspec.v2026_07_28 import methods, models, models_methods, structs
from mcpspec.v2026_07_28.methods import Method

P = TypeVar("P")
R = TypeVar("R")


async def send(method: Method[P, R], params: P) -> R:
    raise NotImplementedError(method.name, params)


async def send_structs(meta: structs.RequestMetaObject) -> None:
    result = await send(methods.TOOLS_CALL, structs.CallToolRequestParams(meta=meta, name="grep"))
    assert_type(result, structs.CallToolResult | structs.InputRequiredResult)
    tools = await send(methods.TOOLS_LIST, structs.PaginatedRequestParams(meta=meta))
    assert_type(tools, structs.ListToolsResult)
    await send(methods.NOTIFICATIONS_CANCELLED, structs.CancelledNotificationParams(request_id=1))
    form = structs.ElicitRequestURLParams(message="Sign in", url="https://example.com")
    assert_type(await send(methods.ELICITATION_CREATE, form), structs.ElicitResult)


async def send_models(meta: models.RequestMetaObject) -> None:
    result = await send(models_methods.TOOLS_CALL, models.CallToolRequestParams(meta=meta, name="grep"))
    assert_type(result, models.CallToolResult | models.InputRequiredResult)
    tools = await send(models_methods.TOOLS_LIST, models.PaginatedRequestParams(meta=meta))
    assert_type(tools, models.ListToolsResult)


async def send_what_may_become_a_task() -> None:
    result = await send(methods_2025.TOOLS_CALL, structs_2025.CallToolRequestParams(name="grep"))
    assert_type(result, structs_2025.CallToolResult | structs_2025.CreateTaskResult)


async def send_what_needs_no_parameters() -> None:
    assert_type(await send(methods_2025.PING, structs_2025.RequestParams()), structs_2025.EmptyResult)
    assert_type(
        await send(methods_2025.TOOLS_LIST, structs_2025.PaginatedRequestParams()), structs_2025.ListToolsResult
    )


def receive(method: Method[P, R], raw: bytes) -> R:
    return structs.decode(raw, method.result)


def receive_structs(raw: bytes) -> None:
    assert_type(receive(methods.SERVER_DISCOVER, raw), structs.DiscoverResult)
    assert_type(receive(methods.PROMPTS_GET, raw), structs.GetPromptResult | structs.InputRequiredResult)


def look_up(name: str) -> None:
    assert_type(methods.CLIENT_REQUESTS[name], methods.AnyMethod)
    assert_type(methods.TOOLS_CALL.sender, methods.Sender)
    assert_type(methods.TOOLS_CALL.kind, methods.Kind)
