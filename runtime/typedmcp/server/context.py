"""The context that a handler gets in addition to its parameters."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast, overload

import msgspec

from mcpspec.support.methods import Method
from typedmcp import dialect
from typedmcp.errors import ResourceNotFoundError
from typedmcp.protocol.backends import to_plain
from typedmcp.protocol.codec import MethodCodec
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.notifications import LEVELS, LogLevel
from typedmcp.server.changes import Changes
from typedmcp.server.config import ServerConfig
from typedmcp.server.metadata import RequestMetadata
from typedmcp.transports.concurrency import is_awaitable

if TYPE_CHECKING:
    from typedmcp.jsonschema.forms import Elicited

__all__ = ["Attempt", "Context", "ContextBackend", "InputRequest", "ResponseSink"]

D = dialect.structs
X = dialect.exact
T = TypeVar("T")
P = TypeVar("P")

InputRequest: TypeAlias = "D.ElicitRequest | D.CreateMessageRequest | D.ListRootsRequest"
"""A request for input from the client, in the dialect."""


class ResponseSink(Protocol):
    """Takes the responses to messages that arrived together: in a batch, or in one HTTP request."""

    @property
    def principal(self) -> str | None:
        """The name that the client authenticated with, if it did."""
        ...

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request, with names in lower case."""
        ...

    def check_headers(self, method_codec: MethodCodec, params: Any) -> None:
        """Raise `ValueError` if the headers may contradict the body; `Dispatcher.check_headers` checks precisely."""
        ...

    def expect(self) -> None:
        """Expect one more response."""
        ...

    def send_response(self, line: bytes, code: int | None) -> None:
        """Send an expected response; `code` is the code of an error."""
        ...

    def reject(self, line: bytes, code: int) -> None:
        """Send an error for a message that had no effect and was not expected to get a response."""
        ...

    def abandon(self) -> None:
        """Expect one response fewer."""
        ...

    def send_message(self, ctx: Context, line: bytes) -> bool:
        """Send a notification or a request ahead of the response. Return False if that is impossible."""
        ...

    def disconnect(self, retry: float) -> None:
        """Close the connection, if the client can reconnect for its response after `retry` seconds."""
        ...


class ContextBackend(Protocol):
    """The part of a dispatcher that contexts use."""

    @property
    def config(self) -> ServerConfig: ...
    @property
    def principal(self) -> str | None: ...
    @property
    def thread_id(self) -> int: ...
    def is_congested(self, ctx: Context | None) -> bool: ...
    def drain(self, ctx: Context | None) -> Coroutine[Any, Any, None]: ...
    def notify(self, ctx: Context | None, method: str, params: msgspec.Struct) -> None: ...
    def report(self, diagnostic: Diagnostic) -> None: ...
    def ask(self, ctx: Context, requests: Mapping[str, Any]) -> Coroutine[Any, Any, dict[str, Any]]: ...
    def call_in_loop(self, ctx: Context, send: Callable[[], None]) -> None: ...
    async def run_in_thread(self, function: Callable[..., T], *args: Any) -> T: ...


class Attempt:
    """One attempt at a request, and the answers that earlier attempts got from the client."""

    __slots__ = ("answers", "ordinals", "rounds")

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        """The client's answers by key, in plain JSON."""
        self.rounds: int = 0
        """The number of attempts before this one."""
        self.ordinals: dict[str, int] = {}

    def next_key(self, method: str) -> str:
        """Return the key of the next input request that has none: its method and its position among those."""
        self.ordinals[method] = number = self.ordinals.get(method, 0) + 1
        return f"{method}#{number}"


class _DrainAwaitable:
    """An awaitable that waits until the client reads again. Awaiting it is optional."""

    __slots__ = ("_backend", "_ctx")

    def __init__(self, backend: ContextBackend, ctx: Context) -> None:
        self._backend = backend
        self._ctx = ctx

    def __await__(self) -> Generator[Any, None, None]:
        if self._backend.is_congested(self._ctx):
            yield from self._backend.drain(self._ctx).__await__()


class Context(msgspec.Struct, eq=False, weakref=True, dict=True):
    """One request or notification while it is handled.

    It is the same on every revision and transport. The `id` of a notification is None, and its handler can neither
    report progress nor ask for input. It is a Struct, which is fast to create, since every message needs one.
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
    sink: ResponseSink | None = None
    cancelled: bool = False
    """True once the client has cancelled the request. Handlers in threads should check it from time to time."""
    params: Any = None
    """The parameters in the dialect."""
    task: asyncio.Task[Any] | None = None
    attempt: Attempt | None = None
    is_registered: bool = False
    is_answered: bool = False
    """True once the request has its response. Nothing more is sent for it."""
    owner: Any = None
    """The mounted server that handles the request; None for the server that is served."""
    _progress: float | None = None

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
        return self.metadata.features.is_modern

    @property
    def client_info(self) -> D.Implementation | None:
        """The name and version that the client claims. They are not verified."""
        return self.metadata.client_info

    @property
    def client_capabilities(self) -> D.ClientCapabilities:
        """The capabilities that the client has declared."""
        return self.metadata.capabilities

    @property
    def principal(self) -> str | None:
        """The name that the client authenticated with, if it did."""
        return self._backend.principal if self.sink is None else self.sink.principal

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request, with names in lower case; empty on other transports."""
        return {} if self.sink is None else self.sink.request_headers

    @property
    def lifespan(self) -> Any:
        """The value that the server's lifespan yielded; None without a lifespan."""
        return self._backend.config.lifespan_of(self.owner)

    @property
    def changes(self) -> Changes:
        """The hub to publish changes to. A mounted server has its own."""
        return self._backend.config.changes if self.owner is None else cast(Changes, self.owner.changes)

    # Sending

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Awaitable[None]:
        """Report progress to the client. Await it to go no faster than the client reads.

        Nothing is sent if the client did not ask for progress, or if `progress` has not grown since the last call, as
        the protocol demands.
        """
        token = self.meta.get("progressToken") if self.meta is not None else None
        if token is None or self.cancelled or (self._progress is not None and progress <= self._progress):
            return self._send(None)
        self._progress = progress
        params = D.ProgressNotificationParams(progress=progress, progress_token=token)
        if total is not None:
            params.total = total
        if message is not None:
            params.message = message
        return self._send(lambda: self._backend.notify(self, "notifications/progress", params))

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
        rank = LEVELS.get(level)
        if rank is None:
            raise ValueError(f"unknown log level {level!r}; known: {', '.join(LEVELS)}")
        threshold = self.metadata.log_level
        if threshold is None:  # the client asked for none, but the operator may want it
            self._backend.report(Diagnostic(DiagnosticKind.LOG, f"{level}: {data}", self.method, self.id, data))
        if threshold is None or rank < LEVELS[threshold] or self.cancelled:
            return self._send(None)
        params = D.LoggingMessageNotificationParams(level=level, data=data)
        if logger is not None:
            params.logger = logger
        return self._send(lambda: self._backend.notify(self, "notifications/message", params))

    def notify(self, method: Method[P, None], params: P) -> Awaitable[None]:
        """Send a notification by its record, which is one of a package that extends the protocol."""
        plain: Any = params if isinstance(params, msgspec.Struct) else to_plain(params)
        return self._send(lambda: self._backend.notify(self, method.name, plain))

    def report(self, text: str, error: BaseException | None = None) -> None:
        """Report a failure to the operator, through `on_diagnostic`. Nothing is sent to the client."""
        self._backend.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, self.method, self.id, error=error))

    async def in_thread(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function that blocks in one of the server's threads, and return its result."""
        return await self._backend.run_in_thread(function, *args)

    async def read_resource(self, uri: str) -> list[D.TextResourceContents | D.BlobResourceContents]:
        """Read a resource of this server. In a mounted server, URIs are those of the mounted one.

        Raises `ResourceNotFoundError`, and the exceptions of the resource.
        """
        owner = self.owner
        read = self._backend.config.functions.get("read_resource") if owner is None else owner.read_resource
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
        if self.sink is not None:
            self.sink.disconnect(retry)

    def _send(self, send: Callable[[], None] | None) -> Awaitable[None]:
        backend = self._backend
        if threading.get_ident() == backend.thread_id:
            if send is not None:
                send()
        elif send is not None:
            backend.call_in_loop(self, send)
        return _DrainAwaitable(backend, self)

    # Asking the client

    @overload
    async def elicit(self, message: str, schema: type[T], *, key: str | None = None) -> Elicited[T]: ...
    @overload
    async def elicit(  # type: ignore[overload-overlap]  # the last one is for forms such as `Literal`, which are no `type[T]`
        self, message: str, schema: Mapping[str, Any], *, key: str | None = None
    ) -> D.ElicitResult: ...
    @overload
    async def elicit(self, message: str, schema: object, *, key: str | None = None) -> Elicited[Any]: ...
    async def elicit(self, message: str, schema: Any, *, key: str | None = None) -> Any:
        """Ask the person at the client to fill in a form.

        `schema` is an object schema of plain fields, a type with such fields (a Struct, a dataclass, a TypedDict or a
        Pydantic model), or a single type such as `str`, `bool` or a `Literal`. With a type, `data` of the result is a
        value of that type. `key` identifies the request in later attempts; by default its position does. See `ask` for
        attempts and further exceptions. Raises `UsageError` for a type that has no form.
        """
        from typedmcp.jsonschema.forms import form_of  # here, since most servers never ask

        form = None if isinstance(schema, Mapping) else form_of(schema)
        wanted = {**cast("Mapping[str, Any]", schema)} if form is None else form.schema
        X.from_builtins(wanted, X.ElicitRequestFormParamsRequestedSchema)
        params = D.from_builtins(
            {"message": message, "mode": "form", "requestedSchema": wanted}, D.ElicitRequestFormParams
        )
        result = cast(D.ElicitResult, await self._ask_one(D.ElicitRequest(params=params), key))
        return result if form is None else form.read_result(result)

    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> D.ElicitResult:
        """Ask the person at the client to open a URL, for input that must not pass through the client."""
        params = D.ElicitRequestURLParams(message=message, url=url)
        return cast(D.ElicitResult, await self._ask_one(D.ElicitRequest(params=params), key))

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

    async def list_roots(self, *, key: str | None = None) -> list[D.Root]:
        """Ask the client for the folders that it works in."""
        result = await self._ask_one(D.ListRootsRequest(), key)
        return cast(D.ListRootsResult, result).roots

    async def ask(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
        """Request several inputs at once, and return the results by the same keys.

        On legacy revisions the handler waits while the client answers. On modern ones this attempt ends here, and the
        handler is called again from its beginning once the client has answered: everything before the input request
        runs again. Put side effects after the last input request.

        Raises `MissingCapabilityError` for a capability that the client has not declared, and `InputUnavailableError`
        outside `tools/call`, `prompts/get` and `resources/read`, or after too many rounds.
        """
        return await self._backend.ask(self, requests)

    async def _ask_one(self, request: Any, key: str | None) -> Any:
        if key is None:
            self.attempt = self.attempt or Attempt()
            key = self.attempt.next_key(request.method)
        return (await self.ask({key: request}))[key]
