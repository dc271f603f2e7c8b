"""The client: a method for every request, independent of the server's revision."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Unpack, cast, overload

import msgspec

from mcpspec.support.methods import Method
from typedmcp import dialect
from typedmcp.client.calls.listening import SubscriptionRunner
from typedmcp.client.calls.records import RecordCalls
from typedmcp.client.calls.runner import CallRunner, Finish
from typedmcp.client.connection.manager import ConnectionManager
from typedmcp.client.connection.negotiation import ClientIdentity
from typedmcp.client.connection.targets import Target
from typedmcp.client.incoming.callbacks import Callbacks
from typedmcp.client.incoming.handler import IncomingMessageHandler
from typedmcp.client.options import CallOptions, ConnectOptions, check_connect_options, check_level
from typedmcp.client.requests.call_options import Arguments
from typedmcp.client.requests.encoder import META_PLACEHOLDER
from typedmcp.client.results.cache import ResponseCache
from typedmcp.client.results.server_description import ServerDescription
from typedmcp.client.session.subscriptions import Subscription
from typedmcp.errors import UsageError
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp.protocol.guesses import guessed
from typedmcp.protocol.notifications import Change, LogLevel
from typedmcp.revisions.features import DIALECT, FEATURES, SUPPORTED
from typedmcp_schemas import can_validate
from typedmcp_schemas.nesting import encode_json

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from typedmcp.client.extensions import ClientExtension
    from typedmcp.protocol.extensions import Extension

__all__ = ["Client", "connect"]

D = dialect.structs
P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")
ExtensionT = TypeVar("ExtensionT", bound="ClientExtension")


def connect(target: Target, **options: Unpack[ConnectOptions]) -> Client:
    """Return a client for a server. Enter it with `async with`, or open it with `await` and close it with `close()`.

    `target` is a command (a list, or `StdioServerParameters`), a file (`server.py`, which this Python runs, or
    `server.js`, for Node.js), a URL (`https://host/mcp`), an address (`unix:/path`, `tcp://host:port`), a `Transport`,
    or a handler or `ServerConfig` in this process. `ConnectOptions` describes the options.

    Raises `UsageError` for a target or an option that is not valid, and `TypeError` for an unknown option.
    """
    return Client(target, options)


class Client:
    """A client of one server. `connect` makes it.

    Every call raises `RemoteError` for an error response, `RequestTimeoutError`, `ConnectionLostError` at the end of
    the connection, and `ProtocolError` for a result that does not fit the method. A cancelled call is cancelled at the
    server.
    """

    def __init__(self, target: Target, options: ConnectOptions | None = None) -> None:
        if options is None:
            raise UsageError("use typedmcp.connect(…), which makes a Client and takes its options")
        check_connect_options(options)
        limits = options.get("limits", DEFAULT_LIMITS)
        revisions = options.get("revisions", SUPPORTED)
        callbacks = Callbacks(options, self._bind_extensions(options.get("extensions", ())))
        self._callbacks = callbacks
        identity = ClientIdentity(
            info=D.Implementation(name=options.get("name", "typedmcp"), version=options.get("version", "0")),
            revisions=[revision for revision in SUPPORTED if revision in revisions],
            callbacks=callbacks,
        )
        cache = ResponseCache(size=limits.cache_bytes)
        self._incoming = IncomingMessageHandler(callbacks, cache, options, (identity.legacy or [DIALECT])[0])
        self._connection = ConnectionManager(
            target, identity, self._incoming, self._reset, cache.clear_private, options
        )
        checks_output = options.get("check_output", True) and can_validate()
        self._calls = CallRunner(self._connection, callbacks, cache, checks_output, self._incoming)
        self._records = RecordCalls(self._connection, self._calls, callbacks.extensions, self._incoming.report)
        if self._access is not None:
            self._add_extensions(callbacks.extensions, self._access)
        self._subscriptions = SubscriptionRunner(self._connection, self._calls, self._incoming.changes.subscriptions)
        self._closing: asyncio.Task[None] | None = None

    def _bind_extensions(self, given: Sequence[Extension | ClientExtension]) -> Sequence[ClientExtension]:
        self._access: _ExtensionAccess | None = _ExtensionAccess(self) if given else None
        if self._access is None:
            return ()
        from typedmcp.client.extensions import bind_extensions  # few clients have extensions

        return bind_extensions(given, self._access)

    def _add_extensions(self, extensions: Sequence[ClientExtension], access: _ExtensionAccess) -> None:
        """Pass notifications and results of extensions to their functions."""
        from typedmcp.client.extensions import ExtendedCall

        def completion(complete: Callable[[Any, ExtendedCall], Any]) -> Callable[[str, Any, Any, CallOptions], Any]:
            return lambda method, params, result, options: complete(
                result, ExtendedCall(access, method, params, options)
            )

        access.calls, access.connection, access.incoming = self._calls, self._connection, self._incoming
        self._incoming.extensions = extensions
        self._calls.legacy_forms = [each.legacy for each in extensions if each.legacy is not None]
        self._incoming.is_declared = self._connection.has_declared
        self._calls.completions = {
            kind: completion(complete) for each in extensions for kind, complete in each.completions.items()
        }

    def _reset(self) -> None:
        self._calls.reset()
        self._subscriptions.reset()

    # Opening and closing

    async def __aenter__(self) -> Client:
        await self.open()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    if not TYPE_CHECKING:  # checkers reject `with`; Python 3.14 is the first that explains it

        def __enter__(self) -> NoReturn:
            raise UsageError("a client is entered with `async with`; typedmcp.sync.connect is for code without async")

        def __exit__(self, *_: object) -> None: ...

        locals().update(guessed("Client", "call_for", "tasks", "tools_for"))

    def __await__(self) -> Generator[Any, None, Client]:
        return self.__aenter__().__await__()

    async def open(self) -> None:
        """Connect and negotiate a revision, unless that is done already."""
        if self._connection.is_closed:
            raise UsageError("the client has been closed; connect again")
        await self._connection.connect()

    async def close(self) -> None:
        """End the connection. Open calls fail, a child process is shut down, and callbacks get `grace` seconds to end.

        May be called from any task, including a callback, and more than once.
        """
        self._connection.begin_close()
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(asyncio.current_task()))
        await asyncio.shield(self._closing)

    async def _close(self, caller: asyncio.Task[Any] | None) -> None:
        for subscription in list(self._incoming.changes.subscriptions):
            await subscription.close()
        await self._connection.close()
        await self._incoming.running.close(caller)

    # The server

    @property
    def server(self) -> ServerDescription:
        """The description of the server: revision, capabilities, name, instructions.

        Raises `UsageError` before `open`.
        """
        return self._connection.server

    @property
    def revision(self) -> str:
        """The negotiated protocol revision, such as `2025-11-25`. Raises `UsageError` before `open`."""
        return self._connection.server.revision

    @property
    def is_connected(self) -> bool:
        """True while the client has a session that calls can use.

        Over HTTP that says nothing about the server, which may have gone without a word; `ping` asks it.
        """
        session = self._connection.session
        return session is not None and not session.has_ended and not self._connection.is_closed

    def extension(self, kind: type[ExtensionT]) -> ExtensionT:
        """Return the extension of a class, as it is bound to this client: what its `bind` has returned.

        Raises `UsageError` if no extension of the client has this class.
        """
        found = next((each for each in self._callbacks.extensions if isinstance(each, kind)), None)
        if found is None:
            known = ", ".join(type(each).__name__ for each in self._callbacks.extensions) or "none"
            remedy = "pass one that becomes it, connect(…, extensions=[…])"
            raise UsageError(f"the client has no extension {kind.__name__}; it has {known}; {remedy}")
        return found

    # Calls

    @overload
    async def send(
        self, method: Method[P, R], params: P | Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> R: ...

    @overload
    async def send(
        self, method: str, params: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Any: ...

    async def send(self, method: Any, params: Any = None, **options: Unpack[CallOptions]) -> Any:
        """Call a method by its record, such as `methods.TOOLS_CALL`, and return a result of the record's type.

        A record of the dialect works with every server. A record of another revision works with servers that speak
        that revision: parameters and result are exactly that revision's. A record of another package, which
        `mcpspec-codegen compile` has made, works with servers that have the method; the client writes `_meta`. A name
        instead of a record calls a method that the protocol does not have, with plain JSON as parameters and result.
        """
        if isinstance(method, str):
            return await self._records.call_plain(method, params, options)
        return await self._records.call_record(cast("Method[Any, Any]", method), params, options)

    async def send_raw(
        self, method: str, params: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> msgspec.Raw:
        """Call a method with plain JSON as parameters, and return the result as the server sent it: for proxies.

        Values in `params` may be `msgspec.Raw`. The client writes `_meta`, with the members of the option `meta`. The
        result is neither decoded nor checked, and what the method means to the client, such as its headers and cache,
        is ignored but for the headers of HTTP.
        """
        session = self._connection.session
        if session is None or session.has_ended:
            session = await self._connection.connect()
        written = self._connection.encoder.raw_params(params or {}, options)
        return (await self._calls.exchange(session, method, written, options))[0]

    def decode(self, method: str, raw: msgspec.Raw) -> Any:
        """Return a result of `send_raw` in the dialect: for proxies that cannot pass it on as it is.

        `method` is one of the protocol. Invalid parts are left out or repaired, and reported, as for other calls.
        Raises `ProtocolError` for a result that cannot be understood.
        """
        return self._calls.decode(method, raw, 0)

    async def notify(
        self,
        method: Method[P, None] | str,
        params: P | Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] | None = None,
    ) -> None:
        """Send a notification by its record, which is one of a package that extends the protocol.

        A name instead of a record sends a notification that the protocol does not have, with plain JSON. The client
        writes `_meta`, with the members in `meta`; `capabilities` are those to declare instead of the client's to a
        modern server. Raises `UsageError` for notifications of the protocol, which the client sends itself.
        """
        await self._records.notify(method, params, {"meta": meta, "capabilities": capabilities})

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Arguments | None = None,
        *,
        result_type: None = None,
        raise_on_error: bool = False,
        **options: Unpack[CallOptions],
    ) -> D.CallToolResult: ...

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Arguments | None = None,
        *,
        result_type: TypeForm[T],
        raise_on_error: bool = False,
        **options: Unpack[CallOptions],
    ) -> T: ...

    async def call_tool(
        self,
        name: str,
        arguments: Arguments | None = None,
        *,
        result_type: Any = None,
        raise_on_error: bool = False,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Call a tool. `arguments` are a mapping, a dataclass, a Struct or a model.

        A result with `is_error` is returned like any other. With `raise_on_error` it raises `ToolError`.

        With `result_type` the call returns a value of that type: a dataclass, a TypedDict, a Struct, a Pydantic model,
        a builtin, a list or a union of them. The value comes from the structured content, or from the text of servers
        without structured content. A value that does not fit raises `ProtocolError`, a tool that failed `ToolError`.
        (With `rounds=0` an `InputRequiredResult` is returned as it is.)
        """
        params = D.CallToolRequestParams(meta=META_PLACEHOLDER, name=name)
        if arguments is not None:
            params.arguments = arguments if type(arguments) is dict else _encode_arguments(arguments)
        finish = None if result_type is None and not raise_on_error else _make_finish(name, result_type)
        try:
            return await self._calls.call("tools/call", params, options, finish)
        except TypeError:
            if arguments is None or _is_encodable(params.arguments):
                raise
        params.arguments = _encode_arguments(cast(object, arguments))  # objects inside the mapping could not be encoded
        return await self._calls.call("tools/call", params, options, finish)

    def report(self, diagnostic: Diagnostic) -> None:
        """Pass a diagnostic to `on_diagnostic`, or log it, as is done with those of the client itself.

        It is for libraries that build on the client.
        """
        self._incoming.report(diagnostic)

    async def list_tools(self, cursor: str | None = None, **options: Unpack[CallOptions]) -> D.ListToolsResult:
        """Return one page of the tools. `tools()` gives all of them."""
        return cast(D.ListToolsResult, await self._calls.list_page("tools/list", cursor, options))

    async def list_resources(self, cursor: str | None = None, **options: Unpack[CallOptions]) -> D.ListResourcesResult:
        """Return one page of the resources. `resources()` gives all of them."""
        return cast(D.ListResourcesResult, await self._calls.list_page("resources/list", cursor, options))

    async def list_resource_templates(
        self, cursor: str | None = None, **options: Unpack[CallOptions]
    ) -> D.ListResourceTemplatesResult:
        """Return one page of the resource templates. `resource_templates()` gives all of them."""
        page = await self._calls.list_page("resources/templates/list", cursor, options)
        return cast(D.ListResourceTemplatesResult, page)

    async def list_prompts(self, cursor: str | None = None, **options: Unpack[CallOptions]) -> D.ListPromptsResult:
        """Return one page of the prompts. `prompts()` gives all of them."""
        return cast(D.ListPromptsResult, await self._calls.list_page("prompts/list", cursor, options))

    async def read_resource(self, uri: str, **options: Unpack[CallOptions]) -> D.ReadResourceResult:
        """Read a resource. Raises `ResourceNotFoundError`, or another `RemoteError`, for an unknown URI."""
        params = D.ReadResourceRequestParams(meta=META_PLACEHOLDER, uri=uri)
        return cast(D.ReadResourceResult, await self._calls.call("resources/read", params, options))

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[CallOptions]
    ) -> D.GetPromptResult:
        """Get the messages of a prompt with these arguments."""
        params = D.GetPromptRequestParams(meta=META_PLACEHOLDER, name=name)
        if arguments is not None:
            params.arguments = dict(arguments)
        return cast(D.GetPromptResult, await self._calls.call("prompts/get", params, options))

    async def complete(
        self,
        ref: D.PromptReference | D.ResourceTemplateReference,
        argument: str,
        value: str,
        context: Mapping[str, str] | None = None,
        **options: Unpack[CallOptions],
    ) -> D.CompleteResult:
        """Get completions for the `value` of an argument of a prompt or template.

        `context` holds the arguments that are known already.
        """
        params = D.CompleteRequestParams(
            meta=META_PLACEHOLDER, ref=ref, argument=D.CompleteRequestParamsArgument(name=argument, value=value)
        )
        if context is not None:
            params.context = D.CompleteRequestParamsContext(arguments=dict(context))
        return cast(D.CompleteResult, await self._calls.call("completion/complete", params, options))

    async def ping(self, **options: Unpack[CallOptions]) -> None:
        """Check that the server answers: with `ping`, or with `server/discover` in revisions without `ping`."""
        session = await self._connection.connect()
        if FEATURES[self.revision].has_discovery:
            params = D.RequestParams(meta=META_PLACEHOLDER)
            await self._calls.exchange(session, "server/discover", params, options, is_dialect=True)
        else:
            await self._calls.exchange(session, "ping", {}, options)

    async def set_log_level(self, level: LogLevel) -> None:
        """Set the lowest level of log messages that the server sends."""
        check_level(level)
        await self._connection.set_log_level(level)

    async def notify_roots_changed(self) -> None:
        """Notify a legacy server that the roots have changed. Modern servers request the roots when they need them.

        Raises `UsageError` for a client without roots.
        """
        session = await self._connection.connect()
        if FEATURES[self.revision].has_input_requests:
            return
        roots = self._callbacks.declared(self.revision).get("roots", {})
        if self._connection.checks_capabilities and not roots.get("listChanged"):
            raise UsageError("roots: the client has declared none that change; pass `roots` to `connect`")
        await session.notify_in_order("notifications/roots/list_changed")

    # Lists

    def tools(self, **options: Unpack[CallOptions]) -> AsyncIterator[D.Tool]:
        """Iterate over all tools. Pages are requested as they are needed."""
        return self._calls.list_items("tools/list", "tools", "name", options)

    def resources(self, **options: Unpack[CallOptions]) -> AsyncIterator[D.Resource]:
        """Iterate over all resources. Pages are requested as they are needed."""
        return self._calls.list_items("resources/list", "resources", "uri", options)

    def resource_templates(self, **options: Unpack[CallOptions]) -> AsyncIterator[D.ResourceTemplate]:
        """Iterate over all resource templates. Pages are requested as they are needed."""
        return self._calls.list_items("resources/templates/list", "resource_templates", "uri_template", options)

    def prompts(self, **options: Unpack[CallOptions]) -> AsyncIterator[D.Prompt]:
        """Iterate over all prompts. Pages are requested as they are needed."""
        return self._calls.list_items("prompts/list", "prompts", "name", options)

    # Changes

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
        members: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] | None = None,
    ) -> Subscription:
        """Subscribe to changes of lists, and of the content at some URIs.

        `members` are those that extensions add to the filter. Their notifications reach the extensions' callbacks.
        `meta` are members of `_meta`, and `capabilities` those to declare instead of the client's, on modern servers.

        ```python
        async with client.listen(tools=True) as changes:
            async for change in changes: ...
        ```
        """
        if isinstance(uris, str):
            raise UsageError(f"uris: expected a list, such as [{uris!r}], got a string")
        lists: dict[Change, bool] = {"tools": tools, "prompts": prompts, "resources": resources}
        selected: list[Change] = [kind for kind, is_selected in lists.items() if is_selected]
        options: CallOptions = {"meta": meta, "capabilities": capabilities}
        return Subscription(self._subscriptions.run, self._connection.timeout, selected, uris, members, options)


class _ExtensionAccess:
    """The part of a client that its extensions use: an `ExtensionClient`. `calls` and the others are set later."""

    calls: CallRunner
    connection: ConnectionManager
    incoming: IncomingMessageHandler

    def __init__(self, client: Client) -> None:
        self._client = client
        self.send = client.send
        self.send_raw = client.send_raw
        self.decode = client.decode
        self.report = client.report

    @property
    def limits(self) -> Limits:
        return self.connection.limits

    @property
    def is_closed(self) -> bool:
        return self.connection.is_closed

    async def connect(self) -> ServerDescription:
        await self.connection.connect()
        return self.connection.server

    async def answer(self, method: str, request: Any) -> Any:
        return await self.calls.answer(method, request)

    def listen(self, members: Mapping[str, Any]) -> Subscription:
        return self._client.listen(members=members)

    def tolerate(self, text: str, method: str) -> bool:
        return self.incoming.tolerate(text, method)


# Imported when they are needed: the support for Python types takes a while to load.


def _encode_arguments(arguments: object) -> dict[str, Any]:
    from typedmcp.client.requests.arguments import encode_arguments

    return encode_arguments(arguments)


def _make_finish(tool: str, result_type: Any) -> Finish:
    from typedmcp.client.results.typed_results import make_finish

    return make_finish(tool, result_type)


def _is_encodable(arguments: Any) -> bool:
    try:
        encode_json(arguments)
    except (TypeError, ValueError):
        return False
    return True
