"""Handlers start from a stub or implement only the Protocols they need; both may be plain or asynchronous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from mcpspec.v2026_07_28 import handlers, models, models_handlers, structs


@dataclass
class MyContext:
    user: str


class PlainServer(handlers.ServerStub[MyContext]):
    def call_tool(self, _params: structs.CallToolRequestParams, ctx: MyContext, /) -> structs.CallToolResult:
        return structs.CallToolResult(content=[structs.TextContent(text=ctx.user)], result_type="complete")

    def list_tools(self, _params: structs.PaginatedRequestParams, _ctx: MyContext, /) -> structs.ListToolsResult:
        return structs.ListToolsResult(tools=[], cache_scope="private", result_type="complete", ttl_ms=0)


class AsyncServer(handlers.ServerStub[MyContext]):
    async def call_tool(self, _params: structs.CallToolRequestParams, ctx: MyContext, /) -> structs.CallToolResult:
        return structs.CallToolResult(content=[structs.TextContent(text=ctx.user)], result_type="complete")

    async def cancelled(self, params: structs.CancelledNotificationParams, _ctx: MyContext, /) -> None:
        assert_type(params.request_id, str | int)


class ModelServer(models_handlers.ServerStub[MyContext]):
    async def call_tool(self, _params: models.CallToolRequestParams, ctx: MyContext, /) -> models.CallToolResult:
        return models.CallToolResult(content=[models.TextContent(text=ctx.user)], result_type="complete")

    def cancelled(self, params: models.CancelledNotificationParams, _ctx: MyContext, /) -> None:
        assert_type(params.request_id, str | int)


class Client(handlers.ClientStub[MyContext]):
    async def elicit(self, _params: structs.ElicitRequestParams, _ctx: MyContext, /) -> structs.ElicitResult:
        return structs.ElicitResult(action="decline")


class OnlyTools:
    """Related to no class of the package."""

    def call_tool(self, params: structs.CallToolRequestParams, ctx: MyContext, /) -> structs.InputRequiredResult:
        return structs.InputRequiredResult(result_type="input_required", request_state=ctx.user + params.name)

    async def list_tools(self, _params: structs.PaginatedRequestParams, _ctx: MyContext, /) -> structs.ListToolsResult:
        raise handlers.UnimplementedMethodError("tools/list")


class OnlyToolsOfModels:
    """Related to no class of the package, with names of its own for the parameters and a wider context."""

    async def call_tool(
        self, request: models.CallToolRequestParams, context: object
    ) -> models.CallToolResult | models.InputRequiredResult:
        return models.InputRequiredResult(result_type="input_required", request_state=f"{context} {request.name}")

    def list_tools(self, _request: models.PaginatedRequestParams, _context: object) -> models.ListToolsResult:
        raise models_handlers.UnimplementedMethodError("tools/list")


tools: handlers.ServerTools[MyContext] = OnlyTools()
tools_of_models: models_handlers.ServerTools[MyContext] = OnlyToolsOfModels()

everything: list[handlers.ServerHandler[MyContext]] = [PlainServer(), AsyncServer(), handlers.ServerStub[MyContext]()]
everything_of_models: list[models_handlers.ServerHandler[MyContext]] = [ModelServer()]
client: handlers.ClientHandler[MyContext] = Client()

tools = PlainServer()
prompts: handlers.ServerPrompts[MyContext] = AsyncServer()


async def a_runtime(handler: handlers.ServerTools[MyContext], params: structs.CallToolRequestParams) -> None:
    result = handler.call_tool(params, MyContext("me"))
    if isinstance(result, structs.CallToolResult | structs.InputRequiredResult):
        assert_type(result, structs.CallToolResult | structs.InputRequiredResult)
    else:
        assert_type(await result, structs.CallToolResult | structs.InputRequiredResult)
