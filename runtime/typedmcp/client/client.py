"""The client: a method for every request, on whatever revision the server speaks."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast, overload

import msgspec
from msgspec import UNSET, Raw

from mcpspec._support.methods import Method
from mcpspec._support.structs import decode, from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.changes import Change
from typedmcp.client.cache import Key, ResponseCache
from typedmcp.client.cache import key as cache_key
from typedmcp.client.callbacks import Callbacks, Elicit, Roots, Sample
from typedmcp.client.era import Identity, Server, is_modern_refusal, meet, supported_by
from typedmcp.client.events import Events
from typedmcp.client.lines import LineSession
from typedmcp.client.listening import Subscription
from typedmcp.client.mirror import Mirror
from typedmcp.client.outputs import OutputChecker
from typedmcp.client.replies import Problem, reader
from typedmcp.client.requests import NO_META, Outgoing, is_mapping, revision_of, typed
from typedmcp.client.session import Session, SessionLost
from typedmcp.client.targets import Target, can_restart, is_url, name_of, open_target, shown
from typedmcp.context import LEVELS, LogLevel
from typedmcp.edge.revisions import DIALECT, SUPPORTED, is_modern
from typedmcp.errors import (
    METHOD_NOT_FOUND,
    ConnectionLost,
    DecodeError,
    Error,
    HeaderMismatch,
    HttpStatusError,
    InputUnavailable,
    ProtocolError,
    RemoteError,
    RequestTimeout,
    ServerBusy,
    UnsupportedVersion,
    UsageError,
)
from typedmcp.peer import Kind, Report
from typedmcp.transports import Transport
from typedmcp.validation import available
from typedmcp.wire import DEFAULT_LIMIT

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from typedmcp.client.arguments import Arguments
    from typedmcp.client.endpoint import Credentials, Endpoint

__all__ = ["CallOptions", "Client", "connect"]

D = dialect.structs
P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

_log = logging.getLogger("typedmcp")

_ELICITATION_REQUIRED = -32042
"""With what 2025-11-25 asks for a visit to a URL."""

_eras: dict[str, str] = {}
"""The revision that a target spoke last time; behind a mark where it has two endpoints."""

_TWO_ENDPOINTS = "two endpoints, "
_NOT_HERE = (400, 404, 405)
"""Statuses with which a server of 2024-11-05 refuses what is posted to the URL of its events."""

_REMEMBERED = 256
"""Of how many targets that is known."""

_CALM = 30.0
"""Seconds after which a restart is forgotten."""

_SLOWEST = 5.0
"""Seconds that a restart waits at most."""

_MOST_PAGES = 10_000
"""How many pages a list may have: more are a server that does not end."""


def _remember(key: str, revision: str) -> None:
    if len(_eras) >= _REMEMBERED:
        _eras.clear()
    _eras[key] = revision


class CallOptions(TypedDict, total=False):
    """What every call takes beside its parameters."""

    timeout: float | None
    """Seconds that it may take without an answer or progress. None: as long as it likes."""
    max_time: float | None
    """Seconds that it may take in all, however much progress there is."""
    on_progress: Callable[[D.ProgressNotificationParams], object] | None
    """Told of every step, in order; plain or async."""
    meta: Mapping[str, Any] | None
    """Members of `_meta`, such as the trace context."""
    fresh: bool
    """Ask the server even where an earlier result may still be used."""
    rounds: int | None
    """How often the server may ask for input. With 0 an `InputRequiredResult` is handed back as it is."""


_OPTIONS = frozenset(CallOptions.__annotations__)


def connect(
    target: Target,
    *,
    name: str = "typedmcp",
    version: str = "0",
    revisions: Sequence[str] = SUPPORTED,
    sample: Sample | None = None,
    elicit: Elicit | None = None,
    roots: Roots | None = None,
    capabilities: Mapping[str, Any] | None = None,
    log_level: LogLevel | None = None,
    on_log: Callable[[D.LoggingMessageNotificationParams], object] | None = None,
    on_report: Callable[[Report], object] | None = None,
    timeout: float | None = 60.0,
    max_time: float | None = 600.0,
    probe: float = 5.0,
    rounds: int = 10,
    limit: int = DEFAULT_LIMIT,
    cache: int = 8 << 20,
    check_output: bool = True,
    restart: bool = False,
    headers: Mapping[str, str] | None = None,
    auth: Credentials | None = None,
    proxy: str | None = None,
    tls: ssl.SSLContext | None = None,
    reconnects: int | None = None,
) -> Client:
    """A client, to be entered with `async with`, or opened with `await` and closed with `close()`.

    `target` is a command (a list, or `StdioServerParameters`), a URL (`https://host/mcp`), an address (`unix:/path`,
    `tcp://host:port`), a `Transport`, or a handler or `Service` in this process.

    `sample`, `elicit` and `roots` answer what the server asks; the client declares those that are given, and what
    `capabilities` adds. `on_log` is told of log messages, from `log_level` up. `on_report` is told of what is odd and
    is no call's error; without it that is logged.

    `timeout` and `max_time` are what calls take for themselves where they say nothing, in seconds. `probe` is how long
    a server has to answer `server/discover` before it is taken for an older one. `rounds` is how often a server may
    ask for input in one call, `limit` the longest message in bytes, `cache` how many bytes of results are kept for as
    long as the server says they may be; 0 is none. With `check_output`, results of tools that were listed are checked
    against their `outputSchema`; that needs the extra `jsonschema`. With `restart`, a server that has died is started
    again by the next call; calls that were open fail all the same.

    For URLs only: `headers` are sent with every request. `auth` is a token, or a function, plain or async, that is
    asked for a token or headers: with None at first, and with the `AuthorizationRequired` of a request that was
    refused, which is then made once more. `proxy` is the URL of a proxy; without it the environment's is used
    (`HTTPS_PROXY`, …), with "" none. `tls` says whom to trust and which certificate to show. `reconnects` is how often
    in a row a stream that broke is asked for again, 5 by default.
    """
    http = _http_options(target, headers=headers, auth=auth, proxy=proxy, tls=tls, reconnects=reconnects)
    if unknown := [revision for revision in revisions if revision not in SUPPORTED]:
        raise UsageError(f"no revision {unknown[0]!r}; there are {', '.join(SUPPORTED)}")
    if isinstance(roots, str):
        raise UsageError(f"roots are a list, such as [{roots!r}]")
    if log_level is not None and log_level not in LEVELS:
        raise UsageError(f"no log level {log_level!r}; there are {', '.join(LEVELS)}")
    if restart and not can_restart(target):
        raise UsageError("a transport cannot be opened again: restart is for commands and addresses")
    identity = Identity(
        info=D.Implementation(name=name, version=version),
        revisions=[revision for revision in SUPPORTED if revision in revisions],
        callbacks=Callbacks(sample, elicit, roots, capabilities),
    )
    return Client(
        target, identity, log_level=log_level, on_log=on_log, on_report=on_report, timeout=timeout, max_time=max_time,
        probe=probe, rounds=rounds, limit=limit, cache=cache, check_output=check_output, restart=restart, http=http,
    )  # fmt: skip


def _check_options(options: CallOptions) -> None:
    """Raises `TypeError` for options that there are not, such as those of other libraries."""
    if not _OPTIONS.issuperset(options):
        unknown = min(options.keys() - _OPTIONS)
        raise TypeError(f"a call has no option {unknown!r}; there are {', '.join(sorted(_OPTIONS))}")


def _http_options(target: Target, **given: Any) -> dict[str, Any]:
    options = {name: value for name, value in given.items() if value is not None}
    if options and not is_url(target):
        raise UsageError(f"{', '.join(options)}: only for URLs")
    return options


class Client:
    """A connection to a server. Made by `connect`, which says what its options mean.

    Every call raises `RemoteError` for an error answer, `RequestTimeout`, `ConnectionLost` where the connection ended,
    and `ProtocolError` for an answer that is not what the method gives. Cancelled calls are cancelled at the server.
    """

    def __init__(
        self,
        target: Target,
        identity: Identity,
        *,
        log_level: LogLevel | None,
        on_log: Callable[[D.LoggingMessageNotificationParams], object] | None,
        on_report: Callable[[Report], object] | None,
        timeout: float | None,
        max_time: float | None,
        probe: float,
        rounds: int,
        limit: int,
        cache: int,
        check_output: bool,
        restart: bool,
        http: Mapping[str, Any],
    ) -> None:
        self._target = target
        self._endpoint = _endpoint(target, http) if is_url(target) else None
        self._identity = identity
        self._log_level: LogLevel | None = log_level or ("debug" if on_log is not None else None)
        self.timeout = timeout
        """Seconds that a call may take without an answer or progress, if it says nothing else."""
        self._max_time, self._probe = max_time, probe
        self._rounds = rounds
        self._limit = limit
        self._restart = restart
        self._session: Session | None = None
        self._server: Server | None = None
        self._outgoing = Outgoing(DIALECT, {})
        self._mirror: Mirror | None = None
        self._closed = False
        self._closing: asyncio.Task[None] | None = None
        self._starts: list[float] = []
        """When the last connections were made."""
        self._subscribed: set[str] = set()
        """What this session of an older server was asked to tell of."""
        self._opening: asyncio.Lock = asyncio.Lock()
        self._cache = ResponseCache(size=cache)
        self._checker = OutputChecker() if check_output and available() else None
        self._outputs: dict[str, D.Tool] = {}
        """Tools that were listed with a schema of their output."""
        self._events = Events(identity.callbacks, self._cache, on_log, on_report)
        self._events.first_revision = (identity.legacy or [DIALECT])[0]
        self._subscriptions = self._events.subscriptions

    # Opening and closing

    async def __aenter__(self) -> Client:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Client]:
        return self._opened().__await__()

    async def _opened(self) -> Client:
        await self.open()
        return self

    async def open(self) -> None:
        """Connect and agree on a revision. Where it is open already, nothing is done."""
        if self._closed:
            raise UsageError("the client has been closed")
        await self._connected()

    async def close(self) -> None:
        """End the connection: open calls fail, a child is shut down. From any task, in any order; twice is once."""
        self._closed = True
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(asyncio.current_task()))
        await asyncio.shield(self._closing)

    async def _close(self, caller: asyncio.Task[Any] | None) -> None:
        for subscription in list(self._subscriptions):
            await subscription.close()
        for session in (self._session, self._events.session):  # which may be about to be agreed on
            if session is not None:
                await session.close()
        if self._endpoint is not None:
            self._endpoint.close()
        await self._events.close(caller)

    async def _connected(self) -> Session:
        """The session, opened where there is none."""
        session = self._session
        if session is not None and not session.ended:
            return session
        async with self._opening:
            session = self._session
            if session is not None and not session.ended:
                return session
            if self._closed or (session is not None and not self._can_go_on(session)):
                raise ConnectionLost("the client has been closed") if session is None else session.loss()
            return await self._reconnect(session)

    def _can_go_on(self, ended: Session) -> bool:
        """Whether a session that has ended may be followed by another."""
        return self._restart or ended.renewable

    async def _reconnect(self, before: Session | None) -> Session:
        if before is not None:
            await before.close()
            await self._wait_before_restart()
        self._cache.clear()
        self._outputs.clear()
        self._subscribed.clear()
        key = name_of(self._target) if self._identity.modern and self._identity.legacy else None
        known = _eras.get(key) if key is not None else None
        session, server = await self._agree(known)
        if key is not None:
            two = session.mirror is None and is_url(self._target)
            _remember(key, f"{_TWO_ENDPOINTS if two else ''}{server.revision}")
        self._events.revision = server.revision
        said = self._identity.meta(self._log_level) if is_modern(server.revision) else None
        self._server, self._outgoing, self._session = server, Outgoing(server.revision, said), session
        self._mirror = session.mirror if said is not None else None
        if said is None and self._log_level is not None and server.capabilities.logging is not UNSET:
            await self._ask_for_level(session, self._log_level)
        return session

    async def _agree(self, known: str | None) -> tuple[Session, Server]:
        """Open a session, and agree on a revision. `known` is what there was last time."""
        if self._endpoint is None:
            return await self._met(LineSession(await self._open_target(), self._events, limit=self._limit), known)
        if known is not None and known.startswith(_TWO_ENDPOINTS):
            try:
                return await self._agree_over_two(self._endpoint)
            except (HttpStatusError, ProtocolError):
                pass  # it is another server than last time
        from typedmcp.client.http import HttpSession

        session = HttpSession(self._endpoint, self._events, limit=self._limit)
        try:
            return await self._met(session, None if known is None else known.removeprefix(_TWO_ENDPOINTS))
        except (RemoteError, HttpStatusError) as error:
            if session.shaken not in _NOT_HERE or (isinstance(error, RemoteError) and is_modern_refusal(error)):
                raise
            try:
                return await self._agree_over_two(self._endpoint)
            except Error as other:
                raise error from other

    async def _agree_over_two(self, endpoint: Endpoint) -> tuple[Session, Server]:
        """The same with a server of 2024-11-05, which sends everything over one stream."""
        from typedmcp.client.two_endpoints import TwoEndpoints

        try:
            async with asyncio.timeout(self.timeout):
                transport = await TwoEndpoints.open(endpoint, self._limit)
        except TimeoutError:
            raise ConnectionLost(f"{endpoint.url}: no stream of events within {self.timeout:g} s") from None
        session = LineSession(transport, self._events, limit=self._limit)
        session.renewable = True
        return await self._met(session, self._identity.legacy[-1])

    async def _met(self, session: Session, known: str | None) -> tuple[Session, Server]:
        self._events.session, self._events.revision = session, None
        try:
            server = await meet(session, self._identity, known, self.timeout or 60.0, self._probe)
            if self._closed:
                raise ConnectionLost("the client has been closed")
        except BaseException:
            await session.close()
            if self._endpoint is not None:
                self._endpoint.rest()
            await self._events.close(asyncio.current_task())
            raise
        return session, server

    async def _open_target(self) -> Transport:
        try:
            async with asyncio.timeout(self.timeout):
                transport = await open_target(self._target)
        except TimeoutError:
            raise ConnectionLost(f"{shown(self._target)}: no connection within {self.timeout:g} s") from None
        if self._closed:
            await transport.close()
            raise ConnectionLost("the client has been closed")
        return transport

    async def _wait_before_restart(self) -> None:
        """A server that dies again and again is started ever more slowly."""
        now = self._now()
        self._starts = [start for start in self._starts if start > now - _CALM][-10:]
        if self._starts:
            await asyncio.sleep(min(0.1 * 2 ** len(self._starts), _SLOWEST))
        self._starts.append(self._now())
        if self._closed:
            raise ConnectionLost("the client has been closed")

    async def _ask_for_level(self, session: Session, level: LogLevel) -> None:
        """A server that does not log as it was asked to is good for other things."""
        try:
            await self._set_older_level(session, level)
        except RemoteError as error:
            self._events.report(Report(Kind.PROBLEM, str(error), "logging/setLevel", error=error))

    # Who is there

    @property
    def server(self) -> Server:
        """What is known of the server: revision, capabilities, name, instructions.

        Raises `UsageError` before `open`.
        """
        if self._server is None:
            raise UsageError("the client is not open")
        return self._server

    @property
    def revision(self) -> str:
        """The protocol revision that is spoken, such as `2025-11-25`."""
        return self.server.revision

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
        """Call a method by its record, such as `methods.TOOLS_CALL`; what comes back has the record's result type.

        A record of the dialect works with every server. One of an older revision works with servers that speak it,
        and bypasses the edge: parameters and result are exactly that revision's. A name instead of a record calls
        what the protocol does not have; parameters and result are plain JSON.
        """
        session = await self._connected()
        if isinstance(method, str):
            raw, id = await self._exchange(session, method, self._plain(params, options), options)
            try:
                return msgspec.json.decode(raw)
            except ValueError as error:
                raise ProtocolError(f"result: {error}").of_call(method, id) from error
        record = cast("Method[Any, Any]", method)
        if record.direction == "server" or record.kind == "notification":
            raise UsageError(f"{record.name} is not a request of a client's")
        spoken = revision_of(record)
        if spoken == DIALECT:
            return await self._call(record.name, typed(record.name, {} if params is None else params), options)
        if spoken != self.revision:
            raise UsageError(f"{record.name} of {spoken}: the server speaks {self.revision}")
        raw, id = await self._exchange(session, record.name, self._exact(record, params, options), options)
        try:
            return decode(bytes(raw), record.result)
        except DecodeError as error:
            raise _unfit(error).of_call(record.name, id) from error

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

        A tool that failed says so in `is_error`; that is no exception, but with `raise_on_error` it is a `ToolError`.

        With `result_type` the value comes as that type: a dataclass, a TypedDict, a Struct, a Pydantic model, a
        builtin, a list or a union of them. It is read from the structured content, or from the text of servers that
        give no other. What does not fit is a `ProtocolError`, a tool that failed a `ToolError`. (With `rounds=0` an
        `InputRequiredResult` is handed back all the same.)
        """
        params = D.CallToolRequestParams(meta=NO_META, name=name)
        if arguments is not None:
            params.arguments = arguments if type(arguments) is dict else _plain_arguments(arguments)
        finish = None if result_type is None and not raise_on_error else _finisher(name, result_type)
        try:
            return await self._call("tools/call", params, options, finish)
        except TypeError:
            if arguments is None or _is_encodable(params.arguments):
                raise
        params.arguments = _plain_arguments(arguments)  # objects in it kept it from being sent
        return await self._call("tools/call", params, options, finish)

    async def list_tools(self, cursor: str | None = None, **options: Unpack[CallOptions]) -> D.ListToolsResult:
        """One page of the tools. `tools()` gives all of them."""
        return cast(D.ListToolsResult, await self._page("tools/list", cursor, options))

    async def list_resources(self, cursor: str | None = None, **options: Unpack[CallOptions]) -> D.ListResourcesResult:
        """One page of the resources. `resources()` gives all of them."""
        return cast(D.ListResourcesResult, await self._page("resources/list", cursor, options))

    async def list_resource_templates(
        self, cursor: str | None = None, **options: Unpack[CallOptions]
    ) -> D.ListResourceTemplatesResult:
        """One page of the resource templates. `resource_templates()` gives all of them."""
        return cast(D.ListResourceTemplatesResult, await self._page("resources/templates/list", cursor, options))

    async def list_prompts(self, cursor: str | None = None, **options: Unpack[CallOptions]) -> D.ListPromptsResult:
        """One page of the prompts. `prompts()` gives all of them."""
        return cast(D.ListPromptsResult, await self._page("prompts/list", cursor, options))

    async def read_resource(self, uri: str, **options: Unpack[CallOptions]) -> D.ReadResourceResult:
        """What is at a URI. Raises `ResourceNotFound` or another `RemoteError` where nothing is."""
        params = D.ReadResourceRequestParams(meta=NO_META, uri=uri)
        return cast(D.ReadResourceResult, await self._call("resources/read", params, options))

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[CallOptions]
    ) -> D.GetPromptResult:
        """A prompt, with its arguments in it."""
        params = D.GetPromptRequestParams(meta=NO_META, name=name)
        if arguments is not None:
            params.arguments = dict(arguments)
        return cast(D.GetPromptResult, await self._call("prompts/get", params, options))

    async def complete(
        self,
        ref: D.PromptReference | D.ResourceTemplateReference,
        argument: str,
        value: str,
        context: Mapping[str, str] | None = None,
        **options: Unpack[CallOptions],
    ) -> D.CompleteResult:
        """How an argument of a prompt or template could go on. `context` is what other arguments are already."""
        params = D.CompleteRequestParams(
            meta=NO_META, ref=ref, argument=D.CompleteRequestParamsArgument(name=argument, value=value)
        )
        if context is not None:
            params.context = D.CompleteRequestParamsContext(arguments=dict(context))
        return cast(D.CompleteResult, await self._call("completion/complete", params, options))

    async def ping(self, **options: Unpack[CallOptions]) -> None:
        """See whether the server answers: on a modern wire, which has no ping, with `server/discover`."""
        session = await self._connected()
        if is_modern(self.revision):
            await self._exchange(session, "server/discover", D.RequestParams(meta=NO_META), options, is_typed=True)
        else:
            await self._exchange(session, "ping", {}, options)

    async def set_log_level(self, level: LogLevel) -> None:
        """Hear log messages from this level up."""
        if level not in LEVELS:
            raise UsageError(f"no log level {level!r}; there are {', '.join(LEVELS)}")
        session = await self._connected()
        self._log_level = level
        if is_modern(self.revision):
            self._outgoing = Outgoing(self.revision, self._identity.meta(level))
        else:
            await self._set_older_level(session, level)

    async def roots_changed(self) -> None:
        """Tell an older server that `roots` gives others now; a modern one asks when it wants to know."""
        session = await self._connected()
        if not is_modern(self.revision):
            await session.tell("notifications/roots/list_changed")

    # Pages

    def tools(self, **options: Unpack[CallOptions]) -> AsyncIterator[D.Tool]:
        """All tools, page by page as they are needed."""
        return self._pages(self.list_tools, "tools", options)

    def resources(self, **options: Unpack[CallOptions]) -> AsyncIterator[D.Resource]:
        """All resources, page by page as they are needed."""
        return self._pages(self.list_resources, "resources", options)

    def resource_templates(self, **options: Unpack[CallOptions]) -> AsyncIterator[D.ResourceTemplate]:
        """All resource templates, page by page as they are needed."""
        return self._pages(self.list_resource_templates, "resource_templates", options)

    def prompts(self, **options: Unpack[CallOptions]) -> AsyncIterator[D.Prompt]:
        """All prompts, page by page as they are needed."""
        return self._pages(self.list_prompts, "prompts", options)

    async def _pages(self, fetch: Any, member: str, options: CallOptions) -> AsyncIterator[Any]:
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(_MOST_PAGES):
            page = await fetch(cursor, **options)
            for item in getattr(page, member):
                yield item
            cursor = None if page.next_cursor is UNSET else page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                raise ProtocolError(f"the server gave the cursor {cursor!r} twice, so its pages never end")
            seen.add(cursor)
        raise ProtocolError(f"the server has more than {_MOST_PAGES} pages of {member}")

    # Changes

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
    ) -> Subscription:
        """Hear of what changes: lists, and what can be read at some URIs.

        ```python
        async with client.listen(tools=True) as changes:
            async for changed in changes: ...
        ```
        """
        if isinstance(uris, str):
            raise UsageError(f"uris are a list, such as [{uris!r}]")
        wanted: dict[Change, bool] = {"tools": tools, "prompts": prompts, "resources": resources}
        return Subscription(self, [kind for kind, is_wanted in wanted.items() if is_wanted], uris)

    async def _listen(self, subscription: Subscription) -> None:
        """Serve a subscription until it ends: anew after each restart of the server."""
        self._subscriptions.add(subscription)
        failures = 0
        try:
            while True:
                session = await self._connected()
                began = self._now()
                try:
                    if is_modern(self.revision):
                        await self._listen_modern(session, subscription)
                        return
                    await self._listen_older(session, subscription)
                except ConnectionLost as error:
                    if self._closed or not subscription.is_established or not self._can_go_on(session):
                        raise
                    failures = 1 if self._now() - began > _CALM else failures + 1
                    await self._before_listening_again(session, failures, error)
                    subscription.missed()
        finally:
            self._subscriptions.discard(subscription)

    async def _before_listening_again(self, session: Session, failures: int, error: ConnectionLost) -> None:
        """Wait, where nothing else does: a session that has ended is followed by another in its own time."""
        if self._endpoint is None or session.ended:
            return
        refused = isinstance(error, HttpStatusError) and error.status < 500 and error.status != 429
        if refused or failures > self._endpoint.options.reconnects:
            raise error
        asked = error.retry_after if isinstance(error, ServerBusy) else None
        await asyncio.sleep(min(0.25 * 2**failures, _SLOWEST) if asked is None else asked)

    async def _listen_modern(self, session: Session, subscription: Subscription) -> None:
        call = session.begin("subscriptions/listen", timeout=None)
        subscription.id = call.id
        params = D.SubscriptionsListenRequestParams(meta=NO_META, notifications=subscription.filter)
        await session.exchange(call, self._outgoing.params(call.method, params, self._outgoing.meta(None)))

    async def _listen_older(self, session: Session, subscription: Subscription) -> None:
        """An older session hears of lists anyway; resources are subscribed to one by one."""
        for uri in subscription.uris - self._subscribed:
            self._subscribed.add(uri)
            await self._exchange(session, "resources/subscribe", {"uri": uri}, {})
        subscription.established(None)
        try:
            await session.over.wait()
            raise ConnectionLost("the connection ended")
        finally:
            if not session.ended:
                others = {uri for other in self._subscriptions - {subscription} for uri in other.uris}
                for uri in subscription.uris - others:
                    self._subscribed.discard(uri)
                    session.forget("resources/unsubscribe", {"uri": uri}, self.timeout or 60.0)

    # How a call is made

    async def _page(self, method: str, cursor: str | None, options: CallOptions) -> Any:
        params = D.PaginatedRequestParams(meta=NO_META)
        if cursor is not None:
            params.cursor = cursor
        return await self._call(method, params, options)

    async def _call(
        self, method: str, params: Any, options: CallOptions, finish: Callable[[Any, int], Any] | None = None
    ) -> Any:
        """Call a method of the dialect's, in the time that it has in all. What is given is what `finish` gives."""
        _check_options(options)
        max_time = options.get("max_time", self._max_time)
        try:
            async with asyncio.timeout(max_time):
                return await self._rounds_of(method, params, options, finish)
        except TimeoutError:
            raise RequestTimeout(max_time or 0.0).of_call(method, "none") from None

    async def _rounds_of(
        self, method: str, params: Any, options: CallOptions, finish: Callable[[Any, int], Any] | None
    ) -> Any:
        """As many rounds of input as the server needs."""
        left = options.get("rounds")
        rounds = self._rounds if left is None else left
        if rounds < 0:
            raise UsageError(f"rounds must not be negative, they are {rounds}")
        for _ in range(rounds + 1):
            session = await self._connected()
            asked = None if options.get("fresh") else self._key(method, params)
            kept = None if asked is None else self._cache.get(asked, self._now())
            if kept is not None:
                return self._read(method, Raw(kept), 0)
            changes = self._cache.changes
            try:
                raw, id = await self._exchange(session, method, params, options, is_typed=True)
            except RemoteError as error:
                if error.code != _ELICITATION_REQUIRED or not rounds:
                    raise
                await self._visit(error)
                continue
            result = self._read(method, raw, id)
            if not isinstance(result, D.InputRequiredResult) or not rounds:
                self._look_at(params, result, id)
                if asked is not None and not isinstance(result, D.InputRequiredResult):
                    self._cache.put(asked, bytes(raw), result.ttl_ms, self._now(), changes)
                return result if finish is None else finish(result, id)
            params = await self._with_input(method, params, result)
        raise InputUnavailable(f"{method}: the server asked for input more than {rounds} times")

    def _look_at(self, params: Any, result: Any, id: int) -> None:
        """Remember what tools say they give, and check that they do.

        Raises `ProtocolError` for a result that does not fit the `outputSchema` of its tool.
        """
        if isinstance(result, D.ListToolsResult) and self._checker is not None:
            for tool in result.tools:
                self._outputs.pop(tool.name, None)
                if tool.output_schema is not UNSET:
                    self._note_output(tool)
        elif isinstance(result, D.CallToolResult) and self._outputs and self._checker is not None:
            called = self._outputs.get(params.name)
            fault = None if called is None else self._checker.check(called, result)
            if fault is not None:
                raise ProtocolError(f"result.{fault}").of_call("tools/call", id)

    def _note_output(self, tool: D.Tool) -> None:
        assert self._checker is not None
        problem = self._checker.problem(tool)
        if problem is None:
            self._outputs[tool.name] = tool
        else:
            text = f"the results of {tool.name} cannot be checked: {problem}"
            self._events.report(Report(Kind.PROBLEM, text, "tools/list", params=problem.value))

    def _key(self, method: str, params: Any) -> Key | None:
        """What a result is kept by, if it may be kept: older servers do not say for how long."""
        return cache_key(method, params) if self.revision == DIALECT else None

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _exchange(
        self, session: Session, method: str, params: Any, options: CallOptions, *, is_typed: bool = False
    ) -> tuple[Raw, int]:
        """Make a call; once more where the server has not executed it and says why."""
        _check_options(options)
        try:
            return await self._exchange_once(session, method, params, options, is_typed=is_typed)
        except SessionLost:
            session = await self._connected()
        except RemoteError as error:
            if self._mirror is None or not await self._can_mend(error, method, params):
                raise
        return await self._exchange_once(session, method, params, options, is_typed=is_typed)

    async def _can_mend(self, error: RemoteError, method: str, params: Any) -> bool:
        """Whether the same call may succeed now: with other headers, or since the server speaks the revision."""
        if error.code == UnsupportedVersion.CODE:
            return DIALECT in supported_by(error)
        if error.code != HeaderMismatch.CODE or method != "tools/call":
            return False
        name = params.get("name") if is_mapping(params) else params.name
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._page("tools/list", cursor, {"fresh": True})
            if page.next_cursor is UNSET or any(tool.name == name for tool in page.tools):
                break
            cursor = page.next_cursor
        return True

    async def _exchange_once(
        self, session: Session, method: str, params: Any, options: CallOptions, *, is_typed: bool
    ) -> tuple[Raw, int]:
        on_progress = options.get("on_progress")
        call = session.begin(
            method,
            timeout=options.get("timeout", self.timeout),
            latest=options.get("max_time", self._max_time),
            on_progress=on_progress,
        )
        if is_typed:
            more = options.get("meta")
            if on_progress is not None:
                more = {**(more or {}), "progressToken": call.id}
            try:
                params = self._outgoing.params(method, params, self._outgoing.meta(more))
            except BaseException:
                session.peer.cancel(call.id)
                raise
        elif on_progress is not None:
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": call.id}}
        return await session.exchange(call, params), call.id

    def _plain(self, params: Mapping[str, Any] | None, options: CallOptions) -> Any:
        meta = self._outgoing.meta(options.get("meta"))
        own = dict(params or {})
        if meta is UNSET:
            return own
        said = msgspec.json.decode(msgspec.json.encode(meta))
        return {**own, "_meta": {**said, **own.get("_meta", {})}}

    def _exact(self, record: Method[Any, Any], params: Any, options: CallOptions) -> Any:
        found = to_builtins(self._outgoing.exact(record, params, self._outgoing.meta(options.get("meta"))))
        return {} if found is UNSET else found

    def _read(self, method: str, raw: Raw, id: int) -> Any:
        problems: list[Problem] = []
        try:
            result = reader(method, self.revision)(raw, problems)
        except DecodeError as error:
            raise _unfit(error).of_call(method, id) from error
        except ProtocolError as error:
            raise error.of_call(method, id) from None
        if self._mirror is not None and method == "tools/list":
            result.tools = self._mirror.keep(result.tools, self._events.report)
        for problem in problems:
            text = f"{problem.path}: {problem.reason}"
            self._events.report(Report(Kind.PROBLEM, text, method, params=problem.value))
        return result

    # Input

    async def _with_input(self, method: str, params: Any, wanted: D.InputRequiredResult) -> Any:
        """The parameters of the next round: with the answers, and the server's state as it came."""
        requests = {} if wanted.input_requests is UNSET else wanted.input_requests
        answers: dict[str, Any] = {}
        for key, request in requests.items():
            answers[key] = await self._answered(method, request)
        return msgspec.structs.replace(
            params, input_responses=answers if requests else UNSET, request_state=wanted.request_state
        )

    async def _answered(self, method: str, request: Any) -> Any:
        try:
            return await self._identity.callbacks.answer(request)
        except RemoteError as error:
            if error.code == METHOD_NOT_FOUND:
                raise ProtocolError(
                    f"{method}: the server asks for {request.method}, which was not declared"
                ) from error
            raise

    async def _visit(self, error: RemoteError) -> None:
        """A server of 2025-11-25 wants a URL to be visited before it goes on."""
        try:
            asked = from_builtins(error.data, _Elicitations).elicitations
        except DecodeError:
            raise error from None
        for one in asked:
            params = D.ElicitRequestURLParams(message=one.message, url=one.url)
            answer = await self._identity.callbacks.answer(D.ElicitRequest(params=params))
            if answer.action != "accept":
                raise error

    async def _set_older_level(self, session: Session, level: LogLevel) -> None:
        await self._exchange_once(session, "logging/setLevel", {"level": level}, {}, is_typed=False)


def _endpoint(target: str, options: Mapping[str, Any]) -> Endpoint:
    try:
        from typedmcp.client.endpoint import Endpoint, HttpOptions
    except ImportError as error:
        raise UsageError(f"{target}: clients of URLs need the extra `http`: pip install 'typedmcp[http]'") from error
    return Endpoint(target, HttpOptions(**options))


# What is needed for types of Python takes a while to import, and is imported when it is.


def _plain_arguments(arguments: Any) -> dict[str, Any]:
    from typedmcp.client.arguments import arguments_of

    return arguments_of(arguments)


def _finisher(tool: str, result_type: Any) -> Callable[[Any, int], Any]:
    from typedmcp.client.results import finisher

    return finisher(tool, result_type)


def _is_encodable(arguments: Any) -> bool:
    try:
        msgspec.json.encode(arguments)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


class _Elicitation(msgspec.Struct):
    message: str
    url: str


class _Elicitations(msgspec.Struct):
    """The data of an error that asks for visits to URLs."""

    elicitations: list[_Elicitation]


def _unfit(error: DecodeError) -> ProtocolError:
    """The error for a result that is not what its method gives."""
    inside = not error.path.startswith("result")
    joint = "." if error.path and not error.path.startswith("[") else ""
    return ProtocolError(f"result{joint}{error.path}: {error.reason}" if inside else str(error))
