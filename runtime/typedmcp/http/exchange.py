"""One POST, and what becomes of it: an answer, a stream of events that ends with one, or just a status."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

import msgspec

from mcpspec._support.objects import is_array, is_object
from typedmcp.codec import Entry, error_bytes
from typedmcp.context import Context
from typedmcp.edge.revisions import DIALECT, takes_empty_events
from typedmcp.engine import BatchAnswer, Channel, resumed
from typedmcp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    CallLost,
    HeaderMismatch,
    InsufficientScope,
    MissingCapability,
    RemoteError,
    UnsupportedVersion,
)
from typedmcp.http import headers as names
from typedmcp.http.streams import EventStream, Kept, Send
from typedmcp.peer import Kind, Report
from typedmcp.wire import Frame

if TYPE_CHECKING:
    from typedmcp.http.access import Principal
    from typedmcp.http.asgi import App
    from typedmcp.http.engines import HttpEngine, SessionEngine

__all__ = [
    "RETRY_SOON",
    "TOO_MANY_STREAMS",
    "Exchange",
    "OlderStatelessExchange",
    "Receive",
    "SessionExchange",
    "StatelessExchange",
    "exchange_of",
    "respond",
]

Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]

_DIALECT = DIALECT.encode()
_EMPTY = (b"content-length", b"0")
JSON = (b"content-type", b"application/json")
"""The header of a response that is JSON."""

_STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    HeaderMismatch.CODE: 400,
    MissingCapability.CODE: 400,
    UnsupportedVersion.CODE: 400,
    InsufficientScope.CODE: 403,
}
"""The statuses of error answers of newer revisions; all other answers have 200."""

_OLDER_STATUS = {InsufficientScope.CODE: 403}
"""Those of older ones, whose clients take other statuses for the failure of a connection."""

_OLDER_REFUSAL = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    HeaderMismatch.CODE: 400,
    UnsupportedVersion.CODE: 400,
}
"""Those of messages of older revisions that nothing was done about."""


def exchange_of(channel: Channel | None) -> Exchange | None:
    """The POST that a message came in."""
    while isinstance(channel, BatchAnswer):
        channel = channel.parent
    return cast("Exchange | None", channel)


async def respond(send: Send, status: int, body: bytes = b"", headers: list[tuple[bytes, bytes]] | None = None) -> None:
    """Send a whole response, whose body is JSON."""
    head = [JSON, (b"content-length", b"%d" % len(body))] if body else [] if status == 204 else [_EMPTY]
    try:
        await send({"type": "http.response.start", "status": status, "headers": head + headers if headers else head})
        await send({"type": "http.response.body", "body": body})
    except OSError:  # the client has left meanwhile
        pass


class Exchange(msgspec.Struct, eq=False, dict=True):
    """A `Channel` for the message, or the batch, in one POST. A struct, since one is made for each request."""

    statuses: ClassVar[Mapping[int, int]] = _STATUS
    refusals: ClassVar[Mapping[int, int]] = _STATUS

    engine: HttpEngine
    _given: Mapping[bytes, bytes] | Sequence[tuple[bytes, bytes]]
    who: Principal | None
    _send: Send
    tools: Mapping[str, tuple[names.HeaderParam, ...]] = {}
    """The tools that have arguments in headers."""
    stream: EventStream | None = None
    """The response, once it is one of events."""
    refused: tuple[int, str] | None = None
    """Why a message was refused that has no answer."""
    status: int | None = None
    """The status, where it is not that of the answer."""
    headers_of_new: list[tuple[bytes, bytes]] | None = None
    """The headers of a response that begins a session."""
    _plain: bytes | None = None
    _waiting: tuple[Context, Coroutine[Any, Any, Any], Any] | None = None
    """A handler that has to be waited for, and what it waits for."""
    _line: bytes | None = None
    _code: int | None = None
    _was_refused: bool = False
    """Whether nothing was done about the message."""
    _owed: int = 0
    _settled: asyncio.Future[None] | None = None
    _pumping: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        """Without headers: credentials are among them."""
        return f"<{type(self).__name__}>"

    @property
    def app(self) -> App:
        """The application that serves it."""
        return self.engine.app

    @property
    def principal(self) -> str | None:
        """Who makes the request."""
        return None if self.who is None else self.who.name

    @cached_property
    def headers(self) -> Mapping[bytes, bytes]:
        """The headers of the request."""
        return dict(self._given)

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The same as text."""
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in self.headers.items()}

    # As a channel

    def check(self, entry: Entry, params: Any) -> None:
        """Headers say nothing of what is in the body."""

    def opened(self) -> None:
        """One more answer is going to come."""
        self._owed += 1

    def refuse(self, line: bytes, code: int) -> None:
        """The error came for a message that nothing was done about."""
        self._was_refused = True
        self.opened()
        self.reply(line, code)

    def reply_at_once(self, line: bytes) -> bytes | None:
        """The answer came before anything else could; without a newline. It, where the response is nothing else."""
        self._line = line
        if self.stream is not None:
            self.stream.put(line, last=True)
            return None
        self._plain = line
        return line

    def reply(self, line: bytes, code: int | None) -> None:
        """The answer came."""
        self._line, self._code = line[:-1], code
        if self.stream is not None:
            self.stream.put(self._line, last=True)
        self.dropped()

    def dropped(self) -> None:
        """Nothing more is going to come."""
        self._owed -= 1
        if self._line is None and self.stream is not None:
            self.stream.end()
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)

    def tell(self, ctx: Context, line: bytes) -> bool:
        """Send a message ahead of the answer: the response becomes a stream of events."""
        if self.stream is None and not self.open_stream():
            self._tell_nobody(ctx)
            return False
        assert self.stream is not None
        if self.stream.is_overfull:
            self.app.report(Report(Kind.LOST, "a message: the client does not read", ctx.method, ctx.id))
            return False
        return self.stream.put(line[:-1])

    def _tell_nobody(self, ctx: Context) -> None:
        if ctx.method == LISTEN:
            self.status = 503
            raise RemoteError(INTERNAL_ERROR, TOO_MANY_STREAMS)
        self.app.report(Report(Kind.LOST, f"a message: {TOO_MANY_STREAMS}", ctx.method, ctx.id))

    def hang_up(self, retry: float) -> None:
        """Without a session nobody could come back."""

    def open_stream(self, kept: Kept | None = None, first: bytes = b"") -> bool:
        """Make the response a stream of events. False if there are too many."""
        self.stream = self.app.stream(self._send, kept)
        if self.stream is None:
            return False
        self._pumping = self.app.loop.create_task(self.stream.pump(first))
        return True

    # Running

    def take(self, body: bytes) -> bytes | None:
        """Take the message in. The answer, where the response is nothing else; otherwise there is more to `finish`."""
        self._take(body)
        return self._plain

    def wait_for(self, ctx: Context, handling: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        """A handler has made its first step, and waits."""
        self._waiting = ctx, handling, waits_for

    def _take(self, body: bytes) -> None:
        started = self.engine.start(body, self)
        if started is not None:
            ctx, handling = started
            try:
                waits_for = handling.send(None)
            except StopIteration as stop:
                self.engine.answer_at_once(ctx, stop.value)
            except BaseException as error:
                self.engine.note(ctx)
                self.engine.failed(ctx, error)
            else:
                self._waiting = ctx, handling, waits_for

    async def run(self, body: bytes, receive: Receive) -> None:
        """Take the message in, and respond."""
        self._take(body)
        await self.finish(receive)

    async def finish(self, receive: Receive) -> None:
        """Wait for what was taken in, and respond."""
        if self._waiting is not None:
            await self._wait(*self._waiting, receive)
        while self._line is None and self._owed > 0:
            await self._wait_for_tasks(receive)
        if self.is_unsettled():
            await self._settle()
        if self.stream is not None:
            await self._finish_stream()
        elif self._code is None and self._line is not None:
            await respond(self._send, 200, self._line, self.headers_of_new)
        else:
            await self._respond()

    async def _wait(self, ctx: Context, handling: Coroutine[Any, Any, Any], waits_for: Any, receive: Receive) -> None:
        """Wait for a handler. It is in this task from its first step to its last."""
        self.engine.note(ctx)
        ctx.task = task = asyncio.current_task()
        assert task is not None
        self.takes_time(ctx)
        watching = self.app.loop.create_task(self._watch(receive, ctx))
        outside = task.cancelling()
        try:
            result = await resumed(handling, waits_for)
        except asyncio.CancelledError as error:
            self.interrupted(ctx, error)
            if task.cancelling() > outside and not ctx.cancelled:
                await self._say_goodbye(ctx)
                raise
        except BaseException as error:
            self.engine.failed(ctx, error)
        else:
            self.engine.answer(ctx, result)
        finally:
            watching.cancel()
        if task.cancelling() > outside:
            await _take_cancellation(task, outside)

    def interrupted(self, ctx: Context, error: asyncio.CancelledError) -> None:
        """The handler was cancelled: by the client, or by the end of the server."""
        if ctx.method == LISTEN and not ctx.cancelled:
            self.engine.answer(ctx, self.engine.subscriptions.farewell(ctx))
        else:
            self.engine.failed(ctx, error)

    async def _say_goodbye(self, ctx: Context) -> None:
        """The server ends: the client should hear of it."""
        if self.stream is not None and self._pumping is not None:
            self.stream.end()
            await asyncio.wait([self._pumping], timeout=self.app.service.grace)
        elif not ctx.cancelled:
            await self._respond()

    async def _settle(self) -> None:
        try:
            await self.settle()
        except ConnectionError as error:
            if self.stream is None:
                raise
            self.app.report(Report(Kind.BROKEN, f"the store cannot be reached: {error}", error=error))

    def is_unsettled(self) -> bool:
        """Whether something has to be done before the answer goes out."""
        return False

    async def settle(self) -> None:
        """Do it."""

    def takes_time(self, ctx: Context) -> None:
        """The handler waits for something."""

    async def _watch(self, receive: Receive, ctx: Context) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left(ctx)

    def left(self, ctx: Context) -> None:
        """The client has closed the connection."""
        raise NotImplementedError

    async def _wait_for_tasks(self, receive: Receive) -> None:
        """Wait until something is answered from a task of its own."""
        self._settled = self.app.loop.create_future()
        watching = self.app.loop.create_task(self._watch_all(receive))
        try:
            await self._settled
        finally:
            watching.cancel()

    async def _watch_all(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        for ctx in list(self.engine.in_flight.values()):
            if exchange_of(ctx.channel) is self:
                self.left(ctx)

    async def _finish_stream(self) -> None:
        assert self.stream is not None
        assert self._pumping is not None
        if self._line is None:
            self.stream.end()
        await self._pumping

    async def _respond(self) -> None:
        status, body = 200, self._line or b""
        if self._line is None:
            status, body = self._acknowledgement()
        elif self._code is not None:
            statuses = self.refusals if self._was_refused else self.statuses
            status = self.status or statuses.get(self._code, 200)
        await respond(self._send, status, body, self.extra_headers(status))

    def _acknowledgement(self) -> tuple[int, bytes]:
        """What is said to a message that has no answer."""
        if self.refused is None:
            return 202, b""
        code, text = self.refused
        return 400, error_bytes(None, code, text)[:-1]

    def extra_headers(self, status: int) -> list[tuple[bytes, bytes]] | None:
        """Further headers of the response."""
        if status == 403 and self.app.auth is not None:
            return list(self.app.auth.lacking(_scopes(self._line or b"{}")).headers)
        return RETRY_SOON if status == 503 else None

    # Of the revisions that have no sessions

    def check_arguments(self, frame: Frame) -> None:
        """Raises `HeaderMismatch` where headers say something else of the arguments of a tool than the body."""


RETRY_SOON = [(b"retry-after", b"10")]
"""For a response that says what may be otherwise in some seconds."""

TOO_MANY_STREAMS = "there are as many streams as there may be"


def _scopes(answer: bytes) -> list[str]:
    """The scopes that an error names."""
    data: Any = msgspec.json.decode(answer).get("error", {}).get("data")
    scopes: Any = data.get("requiredScopes") if is_object(data) else None
    return [scope for scope in scopes if isinstance(scope, str)] if is_array(scopes) else []


async def _take_cancellation(task: asyncio.Task[Any], outside: int) -> None:
    """The task was to be cancelled when the handler had ended already: that is nothing to whoever comes next."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    while task.cancelling() > outside:
        task.uncancel()


class LeavingExchange(Exchange):
    """A POST that is given up by whoever closes its connection."""

    def left(self, ctx: Context) -> None:
        """The client has closed the connection: it wants no answer any more."""
        ctx.cancelled = True
        if self.engine.in_flight.pop(ctx, None) is not None and ctx.channel is not None:
            ctx.channel.dropped()
        if self.stream is not None:
            self.stream.detach()
        if ctx.task is not None:
            ctx.task.cancel()


class StatelessExchange(LeavingExchange):
    """A POST without a session: who closes the connection gives the request up."""

    def check(self, entry: Entry, params: Any) -> None:
        """Raises `ValueError` where headers may not say what the body says; `Stateless.admit` knows for sure."""
        headers, member = self.headers, entry.names
        if headers.get(b"mcp-method") != entry.header or headers.get(b"mcp-protocol-version") != _DIALECT:
            raise ValueError
        if member is None:
            return
        value, said = getattr(params, member, None), headers.get(b"mcp-name", b"=?")
        if value is None or value in self.tools or not names.is_plain(said, value):
            raise ValueError

    def check_arguments(self, frame: Frame) -> None:
        """Raises `HeaderMismatch` where headers say something else of the arguments of a tool than the body."""
        params: Any = frame.value.get("params", {})
        if frame.method != "tools/call" or not isinstance(params.get("name"), str):
            return
        for param in self.tools.get(params["name"], ()):
            _check_argument(param, self.headers.get(param.header.encode("latin-1")), params.get("arguments", {}))


class OlderStatelessExchange(LeavingExchange):
    """A POST of an older revision to a server without sessions."""

    statuses: ClassVar[Mapping[int, int]] = _OLDER_STATUS
    refusals: ClassVar[Mapping[int, int]] = _OLDER_REFUSAL


def _check_argument(param: names.HeaderParam, header: bytes | None, arguments: Any) -> None:
    value = names.value_at(arguments, param.path) if is_object(arguments) else None
    if value is None and header is None:
        return
    name = param.header.title()
    if header is None:
        raise HeaderMismatch(f"{name}: required, but missing")
    text = names.text_of(header)
    try:
        agrees = value is not None and names.same(text, value)
    except ValueError as error:
        raise HeaderMismatch(f"{name}: {error}") from error
    if not agrees:
        place = ".".join(param.path)
        raise HeaderMismatch(f"{name} is {text!r}, which is not what the body has at arguments.{place}")


class SessionExchange(Exchange):
    """A POST in a session: a lost connection is no reason to give the request up."""

    statuses: ClassVar[Mapping[int, int]] = _OLDER_STATUS
    refusals: ClassVar[Mapping[int, int]] = _OLDER_REFUSAL

    begins: Callable[[SessionExchange], Awaitable[None]] | None = None
    """Called where the session begins with this request."""

    @property
    def session(self) -> SessionEngine:
        """The session that it is in."""
        return cast("SessionEngine", self.engine)

    def is_unsettled(self) -> bool:
        """Whether something of the session has changed, or it may have begun."""
        return self.begins is not None or bool(self.session.todo)

    async def settle(self) -> None:
        """Keep that."""
        if self.begins is not None and self.session.handshake.agreed is not None and self._code is None:
            await self.begins(self)
            self.headers_of_new: list[tuple[bytes, bytes]] | None = [(b"mcp-session-id", self.session.id.encode())]
        await self.session.settle()

    def takes_time(self, ctx: Context) -> None:
        """Whoever waits gets a stream that can be resumed, where the revision knows how to begin one."""
        if takes_empty_events(ctx.revision) and self.stream is None and ctx.id is not None:
            self._open_kept(ctx)

    def tell(self, ctx: Context, line: bytes) -> bool:
        """Send a message ahead of the answer."""
        if self.stream is None:
            self._open_kept(ctx)
        return super().tell(ctx, line)

    def _open_kept(self, ctx: Context) -> None:
        will = error_bytes(ctx.id, CallLost.CODE, CallLost().message)[:-1]
        kept = Kept(self.app.store, self.session.id, self.app.nonce(), will)
        self.open_stream(kept, self.app.first_event(ctx.revision, f"{kept.name}.0"))

    def left(self, ctx: Context) -> None:  # noqa: ARG002  # the call goes on
        """The client has closed the connection; it may come back for the answer."""
        if self.stream is not None:
            self.stream.detach()

    def hang_up(self, retry: float) -> None:
        """Close the connection; the client comes back for the answer."""
        if self.stream is not None:
            self.stream.hang_up(round(retry * 1000))


LISTEN = "subscriptions/listen"
