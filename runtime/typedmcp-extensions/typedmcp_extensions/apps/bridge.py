"""The bridge between a page and its host: it answers the page, and passes on what the user agrees to.

The host carries messages between the bridge and the frame of the page, with `postMessage` at the side of the browser.
Everything from the page is hostile: it is bounded, checked, and passed on after consent only.
https://modelcontextprotocol.io/extensions/apps/overview
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, cast
from urllib.parse import urlsplit

import msgspec

from mcpspec.ext.apps import methods
from mcpspec.ext.apps import structs as s
from typedmcp import Diagnostic, DiagnosticKind, types
from typedmcp.building import (
    MaybeAwaitable,
    format_value,
    from_builtins,
    is_awaitable,
    log_failure,
    to_builtins,
    visible,
)
from typedmcp.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    DecodeError,
    Error,
    MethodNotFoundError,
    RemoteError,
    UsageError,
    to_invalid_params,
)
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.protocol.framing import Batch, Frame, InvalidMessage, RequestId, classify, find_request_id, limit_depth
from typedmcp.protocol.pending import PendingRequests
from typedmcp_extensions.apps import messages as m
from typedmcp_extensions.apps.host import HostedPage
from typedmcp_extensions.apps.metadata import is_for_page

__all__ = ["REFUSED", "BridgeClient", "BridgeOptions", "Consent", "PageAction", "PageBridge", "SendToPage"]

T = TypeVar("T")

REFUSED: Final = -32000
"""The code of an error for what the host does not let a page do."""

_HEAD_BYTES: Final = 4096
_MAX_URL: Final = 2048
_MAX_PIXELS: Final = 1 << 20
_LINK_SCHEMES: Final = ("http", "https")
_INITIALIZE: Final = "ui/initialize"
_REPORT_SECONDS: Final = 10.0
"""Seconds for which the diagnostics of a page are counted."""
_TOO_MANY_REPORTS: Final = "further diagnostics are dropped for ten seconds (page_diagnostics)"


class BridgeClient(Protocol):
    """The part of a client that a page can use, such as a `Client` of the page's server."""

    def tools(self) -> AsyncIterator[types.Tool]:
        """Iterate over all tools."""
        ...

    async def call_tool(self, name: str, arguments: Any = None, /) -> types.CallToolResult:
        """Call a tool."""
        ...

    async def read_resource(self, uri: str, /) -> types.ReadResourceResult:
        """Read a resource."""
        ...


class PageAction(NamedTuple):
    """An action that a page asks for, and that needs consent."""

    page: HostedPage
    method: str
    """`tools/call`, `resources/read`, `ui/open-link`, `ui/message` or `ui/update-model-context`."""
    params: Mapping[str, Any]
    """The parameters as the page sent them. Text in them is the page's: escape it before it is shown."""
    tool: types.Tool | None = None
    """The tool to call, with its annotations."""


Consent: TypeAlias = Callable[[PageAction], MaybeAwaitable[bool]]
"""Returns whether the user, or a policy of the host, agrees to an action."""

SendToPage: TypeAlias = Callable[[bytes], MaybeAwaitable[object]]
"""Carries one message, as JSON, to the page."""


class BridgeOptions(TypedDict, total=False):
    """The options of `PageBridge`. Without a callback the page is told that the host lacks the feature."""

    tool: types.Tool | None
    """The tool that the page is shown for."""
    context: m.HostContext
    """The surroundings of the page at the beginning."""
    open_link: Callable[[str], MaybeAwaitable[object]]
    """Opens a URL, whose scheme is http or https, in a browser."""
    add_message: Callable[[list[Any]], MaybeAwaitable[object]]
    """Adds a message of the user, blocks of content, to the conversation."""
    set_model_context: Callable[[m.ModelContextParams], MaybeAwaitable[object]]
    """Keeps what the model is to know in its next turn, in place of what it was told before."""
    set_display_mode: Callable[[m.DisplayMode], MaybeAwaitable[m.DisplayMode]]
    """Shows the page in another way, and returns the way in which it is shown then."""
    on_size: Callable[[m.SizeParams], MaybeAwaitable[object]]
    """Gets the size of the page, which is at most that of its container."""
    on_log: Callable[[types.LoggingMessageNotificationParams], MaybeAwaitable[object]]
    """Gets messages for a log. They hold text of the page."""
    on_initialized: Callable[[types.Implementation], MaybeAwaitable[object]]
    """Is called when the page is ready, with its name and version."""
    on_diagnostic: Callable[[Diagnostic], object]
    """Gets what a page did wrong; by default it is logged."""
    name: str
    """The name of the host, for the page; by default `typedmcp`."""
    version: str
    """The version of the host."""
    limits: Limits


class PageBridge:
    """Answers one page, and passes on what it may do. Use it with `async with`, or call `close`.

    `client` is a client of the server that the page comes from: a page reaches no other server. `send` carries messages
    to the page, and `receive` takes those that come from it. `consent` is asked before every action: calls of tools,
    which must be visible to pages, reads of resources, links, messages, and context for the model.

    ```python
    async with PageBridge(client, page, send, consent=ask_user, tool=tool) as bridge:
        await bridge.send_tool_input({"city": "Bergen"})
        await bridge.send_tool_result(await client.call_tool("rain", {"city": "Bergen"}))
        async for message in messages_of_the_frame:
            await bridge.receive(message)
    ```
    """

    def __init__(
        self,
        client: BridgeClient,
        page: HostedPage,
        send: SendToPage,
        *,
        consent: Consent,
        **options: Unpack[BridgeOptions],
    ) -> None:
        self.page: HostedPage = page
        self.context: m.HostContext = from_builtins(to_builtins(options.get("context", {})), m.HostContext)
        """The surroundings of the page, as it knows them."""
        if (tool := options.get("tool")) is not None:
            self.context.tool_info = s.McpUiHostContextToolInfo(tool=tool)
        self._client, self._send, self._consent, self._options = client, send, consent, options
        self._limits = options.get("limits", DEFAULT_LIMITS)
        self._pending = PendingRequests()
        self._answering: dict[RequestId, asyncio.Task[None]] = {}
        """The tasks that answer requests of the page, by its id. A cancelled one is removed."""
        self._capabilities: s.McpUiAppCapabilities | None = None
        self._info: types.Implementation | None = None
        self._is_initialized = False
        self._reports, self._reports_end = 0, 0.0
        self._is_closing = self._is_closed = False
        self._queue: list[bytes] = []
        self._has_input = self._has_outcome = False
        self._tools: dict[str, types.Tool] | None = None
        self._requests: dict[str, tuple[type[Any], Callable[[Any, Mapping[str, Any]], Awaitable[Any]]]] = {
            _INITIALIZE: (s.McpUiInitializeRequestParams, self._initialize),
            "tools/call": (m.PageCallParams, self._call_tool),
            "resources/read": (m.PageReadParams, self._read_resource),
            "ui/open-link": (s.McpUiOpenLinkRequestParams, self._open_link),
            "ui/message": (s.McpUiMessageRequestParams, self._add_message),
            "ui/update-model-context": (m.ModelContextParams, self._set_model_context),
            "ui/request-display-mode": (s.McpUiRequestDisplayModeRequestParams, self._request_display_mode),
        }
        self._notifications: dict[str, Callable[[Mapping[str, Any]], Awaitable[object]]] = {
            "ui/notifications/initialized": self._on_initialized,
            "ui/notifications/size-changed": self._on_size,
            "notifications/message": self._on_log,
            "notifications/cancelled": self._on_cancelled,
        }

    async def __aenter__(self) -> PageBridge:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()

    # To the page

    async def send_tool_input(self, arguments: Mapping[str, Any]) -> None:
        """Send the arguments of the call that the page is shown for. Raises `UsageError` for a second time."""
        if self._has_input:
            raise UsageError("the page has got the arguments of its tool already")
        self._has_input = True
        await self._notify("ui/notifications/tool-input", {"arguments": dict(arguments)})

    async def send_tool_input_partial(self, arguments: Mapping[str, Any]) -> None:
        """Send arguments while the model still writes them. Raises `UsageError` after `send_tool_input`."""
        if self._has_input:
            raise UsageError("the page has got the complete arguments of its tool already")
        await self._notify("ui/notifications/tool-input-partial", {"arguments": dict(arguments)})

    async def send_tool_result(self, result: types.CallToolResult) -> None:
        """Send the result of the call. Raises `UsageError` before `send_tool_input`, and for a second outcome."""
        await self._send_outcome("ui/notifications/tool-result", to_builtins(result))

    async def send_tool_cancelled(self, reason: str = "") -> None:
        """Notify the page that the call was cancelled, in place of a result."""
        await self._send_outcome("ui/notifications/tool-cancelled", {"reason": reason})

    async def _send_outcome(self, method: str, params: Any) -> None:
        if not self._has_input or self._has_outcome:
            reason = "the call has an outcome already" if self._has_outcome else "first send the arguments of the call"
            raise UsageError(f"{method}: {reason}")
        self._has_outcome = True
        await self._notify(method, params)

    async def update_context(self, changes: m.HostContext) -> None:
        """Change the surroundings of the page, such as the theme, and notify it. Absent members stay as they are."""
        wire = to_builtins(changes)
        self.context.update(from_builtins(wire, m.HostContext))
        if self._capabilities is not None:  # otherwise the page gets it in the result of `ui/initialize`
            await self._notify("ui/notifications/host-context-changed", wire)

    async def tools_changed(self) -> None:
        """Forget the list of tools after it has changed at the server, and notify the page."""
        self._tools = None
        await self._notify("notifications/tools/list_changed", {})

    async def close(self, reason: str = "", *, seconds: float = 2.0) -> None:
        """Ask the page to save what it has to save, wait for its answer for some seconds, and end its calls.

        Remove the frame of the page afterwards. May be called more than once.
        """
        if self._is_closing:
            return
        self._is_closing = True
        if self._is_initialized and seconds > 0:
            await self._tear_down(reason, seconds)  # meanwhile the page may still call tools
        self._is_closed = True
        self._pending.close()
        tasks = [*self._answering.values()]
        self._answering.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _tear_down(self, reason: str, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[None] = loop.create_future()
        call = self._pending.add_call("ui/resource-teardown", answered, loop.time())
        try:
            async with asyncio.timeout(seconds):
                await self._write({"id": call.id, "method": call.method, "params": {"reason": reason}})
                await answered
        except TimeoutError:
            self._report(DiagnosticKind.UNEXPECTED_MESSAGE, f"no response within {seconds:g} s", call.method)
        except Exception as error:  # the frame may be gone already
            self._report(DiagnosticKind.CONNECTION_ERROR, f"the page cannot be reached: {error}", call.method)

    async def _notify(self, method: str, params: Any) -> None:
        """Send a notification, or keep it until the page is initialized."""
        if self._is_closed:
            raise UsageError(f"{method}: the bridge is closed")
        if self._is_initialized:
            await self._write({"method": method, "params": params})
        else:
            self._queue.append(_encode({"method": method, "params": params}))

    async def _write(self, message: dict[str, Any]) -> None:
        await _resolve(self._send(_encode(message)))

    # From the page

    async def receive(self, message: bytes | str) -> None:
        """Take one message of the page, as JSON. Requests are answered in tasks of their own.

        Take messages from the window of the page's frame only, as `host.js` does.
        """
        data = message.encode(errors="surrogatepass") if isinstance(message, str) else message
        if len(data) > self._limits.page_message_bytes:
            reason = f"the message has more than {self._limits.page_message_bytes} bytes (page_message_bytes)"
            await self._reject(InvalidMessage(INVALID_REQUEST, reason, find_request_id(data[:_HEAD_BYTES])))
            return
        found = classify(limit_depth(data, self._limits.message_depth))
        if isinstance(found, Batch):
            found = InvalidMessage(INVALID_REQUEST, "expected one message, got a list")
        if self._is_closed or found is None:
            return
        if isinstance(found, InvalidMessage):
            await self._reject(found)
        else:
            await self._dispatch(found)

    async def _reject(self, invalid: InvalidMessage) -> None:
        self._report(DiagnosticKind.MALFORMED, f"an invalid message: {invalid.reason}", id=invalid.id)
        if invalid.is_answerable and invalid.id is not None:
            await self._write_error(invalid.id, RemoteError(invalid.code, invalid.reason))

    async def _dispatch(self, frame: Frame) -> None:
        if frame.method is None:
            self._on_response(frame)
        elif frame.id is None:
            await self._handle_notification(frame.method, frame.value.get("params", {}))
        elif len(self._answering) >= self._limits.page_requests_in_flight:
            text = f"the page has {self._limits.page_requests_in_flight} open requests (page_requests_in_flight)"
            self._report(DiagnosticKind.LIMIT_REACHED, text, frame.method, frame.id)
            await self._write_error(frame.id, RemoteError(REFUSED, text))
        elif frame.id in self._answering:
            text = f"the id {format_value(frame.id)} is that of an open request"
            self._report(DiagnosticKind.DUPLICATE_ID, text, frame.method, frame.id)
        else:
            task = asyncio.create_task(self._answer(frame.method, frame.id, frame.value))
            self._answering[frame.id] = task
            if frame.method == _INITIALIZE:  # the next message may build on it
                await asyncio.wait([task])

    def _on_response(self, frame: Frame) -> None:
        call, problem = self._pending.resolve(frame.id)
        if call is None:
            kind = problem or DiagnosticKind.UNEXPECTED_RESPONSE
            self._report(kind, "a response that belongs to no request", id=frame.id)
        elif not call.owner.done():
            call.owner.set_result(None)

    async def _answer(self, method: str, id: RequestId, value: Mapping[str, Any]) -> None:
        """Handle a request, and send its response unless it was cancelled."""
        try:
            response: dict[str, Any] = {"id": id, "result": await self._handle(method, value.get("params", {}))}
        except RemoteError as error:
            response = _error_response(id, error)
        except Error as error:  # such as a lost connection, or a server that broke the protocol
            self._report(DiagnosticKind.CONNECTION_ERROR, f"{method} failed: {error}", method, id, error)
            response = _error_response(id, RemoteError(REFUSED, f"{method} failed"))
        except Exception as error:
            self._report(DiagnosticKind.INTERNAL_ERROR, f"{method} failed: {error}", method, id, error)
            response = _error_response(id, RemoteError(INTERNAL_ERROR, "internal error"))
        if self._answering.pop(id, None) is None:
            return
        try:
            await self._write(response)
        except Exception as error:
            self._report(DiagnosticKind.CONNECTION_ERROR, "a response could not be sent", method, id, error)

    async def _handle(self, method: str, params: dict[str, Any]) -> Any:
        if method == "ping":
            return {}
        if method not in self._requests:
            raise MethodNotFoundError(visible(method, 100))
        if (self._capabilities is None) is not (method == _INITIALIZE):
            raise RemoteError(INVALID_REQUEST, f"{_INITIALIZE} comes first, and once")
        kind, handler = self._requests[method]
        content = params.get("content")
        if method == "ui/message" and isinstance(content, dict):  # the form of the specification's text
            params = {**params, "content": [content]}
        try:
            decoded = from_builtins(params, kind)
        except DecodeError as error:
            raise to_invalid_params(error) from None
        return await handler(decoded, params)

    async def _handle_notification(self, method: str, params: Mapping[str, Any]) -> None:
        handler = self._notifications.get(method)
        if handler is None:
            self._report(DiagnosticKind.UNEXPECTED_MESSAGE, f"an unknown notification: {method}", method)
            return
        try:
            await handler(params)
        except DecodeError as error:
            self._report(DiagnosticKind.REJECTED_NOTIFICATION, f"{method}: {error}", method)
        except Exception as error:
            self._report(DiagnosticKind.INTERNAL_ERROR, f"{method} failed: {error}", method, error=error)

    # Requests

    async def _initialize(self, params: s.McpUiInitializeRequestParams, _: object) -> dict[str, Any]:
        self._capabilities, self._info = params.app_capabilities, params.app_info
        options = self._options
        approved = s.McpUiHostCapabilitiesSandbox(csp=self.page.policy.approved, permissions=self.page.permissions)
        result = s.McpUiInitializeResult(
            protocol_version=methods.EXTENSION_VERSION,
            host_info=types.Implementation(name=options.get("name", "typedmcp"), version=options.get("version", "0")),
            host_capabilities=m.host_capabilities(
                approved,
                has_links="open_link" in options,
                has_messages="add_message" in options,
                has_context="set_model_context" in options,
                has_log="on_log" in options,
            ),
            host_context=self.context,
        )
        return cast("dict[str, Any]", to_builtins(result))

    async def _call_tool(self, params: m.PageCallParams, raw: Mapping[str, Any]) -> Any:
        tool = await self._find_tool(params.name)
        if tool is None or not is_for_page(tool):
            raise RemoteError(REFUSED, f"pages of this server have no tool {visible(params.name, 100)!r}")
        await self._require_consent("tools/call", raw, tool)
        return to_builtins(await self._client.call_tool(params.name, params.arguments))

    async def _find_tool(self, name: str) -> types.Tool | None:
        """Return a tool of the page's server. The list is fetched once, until the host says that it has changed."""
        if self._tools is None:
            self._tools = {tool.name: tool async for tool in self._client.tools()}
        return self._tools.get(name)

    async def _read_resource(self, params: m.PageReadParams, raw: Mapping[str, Any]) -> Any:
        await self._require_consent("resources/read", raw)
        return to_builtins(await self._client.read_resource(params.uri))

    async def _open_link(self, params: s.McpUiOpenLinkRequestParams, raw: Mapping[str, Any]) -> dict[str, Any]:
        open_link = self._option("open_link", "ui/open-link")
        if not _is_link(params.url):
            raise RemoteError(REFUSED, f"invalid URL: expected http or https, and at most {_MAX_URL} characters")
        await self._require_consent("ui/open-link", raw)
        await _resolve(open_link(params.url))
        return {}

    async def _add_message(self, params: s.McpUiMessageRequestParams, raw: Mapping[str, Any]) -> dict[str, Any]:
        add_message = self._option("add_message", "ui/message")
        await self._require_consent("ui/message", raw)
        await _resolve(add_message(params.content))
        return {}

    async def _set_model_context(self, params: m.ModelContextParams, raw: Mapping[str, Any]) -> dict[str, Any]:
        set_model_context = self._option("set_model_context", "ui/update-model-context")
        await self._require_consent("ui/update-model-context", raw)
        await _resolve(set_model_context(params))
        return {}

    async def _request_display_mode(self, params: s.McpUiRequestDisplayModeRequestParams, _: object) -> dict[str, Any]:
        """Change the way in which the page is shown, if page and host both know it, and return the way it is then."""
        declared = None if self._capabilities is None else self._capabilities.available_display_modes
        is_known = params.mode in (self.context.available_display_modes or ()) and (
            declared is None or params.mode in declared
        )
        set_display_mode = self._options.get("set_display_mode")
        if is_known and set_display_mode is not None:
            self.context.display_mode = await _resolve(set_display_mode(params.mode))
        return {"mode": self.context.display_mode or "inline"}

    def _option(self, name: str, method: str) -> Callable[..., Any]:
        function: Any = self._options.get(name)
        if function is None:
            raise MethodNotFoundError(method)
        return cast("Callable[..., Any]", function)

    async def _require_consent(self, method: str, params: Mapping[str, Any], tool: types.Tool | None = None) -> None:
        """Raise the error for an action that the user, or the host, does not agree to."""
        if await _resolve(self._consent(PageAction(self.page, method, params, tool))) is not True:
            raise RemoteError(REFUSED, f"{method} was denied")

    # Notifications

    async def _on_initialized(self, _: object) -> None:
        if self._capabilities is None or self._info is None or self._is_initialized:
            text = f"ui/notifications/initialized follows {_INITIALIZE}, once"
            self._report(DiagnosticKind.UNEXPECTED_MESSAGE, text, "ui/notifications/initialized")
            return
        self._is_initialized = True
        queue, self._queue = self._queue, []
        for message in queue:
            await _resolve(self._send(message))
        if (on_initialized := self._options.get("on_initialized")) is not None:
            await _resolve(on_initialized(self._info))

    async def _on_size(self, params: Mapping[str, Any]) -> None:
        size = from_builtins(params, m.SizeParams)
        _check_pixels("width", size.width)
        _check_pixels("height", size.height)
        container = self.context.container_dimensions or m.ContainerDimensions()
        on_size = self._options.get("on_size")
        if on_size is None:
            return
        width = _bound(size.width, container.width, container.max_width)
        height = _bound(size.height, container.height, container.max_height)
        await _resolve(on_size(m.SizeParams(width=width, height=height)))

    async def _on_log(self, params: Mapping[str, Any]) -> None:
        log = from_builtins(params, types.LoggingMessageNotificationParams)
        if (on_log := self._options.get("on_log")) is not None:
            await _resolve(on_log(log))

    async def _on_cancelled(self, params: Mapping[str, Any]) -> None:
        id: Any = params.get("requestId")
        task = self._answering.pop(id, None) if isinstance(id, int | str) else None
        if task is not None:
            task.cancel()

    def _report(
        self,
        kind: DiagnosticKind,
        text: str,
        method: str | None = None,
        id: RequestId | None = None,
        error: BaseException | None = None,
    ) -> None:
        now = time.monotonic()
        if now >= self._reports_end:
            self._reports_end, self._reports = now + _REPORT_SECONDS, 0
        self._reports += 1
        most = self._limits.page_diagnostics
        if self._reports > most:
            return
        if self._reports == most:
            kind, text = DiagnosticKind.LIMIT_REACHED, _TOO_MANY_REPORTS
            method = id = error = None
        diagnostic = Diagnostic(kind, f"the page {self.page.uri}: {text}", method, id, error=error)
        on_diagnostic = self._options.get("on_diagnostic")
        if on_diagnostic is None:
            log_failure(logging.WARNING, diagnostic.text, error)
            return
        try:
            on_diagnostic(diagnostic)
        except Exception as failure:
            log_failure(logging.ERROR, "on_diagnostic failed", failure)

    async def _write_error(self, id: RequestId, error: RemoteError) -> None:
        await self._write(_error_response(id, error))


def _error_response(id: RequestId, error: RemoteError) -> dict[str, Any]:
    data = {} if error.data is None else {"data": error.data}
    return {"id": id, "error": {"code": error.code, "message": error.message, **data}}


def _encode(message: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **message})


async def _resolve(value: MaybeAwaitable[T]) -> T:
    return cast(T, await value) if is_awaitable(value) else value


def _check_pixels(name: str, value: float | None) -> None:
    """Raise `DecodeError` for a size that no page has."""
    if value is not None and not 0 <= value <= _MAX_PIXELS:
        raise DecodeError(name, f"expected a number from 0 to {_MAX_PIXELS}")


def _bound(asked: float | None, *limits: float | None) -> float | None:
    return None if asked is None else min([asked, *(limit for limit in limits if limit is not None)])


def _is_link(url: str) -> bool:
    """Return whether a URL can be opened: http or https, with a host, without user, blanks and control characters."""
    if len(url) > _MAX_URL or not url.isprintable() or " " in url or "\\" in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in _LINK_SCHEMES and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False
