"""The context that a handler gets in addition to its parameters."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, cast, overload

import msgspec

from mcpspec.support.methods import Method
from typedmcp import dialect
from typedmcp.errors import InsufficientScopeError, InvalidParamsError, ResourceNotFoundError, UsageError
from typedmcp.protocol.backends import check_struct, to_plain
from typedmcp.protocol.budgets import ClientKey
from typedmcp.protocol.codec import Codec, MethodCodec
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import OversizeMessage, RequestId
from typedmcp.protocol.notifications import LEVELS, LogLevel
from typedmcp.server.attempts import Attempt
from typedmcp.server.call_states import CallState
from typedmcp.server.changes import Changes
from typedmcp.server.channel import Channel
from typedmcp.server.config import ServerConfig
from typedmcp.server.handshake import Handshake
from typedmcp.server.home import EndCallbacks, SessionHome
from typedmcp.server.metadata import MetadataCache, RequestMetadata
from typedmcp.server.principal import Principal
from typedmcp.server.service import Caller
from typedmcp.transports.concurrency import ThreadLimiter, is_awaitable, must_await

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from typedmcp.server.forms import Elicited

    LifespanT = TypeVarWithDefault("LifespanT", default=Any)
else:
    LifespanT = TypeVar("LifespanT")

__all__ = ["Context", "ContextBackend", "InputRequest", "ServedSession", "StartedCall"]

D = dialect.structs
X = dialect.exact
T = TypeVar("T")
P = TypeVar("P")

InputRequest: TypeAlias = "D.ElicitRequest | D.CreateMessageRequest | D.ListRootsRequest"
"""A request for input from the client, in the dialect."""


class ContextBackend(Protocol):
    """The part of a session that contexts use."""

    config: ServerConfig
    threads: ThreadLimiter
    thread_id: int
    """The thread of the event loop."""
    home: SessionHome
    end_callbacks: EndCallbacks

    def notify(self, ctx: Context | None, method: str, params: msgspec.Struct) -> None: ...
    def ask(self, ctx: Context, requests: Mapping[str, Any]) -> Coroutine[Any, Any, dict[str, Any]]: ...


StartedCall: TypeAlias = "tuple[Context, Coroutine[Any, Any, Any]] | None"
"""A call and the coroutine of its handler, to be awaited; None if the message needs nothing more."""


class _Questions(Protocol):
    def respond(self, ctx: Context, result: Any) -> None: ...
    def restore(self, ctx: Context, params: Any) -> Awaitable[None] | None: ...


class _Listeners(Protocol):
    def listen(self, params: Any, ctx: Context) -> Awaitable[Any]: ...
    def subscribe(self, params: Any, ctx: Context) -> Awaitable[Any]: ...
    def unsubscribe(self, params: Any, ctx: Context) -> Awaitable[Any]: ...
    def final_result(self, ctx: Context) -> Any: ...


class ServedSession(ContextBackend, Protocol):
    """A session, as the modules that serve its calls see it. `Session` is one."""

    codec: Codec
    """Decodes the messages of the revision that the client probably speaks."""
    in_flight: dict[Any, Context]
    metadata: MetadataCache
    handshake: Handshake | None
    """The handshake of a client of a legacy revision; None if there is none."""
    is_closed: bool
    is_shared: bool

    @property
    def closing(self) -> asyncio.Event: ...
    @property
    def questions(self) -> _Questions: ...
    @property
    def subscriptions(self) -> _Listeners: ...
    def use_revision(self, revision: str) -> None: ...
    def set_log_level(self, level: str) -> None: ...
    def cancel(self, id: RequestId) -> bool: ...
    def dispatch_slow(self, line: bytes | OversizeMessage, channel: Channel) -> StartedCall: ...
    def send(self, ctx: Context | None, message: msgspec.Struct) -> bool: ...
    def is_congested(self, ctx: Context | None) -> bool: ...
    def drain_later(self, ctx: Context | None) -> None: ...


class _DrainAwaitable:
    """An awaitable that waits until the client reads again. Awaiting it is optional."""

    __slots__ = ("_channel",)

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def __await__(self) -> Generator[Any, None, None]:
        if self._channel.is_congested:
            yield from self._channel.drain().__await__()


class Context(msgspec.Struct, Generic[LifespanT], eq=False, weakref=True, dict=True):
    """One request or notification while it is handled. `Context[Database]` says what the lifespan yields.

    It is the same on every revision and transport. The `id` of a notification is None, and its handler can neither
    report progress nor ask for input. It is a Struct, which is fast to create, since every message needs one. For the
    same reason it is the call itself, whose `state` call_states.py describes, and not a second object.
    `vars(ctx)` is a dict in which middleware, extensions and observers may keep something with the message.
    """

    _backend: ContextBackend
    method_codec: MethodCodec
    id: RequestId | None
    """The id of the request; None for a notification."""
    metadata: RequestMetadata
    """The metadata of the client, which the properties below read."""
    meta: Any
    """The `_meta` of the message in the dialect, with trace context and unknown members."""
    raw: bytes
    """The message as it was received, to forward it unchanged."""
    channel: Channel
    state: CallState = CallState.NEW
    params: Any = None
    """The parameters in the dialect."""
    task: asyncio.Task[Any] | None = None
    attempt: Attempt | None = None
    owner: Any = None
    """The mounted server that handles the request; None for the server that is served."""
    _progress: float | None = None
    _sent: tuple[float, int] = (0.0, 0)
    """When the current second began, and the progress and log messages that were sent in it."""
    encodings: Any = None
    """The `EncodedList` of the result, if that is a list which is the same for every client."""
    request_meta: Mapping[str, Any] | None = None
    """Members for the `_meta` of the requests that legacy revisions send to the client while they handle this one."""

    @property
    def request_id(self) -> RequestId | None:
        """The id of the request, like `id`; the other libraries call it so."""
        return self.id

    @property
    def cancelled(self) -> bool:
        """True once the client has cancelled the request. Handlers in threads should check it from time to time."""
        return self.state is CallState.CANCELLED

    @property
    def is_answered(self) -> bool:
        """True once the request has its response. Nothing more is sent for it."""
        return self.state is CallState.ANSWERED

    @property
    def method(self) -> str:
        """The method in the protocol, such as `tools/call`."""
        return self.method_codec.method

    @property
    def revision(self) -> str:
        """The protocol revision of the request, such as `2025-11-25`."""
        return self.metadata.revision

    @property
    def is_modern(self) -> bool:
        """True if the revision of the request has no handshake."""
        return self.metadata.is_modern

    @property
    def client_info(self) -> D.Implementation | None:
        """The name and version that the client claims. They are not verified."""
        return self.metadata.client_info

    @property
    def client_capabilities(self) -> D.ClientCapabilities:
        """The capabilities that the client has declared."""
        return self.metadata.capabilities

    @property
    def principal(self) -> Principal | None:
        """The user or program that the access token was issued to. None without authorization."""
        return self.channel.principal

    @property
    def connection(self) -> object:
        """The object that serves the connection or session. Clients over HTTP without a session share one."""
        return self._backend

    @property
    def session_id(self) -> str | None:
        """A text that identifies the connection or session, as secret as the session. None without a session."""
        return self._backend.home.session_id

    @property
    def caller(self) -> Caller:
        """The client, as far as it can be told from others: by its connection, session, access token or address."""
        home, principal = self._backend.home, self.principal
        if home.session_id is not None:
            return Caller(home.session_id, "session" if home.is_stored else "connection", True)
        if principal is not None:
            return Caller(principal.key, "principal", True)
        return Caller(str(self.client_key or ""), "address", False)

    def on_session_end(self, function: Callable[[], object]) -> Callable[[], None]:
        """Call a function once, in the event loop, when the connection or the session of the client ends.

        A session that its client has left without a word ends when this worker needs its place. Other clients over HTTP
        have no session, and the function is never called. The function that is returned undoes this.
        """
        if self.session_id is None:
            return lambda: None
        return self._backend.end_callbacks.add(function)

    def raw_params(self) -> dict[str, msgspec.Raw]:
        """Return the parameters as the client wrote them, each encoded, to pass them on. `_meta` is left out."""
        params = _decode_raw_params(self.raw).params
        params.pop("_meta", None)
        return params

    @property
    def accepts_input(self) -> bool:
        """True if the result of the request may be an `InputRequiredResult`."""
        return self.method_codec.accepts_input

    @property
    def log_level(self) -> LogLevel | None:
        """The level of log messages that the client has asked for. None: it has asked for none."""
        return cast("LogLevel | None", self.metadata.log_level)

    @property
    def lowest_log_level(self) -> LogLevel | None:
        """The lowest level of log messages that the client gets, also if it has not asked. None: it gets none."""
        return cast("LogLevel | None", self.metadata.lowest_level)

    def has_scopes(self, *scopes: str) -> bool:
        """Return whether the access token of the request has all these scopes.

        Without authorization this is True for a client in the same process, on a pipe or on a socket. It is False over
        HTTP, where `asgi(…, auth=…)` is missing.
        """
        principal = self.principal
        if principal is None:
            return self._backend.home.is_local or not scopes
        return principal.scopes.issuperset(scopes)

    def require_scopes(self, *scopes: str) -> None:
        """Raise `InsufficientScopeError` unless `has_scopes` of these scopes is True. Name all that are needed at once.

        https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#scope-challenge-handling
        """
        if not self.has_scopes(*scopes):
            raise InsufficientScopeError(*scopes)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request, with names in lower case; empty on other transports.

        In a connection of HTTP with SSE (2024-11-05), they are those of the request that opened the event stream.
        """
        return self.channel.request_headers

    @property
    def lifespan(self) -> LifespanT:
        """The value that the server's lifespan yielded; None without a lifespan."""
        state: LifespanT = self.config.lifespan_of(self.owner)
        return state

    def state_of(self, extension: object) -> Any:
        """Return the value that the lifespan of a `ServerExtension` yielded; None without a lifespan."""
        return self.config.lifespan_of(extension)

    @property
    def client_key(self) -> ClientKey:
        """The client that limits count for: its principal, its address or its connection. None if it is unknown."""
        return self.channel.client

    @property
    def config(self) -> ServerConfig:
        """The configuration of the server that is served."""
        return self._backend.config

    @property
    def changes(self) -> Changes:
        """The hub to publish changes to. A mounted server has its own."""
        return self.config.changes if self.owner is None else cast(Changes, self.owner.changes)

    # Sending

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Awaitable[None]:
        """Report progress to the client. Await it to go no faster than the client reads.

        Nothing is sent if the client did not ask for progress, if `progress` has not grown since the last call, as the
        protocol demands, or beyond `Limits.request_messages_per_second`.
        """
        if not isinstance(progress, int | float) or not isinstance(total, int | float | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"progress and total must be numbers, not {progress!r} and {total!r}")
        token = self.meta.get("progressToken") if self.meta is not None else None
        if token is None or self.cancelled or (self._progress is not None and progress <= self._progress):
            return self._send(None)
        if not self._admit_message():
            return self._send(None)
        self._progress = progress
        params = D.ProgressNotificationParams(progress=progress, progress_token=token)
        if total is not None:
            params.total = total
        if message is not None:
            params.message = message
        return self._send(lambda: self._backend.notify(self, "notifications/progress", params))

    report_progress = progress
    """The same, under the name that it has in other libraries."""

    def debug(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message with the level "debug"."""
        return self.log("debug", data, logger)

    def info(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message with the level "info"."""
        return self.log("info", data, logger)

    def warning(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message with the level "warning"."""
        return self.log("warning", data, logger)

    def error(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message with the level "error"."""
        return self.log("error", data, logger)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message, if the client asked for messages of this level. `data` is any JSON."""
        if (rank := LEVELS.get(level)) is None:
            raise ValueError(f"unknown log level {level!r}; known: {', '.join(LEVELS)}")
        threshold = self.metadata.lowest_level
        if threshold is None:  # the client asked for none, but the operator may want it
            self.config.report(Diagnostic(DiagnosticKind.LOG, f"{level}: {data}", self.method, self.id, data))
        if threshold is None or rank < LEVELS[threshold] or self.cancelled or not self._admit_message():
            return self._send(None)
        params = D.LoggingMessageNotificationParams(level=level, data=data)
        if logger is not None:
            params.logger = logger
        return self._send(lambda: self._backend.notify(self, "notifications/message", params))

    def _admit_message(self) -> bool:
        """Count a progress or log message. Return False if the request has sent too many in this second."""
        limit, now = self.config.limits.request_messages_per_second, monotonic()
        began, count = self._sent
        if now - began >= 1:
            began, count = now, 0
        self._sent = began, count + 1
        if count == limit:
            text = f"more than {limit} messages of one request in a second (request_messages_per_second)"
            self.config.report(Diagnostic(DiagnosticKind.DROPPED, text, self.method, self.id))
        return count < limit

    @overload
    def notify(self, method: Method[P, None], params: P) -> Awaitable[None]: ...
    @overload
    def notify(self, method: str, params: Mapping[str, Any]) -> Awaitable[None]: ...
    def notify(self, method: Any, params: Any) -> Awaitable[None]:
        """Send a notification by its record, which is one of a package that extends the protocol.

        A name instead of a record sends plain JSON. A notification of an extension that the client has not declared is
        not sent, and reported.
        """
        name: str = method if isinstance(method, str) else method.name
        for each in self.config.extensions:
            if name in each.extension.methods and not each.extension.is_declared(self.client_capabilities):
                text = f"{name}: the client has not declared {each.extension.identifier}"
                self.config.report(Diagnostic(DiagnosticKind.DROPPED, text, self.method, self.id))
                return self._send(None)
        plain: Any = check_struct(params) if isinstance(params, msgspec.Struct) else to_plain(params)
        return self._send(lambda: self._backend.notify(self, name, plain))

    def report(self, text: str, error: BaseException | None = None) -> None:
        """Report a failure to the operator, through `on_diagnostic`. Nothing is sent to the client."""
        self.config.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, self.method, self.id, error=error))

    def tolerate(self, text: str) -> None:
        """Report that the client broke the specification harmlessly, and that its request was understood.

        Raises `InvalidParamsError` with this text if the server is strict.
        """
        if self.config.strict:
            raise InvalidParamsError(text)
        self.config.report(Diagnostic(DiagnosticKind.TOLERATED, text, self.method, self.id))

    @must_await
    async def in_thread(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function that blocks in one of the server's threads, and return its result."""
        return await self._backend.threads.run(self.client_key, function, *args)

    @must_await
    async def read_resource(self, uri: str) -> list[D.TextResourceContents | D.BlobResourceContents]:
        """Read a resource of this server. In a mounted server, URIs are those of the mounted one.

        Raises `ResourceNotFoundError`, and the exceptions of the resource.
        """
        owner = self.owner
        read = self.config.functions.get("read_resource") if owner is None else owner.read_resource
        if read is None:
            raise ResourceNotFoundError(uri)
        try:
            made = read(D.ReadResourceRequestParams(meta=self.meta, uri=uri), self)
            result = await made if is_awaitable(made) else made
        finally:
            self.owner = owner  # a server that is mounted in this one may have changed it
        return cast(D.ReadResourceResult, result).contents

    async def disconnect(self, retry: float = 1.0) -> None:
        """Close the HTTP connection of a long call. The client reconnects for the response after `retry` seconds.

        This works only in sessions of legacy revisions over HTTP; otherwise nothing happens.
        """
        await asyncio.sleep(0)  # a call that has waited has a stream
        self.channel.disconnect(retry)

    def _send(self, send: Callable[[], None] | None) -> Awaitable[None]:
        backend = self._backend
        if threading.get_ident() == backend.thread_id:
            if send is not None:
                send()
        elif send is not None:
            asyncio.run_coroutine_threadsafe(self._send_and_drain(send), backend.home.loop).result()
        return _DrainAwaitable(self.channel)

    async def _send_and_drain(self, send: Callable[[], None]) -> None:
        """Send something for a function in a thread, which waits until the client keeps up."""
        send()
        if self.channel.is_congested:
            await self.channel.drain()

    # Asking the client

    @overload
    async def elicit(self, message: str, schema: type[T], *, key: str | None = None) -> Elicited[T]: ...
    @overload
    async def elicit(  # type: ignore[overload-overlap]  # the last one is for forms such as `Literal`, which are no `type[T]`
        self, message: str, schema: Mapping[str, Any], *, key: str | None = None
    ) -> D.ElicitResult: ...
    @overload
    async def elicit(self, message: str, schema: object, *, key: str | None = None) -> Elicited[Any]: ...
    @must_await
    async def elicit(self, message: str, schema: Any, *, key: str | None = None) -> Any:
        """Ask the person at the client to fill in a form.

        `schema` is an object schema of plain fields, a type with such fields (a Struct, a dataclass, a TypedDict or a
        Pydantic model), or a single type such as `str`, `bool` or a `Literal`. With a type, `data` of the result is a
        value of that type. `key` identifies the request in later attempts; by default its position does. See `ask` for
        attempts and further exceptions. Raises `UsageError` for a type that has no form.
        """
        from typedmcp.server.forms import form_of  # here, since most servers never ask

        form = None if isinstance(schema, Mapping) else form_of(schema)
        wanted = {**cast("Mapping[str, Any]", schema)} if form is None else form.schema_for(self.revision)
        X.from_builtins(wanted, X.ElicitRequestFormParamsRequestedSchema)
        params = D.from_builtins(
            {"message": message, "mode": "form", "requestedSchema": wanted}, D.ElicitRequestFormParams
        )
        result = cast(D.ElicitResult, await self._ask_one(D.ElicitRequest(params=params), key))
        return result if form is None else form.read_result(result)

    @must_await
    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> D.ElicitResult:
        """Ask the person at the client to open a URL, for input that must not pass through the client."""
        params = D.ElicitRequestURLParams(message=message, url=url)
        return cast(D.ElicitResult, await self._ask_one(D.ElicitRequest(params=params), key))

    @must_await
    async def sample(
        self,
        params: D.CreateMessageRequestParams | str,
        *,
        max_tokens: int = 1000,
        system_prompt: str | None = None,
        temperature: float | None = None,
        key: str | None = None,
    ) -> D.CreateMessageResult:
        """Ask the client's model to generate a message.

        `params` is a prompt, to which the other options apply, or the complete parameters. `text_of` returns the text
        of the result.
        """
        if isinstance(params, str):
            message = D.SamplingMessage(role="user", content=D.TextContent(text=params))
            params = D.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
            if system_prompt is not None:
                params.system_prompt = system_prompt
            if temperature is not None:
                params.temperature = temperature
        return cast(D.CreateMessageResult, await self._ask_one(D.CreateMessageRequest(params=params), key))

    @must_await
    async def list_roots(self, *, key: str | None = None) -> list[D.Root]:
        """Ask the client for the folders that it works in."""
        # The Go SDK cannot decode an input request without parameters, although these have none that are required.
        result = await self._ask_one(D.ListRootsRequest(params=D.ListRootsRequestParams()), key)
        return cast(D.ListRootsResult, result).roots

    @must_await
    async def ask(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
        """Request several inputs at once, and return the results by the same keys.

        On legacy revisions the handler waits while the client answers. On modern ones this attempt ends here, and the
        handler is called again from its beginning once the client has answered: everything before the input request
        runs again. Put side effects after the last input request. An answer counts if the handler then makes exactly
        the same request under the same key; otherwise the client is asked again.

        Raises `MissingCapabilityError` for a capability that the client has not declared, `InputUnavailableError`
        outside `tools/call`, `prompts/get` and `resources/read`, and `UsageError` for requests that the specification
        forbids. On legacy revisions it raises `InvalidParamsError` for an answer that does not fit its form, and
        `RequestTimeoutError` for a client that does not answer in time.
        """
        return await self._backend.ask(self, requests)

    async def _ask_one(self, request: Any, key: str | None) -> Any:
        if key is None:
            self.attempt = self.attempt or Attempt()
            key = self.attempt.next_key(request.method)
        return (await self.ask({key: request}))[key]


class _RawMessage(msgspec.Struct):
    params: dict[str, msgspec.Raw] = {}


_decode_raw_params = msgspec.json.Decoder(_RawMessage).decode
