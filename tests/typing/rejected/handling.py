"""Handlers whose signatures are not those of the protocol."""

from __future__ import annotations

from mcpspec.v2026_07_28 import handlers, models, models_handlers, structs


class MyContext:
    user: str = "me"


class WrongParameters(handlers.ServerStub[MyContext]):
    def call_tool(self, params: structs.PaginatedRequestParams, ctx: MyContext, /) -> structs.CallToolResult:  # E
        raise NotImplementedError(params, ctx)


class WrongResult(handlers.ServerStub[MyContext]):
    def call_tool(self, params: structs.CallToolRequestParams, ctx: MyContext, /) -> structs.ListToolsResult:  # E
        raise NotImplementedError(params, ctx)


class WrongAsyncResult(handlers.ServerStub[MyContext]):
    async def call_tool(self, params: structs.CallToolRequestParams, ctx: MyContext, /) -> str:  # E
        raise NotImplementedError(params, ctx)


class WrongContext(handlers.ServerStub[MyContext]):
    def call_tool(self, params: structs.CallToolRequestParams, ctx: int, /) -> structs.CallToolResult:  # E
        raise NotImplementedError(params, ctx)


class WrongBackend(models_handlers.ServerStub[MyContext]):
    def call_tool(self, params: structs.CallToolRequestParams, ctx: MyContext, /) -> models.CallToolResult:  # E
        raise NotImplementedError(params, ctx)


class NoContext(models_handlers.ServerStub[MyContext]):
    def call_tool(self, params: models.CallToolRequestParams, /) -> models.CallToolResult:  # E
        raise NotImplementedError(params)


class ResultForANotification(handlers.ClientStub[MyContext]):
    def progress(self, params: structs.ProgressNotificationParams, ctx: MyContext, /) -> str:  # E
        raise NotImplementedError(params, ctx)


class NoListTools:
    def call_tool(self, params: structs.CallToolRequestParams, ctx: MyContext, /) -> structs.CallToolResult:
        raise NotImplementedError(params, ctx)


class ListToolsOfModels(NoListTools):
    def list_tools(self, params: models.PaginatedRequestParams, ctx: MyContext, /) -> models.ListToolsResult:
        raise NotImplementedError(params, ctx)


class AllTools(NoListTools):
    def list_tools(self, params: structs.PaginatedRequestParams, ctx: MyContext, /) -> structs.ListToolsResult:
        raise NotImplementedError(params, ctx)


incomplete: handlers.ServerTools[MyContext] = NoListTools()  # E
of_another_backend: handlers.ServerTools[MyContext] = ListToolsOfModels()  # E
complete: handlers.ServerTools[MyContext] = AllTools()
complete_for_another_context: handlers.ServerTools[str] = AllTools()  # E
not_everything: handlers.ServerHandler[MyContext] = AllTools()  # E
the_other_side: handlers.ClientHandler[MyContext] = handlers.ServerStub[MyContext]()  # E
instance_of_a_protocol = handlers.ServerTools[MyContext]()  # E
