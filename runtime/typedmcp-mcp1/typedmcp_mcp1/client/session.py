"""`ClientSession`, under the names of `mcp.client.session`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import msgspec

import typedmcp
from typedmcp.errors import UsageError
from typedmcp.revisions.features import LEGACY
from typedmcp.types import to_builtins
from typedmcp_mcp1 import types
from typedmcp_mcp1.client.targets import HttpTarget
from typedmcp_mcp1.shared.context import RequestContext
from typedmcp_mcp1.shared.exceptions import McpError, to_mcp_error, to_remote_error
from typedmcp_mcp1.shared.session import ProgressFnT
from typedmcp_mcp1.streams import transport_of

__all__ = ["ClientSession", "ElicitationFnT", "ListRootsFnT", "LoggingFnT", "MessageHandlerFnT", "SamplingFnT"]

R = TypeVar("R")

_NO_OUTPUT = "Tool {} has an output schema but did not return structured content"


class SamplingFnT(Protocol):
    """Asks the model for a message."""

    async def __call__(
        self, context: RequestContext[ClientSession, Any], params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData: ...


class ElicitationFnT(Protocol):
    """Asks the user to fill in a form, or to open a URL."""

    async def __call__(
        self, context: RequestContext[ClientSession, Any], params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData: ...


class ListRootsFnT(Protocol):
    """Lists the folders of the client."""

    async def __call__(
        self, context: RequestContext[ClientSession, Any]
    ) -> types.ListRootsResult | types.ErrorData: ...


class LoggingFnT(Protocol):
    """Takes a log message."""

    async def __call__(self, params: types.LoggingMessageNotificationParams) -> None: ...


class MessageHandlerFnT(Protocol):
    """Takes each notification of the server."""

    async def __call__(self, message: Any) -> None: ...


class ClientSession:
    """A client: `async with ClientSession(read, write) as session: await session.initialize()`.

    The callbacks, their parameters and the results are those of mcp 1.x. `client` is the `typedmcp.Client` beneath.
    """

    def __init__(
        self,
        read_stream: Any,
        write_stream: Any,
        read_timeout_seconds: timedelta | None = None,
        sampling_callback: SamplingFnT | None = None,
        elicitation_callback: ElicitationFnT | None = None,
        list_roots_callback: ListRootsFnT | None = None,
        logging_callback: LoggingFnT | None = None,
        message_handler: MessageHandlerFnT | None = None,
        client_info: types.Implementation | None = None,
        *,
        sampling_capabilities: types.SamplingCapability | None = None,
        experimental_task_handlers: Any = None,
    ) -> None:
        if experimental_task_handlers is not None:
            raise UsageError("experimental_task_handlers: use connect(…, extensions=[typedmcp_extensions.tasks.…])")
        target = read_stream if isinstance(read_stream, HttpTarget) else None
        self._target = target
        self._timeout = read_timeout_seconds
        self._message_handler = message_handler
        self._result: types.InitializeResult | None = None
        self._schemas: dict[str, Any] = {}
        self._messages: asyncio.Queue[bytes] = asyncio.Queue()
        self._handling: asyncio.Task[None] | None = None
        info = client_info or types.Implementation(name="mcp", version="0.1.0")
        options: dict[str, Any] = {
            "name": info.name,
            "version": info.version,
            "revisions": LEGACY,
            "timeout": None if read_timeout_seconds is None else read_timeout_seconds.total_seconds(),
            "max_time": None,
            "log_level": None,
            "check_output": False,
            "check_capabilities": False,
            "sample": _callback(self, sampling_callback, types.CreateMessageRequestParams),
            "elicit": _callback(self, elicitation_callback, types.ElicitRequestFormParams),
            "elicit_url": _callback(self, elicitation_callback, types.ElicitRequestURLParams),
            "roots": None if list_roots_callback is None else _roots_of(self, list_roots_callback),
            "on_log": None if logging_callback is None else _log_to(logging_callback),
            "on_frame": None if message_handler is None else self._on_frame,
        }
        if sampling_capabilities is not None:
            options["capabilities"] = {"sampling": types.to_builtins(sampling_capabilities)}
        if target is not None:
            options |= target.options
        reached: Any = target.url if target is not None else transport_of(read_stream, write_stream)
        self.client: typedmcp.Client = typedmcp.connect(reached, **options)

    async def __aenter__(self) -> Self:
        if self._message_handler is not None:
            self._handling = asyncio.create_task(self._handle_messages(self._message_handler))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.client.close()
        if self._handling is not None:
            self._handling.cancel()

    # Messages

    def _on_frame(self, sender: str, frame: bytes) -> None:
        if sender == "server":
            self._messages.put_nowait(frame)

    async def _handle_messages(self, handler: MessageHandlerFnT) -> None:
        while True:
            frame = await self._messages.get()
            try:
                members = msgspec.json.decode(frame)
                if "method" not in members or "id" in members:
                    continue
                message: Any = types.from_builtins(members, types.ServerNotification)
            except ValueError as fault:
                message = fault
            await handler(message)

    # The handshake

    async def initialize(self) -> types.InitializeResult:
        """Connect, and return what the server says of itself."""
        try:
            await self.client.open()
        except typedmcp.Error as error:
            raise to_mcp_error(error) from error
        server = self.client.server
        members = {
            "protocolVersion": server.revision,
            "capabilities": to_builtins(server.capabilities),
            "serverInfo": to_builtins(server.info) if server.info is not None else {"name": "", "version": ""},
        }
        if server.instructions is not None:
            members["instructions"] = server.instructions
        self._result = types.InitializeResult.model_validate(members)
        return self._result

    def get_server_capabilities(self) -> types.ServerCapabilities | None:
        """Return the capabilities of the server; None before `initialize`."""
        return None if self._result is None else self._result.capabilities

    # Calls

    async def send_request(
        self,
        request: Any,
        result_type: type[R],
        request_read_timeout_seconds: timedelta | None = None,
        metadata: Any = None,
        progress_callback: ProgressFnT | None = None,
    ) -> R:
        """Send a request, and return its result. Raises `McpError` for an error, a timeout or a lost connection."""
        message = types.to_builtins(request)
        params: dict[str, Any] = dict(message.get("params") or {})
        options: dict[str, Any] = {"meta": params.pop("_meta", None)}
        if request_read_timeout_seconds is not None:
            options["timeout"] = request_read_timeout_seconds.total_seconds()
        if progress_callback is not None:
            options["on_progress"] = partial(_pass_progress, progress_callback)
        try:
            raw = await self.client.send_raw(message["method"], params, **options)
        except typedmcp.Error as error:
            raise to_mcp_error(error) from error
        return types.decode(bytes(raw), result_type)

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        """Send a notification that the protocol does not have; typedmcp sends those of the protocol itself."""
        message = types.to_builtins(notification)
        if message["method"] == "notifications/roots/list_changed":
            await self.client.notify_roots_changed()
        else:
            await self.client.notify(message["method"], message.get("params"))

    async def send_ping(self) -> types.EmptyResult:
        """Check that the server answers."""
        return await self.send_request(types.PingRequest(), types.EmptyResult)

    async def send_progress_notification(
        self, progress_token: str | int, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Send the progress of a request of the server."""
        params = types.ProgressNotificationParams(
            progress_token=progress_token, progress=progress, total=total, message=message
        )
        await self.send_notification(types.ProgressNotification(params=params))

    async def send_roots_list_changed(self) -> None:
        """Tell the server that the folders have changed."""
        await self.client.notify_roots_changed()

    async def set_logging_level(self, level: types.LoggingLevel) -> types.EmptyResult:
        """Set the lowest level of log messages."""
        request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
        return await self.send_request(request, types.EmptyResult)

    async def _list(self, kind: Any, result: type[R], cursor: str | None, params: Any) -> R:
        if cursor is not None and params is not None:
            raise ValueError("Cannot specify both cursor and params")
        page = types.PaginatedRequestParams(cursor=cursor) if cursor is not None else params
        return await self.send_request(kind(params=page), result)

    async def list_tools(
        self, cursor: str | None = None, *, params: types.PaginatedRequestParams | None = None
    ) -> types.ListToolsResult:
        """List the tools."""
        page = await self._list(types.ListToolsRequest, types.ListToolsResult, cursor, params)
        self._schemas.update({tool.name: tool.output_schema for tool in page.tools})
        return page

    async def list_prompts(
        self, cursor: str | None = None, *, params: types.PaginatedRequestParams | None = None
    ) -> types.ListPromptsResult:
        """List the prompts."""
        return await self._list(types.ListPromptsRequest, types.ListPromptsResult, cursor, params)

    async def list_resources(
        self, cursor: str | None = None, *, params: types.PaginatedRequestParams | None = None
    ) -> types.ListResourcesResult:
        """List the resources."""
        return await self._list(types.ListResourcesRequest, types.ListResourcesResult, cursor, params)

    async def list_resource_templates(
        self, cursor: str | None = None, *, params: types.PaginatedRequestParams | None = None
    ) -> types.ListResourceTemplatesResult:
        """List the resource templates."""
        kind, result = types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult
        return await self._list(kind, result, cursor, params)

    async def read_resource(self, uri: types.AnyUrl | str) -> types.ReadResourceResult:
        """Read a resource."""
        request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=types.Uri(uri)))
        return await self.send_request(request, types.ReadResourceResult)

    async def subscribe_resource(self, uri: types.AnyUrl | str) -> types.EmptyResult:
        """Ask for the changes of a resource, which the `message_handler` gets."""
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=types.Uri(uri)))
        return await self.send_request(request, types.EmptyResult)

    async def unsubscribe_resource(self, uri: types.AnyUrl | str) -> types.EmptyResult:
        """Ask for the changes of a resource no more."""
        request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=types.Uri(uri)))
        return await self.send_request(request, types.EmptyResult)

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> types.GetPromptResult:
        """Get a prompt with its messages."""
        params = types.GetPromptRequestParams(name=name, arguments=arguments)
        return await self.send_request(types.GetPromptRequest(params=params), types.GetPromptResult)

    async def complete(
        self,
        ref: types.ResourceTemplateReference | types.PromptReference,
        argument: dict[str, str],
        context_arguments: dict[str, str] | None = None,
    ) -> types.CompleteResult:
        """Get completions for an argument."""
        context = None if context_arguments is None else types.CompletionContext(arguments=context_arguments)
        params = types.CompleteRequestParams(
            ref=ref, argument=types.CompletionArgument.model_validate(argument), context=context
        )
        return await self.send_request(types.CompleteRequest(params=params), types.CompleteResult)

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: timedelta | None = None,
        progress_callback: ProgressFnT | None = None,
        *,
        meta: dict[str, Any] | None = None,
    ) -> types.CallToolResult:
        """Call a tool. Raises `RuntimeError` for structured content that does not fit the tool's output schema."""
        members: dict[str, Any] = {"name": name, "arguments": arguments, "_meta": meta}
        params = types.CallToolRequestParams.model_validate(members)
        request = types.CallToolRequest(params=params)
        result = await self.send_request(
            request, types.CallToolResult, read_timeout_seconds, progress_callback=progress_callback
        )
        if not result.is_error:
            await self._check_output(name, result)
        return result

    async def _check_output(self, name: str, result: types.CallToolResult) -> None:
        from typedmcp_mcp1.server.lowlevel.validation import find_schema_fault  # few clients call such tools

        if name not in self._schemas:
            with suppress(McpError):  # a server may call tools that it does not list
                await self.list_tools()
        schema = self._schemas.get(name)
        if schema is None:
            return
        if result.structured_content is None:
            raise RuntimeError(_NO_OUTPUT.format(name))
        if fault := find_schema_fault(result.structured_content, schema, "structuredContent"):
            raise RuntimeError(f"Invalid structured content returned by tool {name}: {fault}")


def _pass_progress(callback: ProgressFnT, step: Any) -> Awaitable[None]:
    return callback(step.progress, step.total, step.message)


def _context_of(session: ClientSession) -> RequestContext[ClientSession, Any]:
    return RequestContext(request_id=0, meta=None, session=session, lifespan_context=None)


def _callback(session: ClientSession, callback: Any, kind: Any) -> Callable[[Any], Awaitable[Any]] | None:
    """Return the callback of typedmcp for one of mcp 1.x."""
    if callback is None:
        return None

    async def answer(params: Any) -> Any:
        made = await callback(_context_of(session), kind.model_validate(to_builtins(params)))
        if isinstance(made, types.ErrorData):
            raise to_remote_error(made)
        result = typedmcp.types.CreateMessageResult if isinstance(made, types.CreateMessageResult) else None
        return typedmcp.types.from_builtins(types.to_builtins(made), result or typedmcp.types.ElicitResult)

    return answer


def _roots_of(session: ClientSession, callback: ListRootsFnT) -> Callable[[], Awaitable[Any]]:
    async def answer() -> Any:
        made = await callback(_context_of(session))
        if isinstance(made, types.ErrorData):
            raise to_remote_error(made)
        return [typedmcp.types.from_builtins(types.to_builtins(each), typedmcp.types.Root) for each in made.roots]

    return answer


def _log_to(callback: LoggingFnT) -> Callable[[Any], Awaitable[None]]:
    return lambda params: callback(types.LoggingMessageNotificationParams.model_validate(to_builtins(params)))
