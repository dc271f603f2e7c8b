"""`Server`: a decorator for each kind of request, under the names of `mcp.server.lowlevel.server`.

The functions become a handler of typedmcp, which checks and converts what they return for the client's revision.
"""

from __future__ import annotations

import base64
import inspect
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, Generic, NoReturn, TypeAlias, cast

import msgspec
from typing_extensions import TypeVar

import typedmcp
from typedmcp import ServerConfig
from typedmcp.building import is_object
from typedmcp.dialect import methods, structs
from typedmcp.errors import METHOD_NOT_FOUND, RemoteError, UsageError
from typedmcp.revisions.features import LEGACY
from typedmcp.types import ServerCapabilities, SubscriptionFilter, from_builtins
from typedmcp_mcp1 import types
from typedmcp_mcp1.server.lowlevel.helper_types import ReadResourceContents
from typedmcp_mcp1.server.lowlevel.validation import find_schema_fault
from typedmcp_mcp1.server.models import InitializationOptions
from typedmcp_mcp1.server.session import ServerSession, served_request, session_of
from typedmcp_mcp1.shared.context import RequestContext
from typedmcp_mcp1.shared.exceptions import McpError, UrlElicitationRequiredError, to_remote_error
from typedmcp_mcp1.streams import transport_of

__all__ = ["NotificationOptions", "Server", "request_ctx"]

_log = logging.getLogger("typedmcp")

LifespanResultT = TypeVar("LifespanResultT", default=Any)
RequestT = TypeVar("RequestT", default=Any)

_Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

request_ctx: ContextVar[RequestContext[ServerSession, Any, Any]] = ContextVar("request_ctx")
"""The context of the request that this task handles."""

_ERROR_CODE = 0
"""The code of an error that a function did not choose, as in mcp 1.x."""


class _Handler:
    """The functions of a server as a handler of typedmcp, each an attribute."""


class NotificationOptions:
    """The lists whose changes a server announces."""

    def __init__(
        self, prompts_changed: bool = False, resources_changed: bool = False, tools_changed: bool = False
    ) -> None:
        self.prompts_changed: bool = prompts_changed
        self.resources_changed: bool = resources_changed
        self.tools_changed: bool = tools_changed


@asynccontextmanager
async def lifespan(_server: Any) -> AsyncGenerator[dict[str, Any]]:
    """Yield an empty dict: the lifespan of a server without one."""
    yield {}


class Server(Generic[LifespanResultT, RequestT]):
    """A server whose functions are registered with decorators, one for each kind of request.

    `request_handlers` and `notification_handlers` have the functions by the classes of their messages, as in mcp 1.x.
    `revisions` are the protocol revisions to speak: by default those with a handshake, on which a function waits while
    the client answers its questions. On newer ones it is called again: see `docs/handlers.md`.
    """

    def __init__(
        self,
        name: str,
        version: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: list[types.Icon] | None = None,
        lifespan: Callable[[Any], AbstractAsyncContextManager[Any]] = lifespan,
        *,
        revisions: Iterable[str] = LEGACY,
    ) -> None:
        self.name: str = name
        self.version: str | None = version
        self.instructions: str | None = instructions
        self.website_url: str | None = website_url
        self.icons: list[types.Icon] | None = icons
        self.lifespan: Callable[[Any], AbstractAsyncContextManager[Any]] = lifespan
        self.revisions: list[str] = [*revisions]
        self.request_handlers: dict[Any, Callable[[Any], Awaitable[Any]]] = {}
        self.notification_handlers: dict[Any, Callable[[Any], Awaitable[None]]] = {}
        self._tools: dict[str, types.Tool] = {}

    @property
    def request_context(self) -> RequestContext[ServerSession, LifespanResultT, RequestT]:
        """The context of the request that is handled. Raises `LookupError` outside of one."""
        return request_ctx.get()

    # Description

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
    ) -> types.ServerCapabilities:
        """Return the capabilities that follow from the functions."""
        options = notification_options or NotificationOptions()
        served = self.request_handlers
        members: dict[str, Any] = {"experimental": experimental_capabilities or {}}
        if types.ListPromptsRequest in served:
            members["prompts"] = {"listChanged": options.prompts_changed}
        if types.ListResourcesRequest in served:
            is_subscribed = types.SubscribeRequest in served
            members["resources"] = {"subscribe": is_subscribed, "listChanged": options.resources_changed}
        if types.ListToolsRequest in served:
            members["tools"] = {"listChanged": options.tools_changed}
        if types.SetLevelRequest in served:
            members["logging"] = {}
        if types.CompleteRequest in served:
            members["completions"] = {}
        return types.ServerCapabilities.model_validate(members)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the description of the server for clients."""
        return InitializationOptions(
            server_name=self.name,
            server_version=self.version or typedmcp.__version__,
            capabilities=self.get_capabilities(notification_options, experimental_capabilities),
            instructions=self.instructions,
            website_url=self.website_url,
            icons=self.icons,
        )

    # Decorators

    def list_prompts(self) -> _Decorator:
        """Register the function that lists prompts."""
        return self._lists(types.ListPromptsRequest, types.ListPromptsResult, "prompts")

    def list_resources(self) -> _Decorator:
        """Register the function that lists resources."""
        return self._lists(types.ListResourcesRequest, types.ListResourcesResult, "resources")

    def list_resource_templates(self) -> _Decorator:
        """Register the function that lists resource templates."""
        return self._lists(types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult, "resource_templates")

    def list_tools(self) -> _Decorator:
        """Register the function that lists tools."""
        return self._lists(types.ListToolsRequest, types.ListToolsResult, "tools")

    def _lists(self, kind: Any, result: Any, member: str) -> _Decorator:
        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            takes_request = _takes_request(function)

            async def handle(request: Any) -> Any:
                made = await (function(request) if takes_request else function())
                page = made if isinstance(made, result) else result(**{member: list(made)})
                if member == "tools":
                    self._tools.update({tool.name: tool for tool in page.tools})
                return page

            self.request_handlers[kind] = handle
            return function

        return decorate

    def get_prompt(self) -> _Decorator:
        """Register the function that returns a prompt: it gets its name and its arguments."""
        return self._register(types.GetPromptRequest, lambda params: (params.name, params.arguments))

    def read_resource(self) -> _Decorator:
        """Register the function that reads a resource: it gets its URI, and returns contents, text or bytes."""

        def convert(made: Any, params: Any) -> types.ReadResourceResult:
            parts = [ReadResourceContents(made)] if isinstance(made, str | bytes) else made
            return types.ReadResourceResult(contents=[_contents(params.uri, part) for part in parts])

        return self._register(types.ReadResourceRequest, lambda params: (types.AnyUrl(params.uri),), convert)

    def set_logging_level(self) -> _Decorator:
        """Register the function that gets the level of log messages. All messages are sent then: it chooses."""
        return self._register(types.SetLevelRequest, lambda params: (params.level,), _nothing)

    def subscribe_resource(self) -> _Decorator:
        """Register the function that gets the URI of a resource to which a client subscribes."""
        return self._register(types.SubscribeRequest, lambda params: (types.AnyUrl(params.uri),), _nothing)

    def unsubscribe_resource(self) -> _Decorator:
        """Register the function that gets the URI of a resource of which a client wants to hear no more."""
        return self._register(types.UnsubscribeRequest, lambda params: (types.AnyUrl(params.uri),), _nothing)

    def completion(self) -> _Decorator:
        """Register the function that completes arguments: it gets `ref`, `argument` and `context`."""

        def convert(made: Any, _params: Any) -> types.CompleteResult:
            return types.CompleteResult(completion=made or types.Completion(values=[]))

        return self._register(
            types.CompleteRequest, lambda params: (params.ref, params.argument, params.context), convert
        )

    def call_tool(self, *, validate_input: bool = True) -> _Decorator:
        """Register the function that calls tools: it gets the name and the arguments of a call.

        It returns blocks of content, a dict of structured content, both, or a whole result. Arguments and structured
        content are checked against the schemas of the tool. An exception is a failed call with its text.
        """

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            async def handle(request: types.CallToolRequest) -> types.CallToolResult:
                name, arguments = request.params.name, request.params.arguments or {}
                try:
                    tool = await self._find_tool(name)
                    if (
                        validate_input
                        and tool
                        and (fault := find_schema_fault(arguments, tool.input_schema, "arguments"))
                    ):
                        return _failed(f"Input validation error: {fault}")
                    return _to_result(await function(name, arguments), tool)
                except UrlElicitationRequiredError:
                    raise
                except Exception as error:
                    return _failed(str(error))

            self.request_handlers[types.CallToolRequest] = handle
            return function

        return decorate

    async def _find_tool(self, name: str) -> types.Tool | None:
        if name not in self._tools and types.ListToolsRequest in self.request_handlers:
            await self.request_handlers[types.ListToolsRequest](types.ListToolsRequest())
        return self._tools.get(name)

    def progress_notification(self) -> _Decorator:
        """Register the function that gets the progress of clients: token, progress, total and message."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            async def handle(notification: Any) -> None:
                params = notification.params
                await function(params.progress_token, params.progress, params.total, params.message)

            self.notification_handlers[types.ProgressNotification] = handle
            return function

        return decorate

    def _register(
        self,
        kind: Any,
        arguments: Callable[[Any], tuple[Any, ...]],
        convert: Callable[[Any, Any], Any] = lambda made, _params: made,
    ) -> _Decorator:
        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            async def handle(request: Any) -> Any:
                return convert(await function(*arguments(request.params)), request.params)

            self.request_handlers[kind] = handle
            return function

        return decorate

    # Serving

    async def run(
        self,
        read_stream: Any,
        write_stream: Any,
        initialization_options: InitializationOptions | None = None,
        raise_exceptions: bool = False,
        stateless: bool = False,
    ) -> None:
        """Serve a pair of streams until they end. `raise_exceptions` and `stateless` change nothing here."""
        config = self.configure(initialization_options)
        if (serve := getattr(read_stream, "serve_request", None)) is not None:  # of HTTP with SSE
            await serve(config)
        else:
            await typedmcp.serve_async(config, transport_of(read_stream, write_stream))

    def configure(self, options: InitializationOptions | None = None) -> ServerConfig:
        """Return the server as typedmcp serves it, for `typedmcp.asgi`, `typedmcp.connect` and the others."""
        options = options or self.create_initialization_options()
        capabilities = from_builtins(types.to_builtins(options.capabilities), ServerCapabilities)
        config = ServerConfig(
            self._make_handler(),
            name=options.server_name,
            version=options.server_version,
            instructions=options.instructions,
            capabilities=capabilities,
            lifespan=lambda _handler: self.lifespan(self),
            revisions=self.revisions,
        )
        for kind, name in _REQUESTS.items():
            if kind in self.request_handlers:
                config.functions[name] = partial(self._answer, kind, None)
        for kind, name in _NOTIFICATIONS.items():
            config.functions[name] = partial(self._take, kind)
        return config

    def __typedmcp_config__(self) -> ServerConfig:
        """Return the server for the command `typedmcp`."""
        return self.configure()

    def __server_config__(self) -> NoReturn:
        """Raise `UsageError`: the methods of this class are not those of a handler."""
        raise UsageError("typedmcp serves a Server of mcp 1.x as server.configure(); its own run needs nothing else")

    def _make_handler(self) -> Any:
        handler: Any = _Handler()
        handler.fallback = self._fall_back
        for kind in self.request_handlers:
            record = methods.METHODS.get(_method_of(kind))
            if record is not None:
                setattr(handler, record.handler, partial(self._answer, kind, record.result))
        if types.SubscribeRequest in self.request_handlers:
            handler.authorize_subscriptions = self._subscribe
        return handler

    async def _subscribe(self, params: Any, ctx: typedmcp.Context) -> SubscriptionFilter:
        granted: SubscriptionFilter = params.notifications
        for uri in granted.resource_subscriptions or ():
            request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=types.Uri(uri)))
            await self._handle(request, ctx)
        return granted

    async def _fall_back(self, method: str, params: Any, ctx: typedmcp.Context) -> Any:
        for kind in self.request_handlers:
            if _method_of(kind) == method:
                return types.to_builtins(await self._handle(kind.model_validate(_message(ctx)), ctx))
        for kind in self.notification_handlers:
            if _method_of(kind) == method:
                return await self._take(kind, params, ctx)
        raise RemoteError(METHOD_NOT_FOUND, "Method not found")

    async def _answer(self, kind: Any, result: Any, _params: Any, ctx: typedmcp.Context) -> Any:
        made = types.to_builtins(await self._handle(kind.model_validate(_message(ctx)), ctx))
        return made if result is None else structs.from_builtins(made, result)

    async def _handle(self, request: Any, ctx: typedmcp.Context) -> Any:
        """Call the function for a request, in its context, and return what it has made."""
        served = served_request.set(ctx)
        token = request_ctx.set(context_of(ctx))
        try:
            return await self.request_handlers[type(request)](request)
        except McpError as error:
            raise to_remote_error(error) from error
        except typedmcp.Error:
            raise
        except Exception as error:
            ctx.report(f"{ctx.method} failed: {error}", error)
            raise RemoteError(_ERROR_CODE, str(error)) from error
        finally:
            request_ctx.reset(token)
            served_request.reset(served)

    async def _take(self, kind: Any, _params: Any, ctx: typedmcp.Context) -> None:
        if (function := self.notification_handlers.get(kind)) is not None:
            await function(kind.model_validate(_message(ctx)))

    @property
    def experimental(self) -> Any:
        """Raise `UsageError`: tasks are an extension of the protocol."""
        raise UsageError(
            "the tasks of mcp 1.x were experimental; typedmcp has the extension: typedmcp_extensions.tasks"
        )


_REQUESTS: dict[Any, str] = {types.SetLevelRequest: "set_level", types.UnsubscribeRequest: "unsubscribe"}
"""The requests that a server otherwise answers itself, and the names of their handlers."""
_NOTIFICATIONS: dict[Any, str] = {
    types.ProgressNotification: "progress",
    types.RootsListChangedNotification: "roots_list_changed",
}
"""The notifications that functions may take, and the names of their handlers."""


def context_of(ctx: typedmcp.Context) -> RequestContext[ServerSession, Any, Any]:
    """Return the context of a request under the names of mcp 1.x."""
    meta = types.RequestParamsMeta(ctx.meta) if ctx.meta else None
    request = _http_request(ctx) if ctx.headers else None
    close = partial(ctx.disconnect)
    return RequestContext(
        request_id=cast(Any, ctx.id),
        meta=meta,
        session=session_of(ctx),
        lifespan_context=ctx.lifespan,
        request=request,
        close_sse_stream=close,
    )


def _http_request(ctx: typedmcp.Context) -> Any:
    """Return a request of Starlette with the headers of a call."""
    from starlette.requests import Request  # only servers over HTTP load it

    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in ctx.headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    return Request(scope)


@cache
def _method_of(kind: Any) -> str:
    return str(kind.model_fields["method"].default)


def _message(ctx: typedmcp.Context) -> dict[str, Any]:
    """Return the message of a request as the client wrote it."""
    message: dict[str, Any] = msgspec.json.decode(ctx.raw)
    return {name: message[name] for name in ("method", "params") if name in message}


def _takes_request(function: Callable[..., Any]) -> bool:
    """Return whether a function that lists takes the request."""
    required = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    ]
    return bool(required)


def _nothing(_made: Any, _params: Any) -> types.EmptyResult:
    return types.EmptyResult()


def _contents(uri: Any, part: Any) -> types.TextResourceContents | types.BlobResourceContents:
    meta = getattr(part, "meta", None)
    members: dict[str, Any] = {"uri": uri, "_meta": meta}
    if isinstance(part.content, str):
        return types.TextResourceContents(**members, text=part.content, mime_type=part.mime_type or "text/plain")
    blob = base64.b64encode(part.content).decode()
    return types.BlobResourceContents(**members, blob=blob, mime_type=part.mime_type or "application/octet-stream")


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _is_pair(made: Any) -> bool:
    return isinstance(made, tuple) and len(made) == 2  # pyright: ignore[reportUnknownArgumentType]


def _is_iterable(made: Any) -> bool:
    return isinstance(made, Iterable)


def _to_result(made: Any, tool: types.Tool | None) -> types.CallToolResult:
    """Return the result of what a function for calls has returned, checked against the tool's output schema."""
    if isinstance(made, types.CallToolResult):
        return made
    structured: dict[str, Any] | None = None
    content: Iterable[Any]
    if _is_pair(made):
        content, structured = made
    elif is_object(made):
        structured, content = made, [types.TextContent(text=json.dumps(made, indent=2))]
    elif _is_iterable(made):
        content = made
    else:
        return _failed(f"Unexpected return type from tool: {type(made).__name__}")
    if tool is not None and tool.output_schema is not None:
        if structured is None:
            return _failed("Output validation error: outputSchema defined but no structured output returned")
        if fault := find_schema_fault(structured, tool.output_schema, "structuredContent"):
            return _failed(f"Output validation error: {fault}")
    return types.CallToolResult(content=[*content], structured_content=structured)
