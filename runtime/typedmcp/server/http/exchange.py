"""One POST and its response: JSON, a stream of events, or just a status."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any, ClassVar, cast

import msgspec

from mcpspec.support.objects import is_array, is_object
from typedmcp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    CallLostError,
    HeaderMismatchError,
    InsufficientScopeError,
    MissingCapabilityError,
    RemoteError,
    UnsupportedVersionError,
)
from typedmcp.frames import OnFrame
from typedmcp.protocol.budgets import CALL_BYTES, Hold
from typedmcp.protocol.codec import MethodCodec, encode_error
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.garbage import collector_paused
from typedmcp.revisions.features import FEATURES
from typedmcp.server.batches import without_results
from typedmcp.server.context import Context
from typedmcp.server.dispatcher import resume
from typedmcp.server.http.clients import REQUEST_SCOPE, client_at, client_of_principal
from typedmcp.server.http.dispatchers import HttpDispatcher, SessionDispatcher, StatelessDispatcher, http_sink
from typedmcp.server.http.header_checks import UNKNOWN_PARAMS, HeaderParams
from typedmcp.server.http.messages import (
    LARGE_BODY_BYTES,
    RETRY_LATER,
    TOO_MANY_STREAMS,
    Headers,
    HTTPException,
    RawHeaders,
    Receive,
    Scope,
    Send,
    accepts,
    headers_as_text,
    respond,
)
from typedmcp.server.http.state import AppState
from typedmcp.server.http.streams import EventStream, StreamLog
from typedmcp.server.principal import Principal

__all__ = ["Exchange", "LegacyStatelessExchange", "SessionExchange", "StatelessExchange"]

_LISTEN = "subscriptions/listen"

_STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    HeaderMismatchError.CODE: 400,
    MissingCapabilityError.CODE: 400,
    UnsupportedVersionError.CODE: 400,
    InsufficientScopeError.CODE: 403,
}
"""The statuses of errors on modern revisions, by code. All other responses have status 200."""

_LEGACY_STATUS = {InsufficientScopeError.CODE: 403}
"""The statuses of errors on legacy revisions, whose clients treat other statuses as a failure of the connection."""

_LEGACY_REJECTION_STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    HeaderMismatchError.CODE: 400,
    UnsupportedVersionError.CODE: 400,
}
"""The statuses of errors on legacy revisions for messages that were rejected before they reached a handler."""


_STORED = frozenset(("subscribe", "unsubscribe"))
"""The handlers that wait for the store alone."""


class Exchange(msgspec.Struct, eq=False):
    """The `HttpSink` of the message or batch in one POST. A struct, since one is made for each request."""

    statuses: ClassVar[Mapping[int, int]] = _STATUS
    rejection_statuses: ClassVar[Mapping[int, int]] = _STATUS

    dispatcher: HttpDispatcher
    _headers: Headers | RawHeaders
    principal: Principal | None
    """The principal that makes the request, if the application requires credentials."""
    _send: Send
    header_params: HeaderParams = UNKNOWN_PARAMS
    """The parameters of the called tool that headers repeat; empty for other methods."""
    stream: EventStream | None = None
    """The response, once it is a stream of events."""
    rejection: tuple[int, str] | None = None
    """Code and text of the error for a rejected message that has no response."""
    scope: Scope | None = None
    """The scope of a request on the hot path."""
    status: int | None = None
    """The status of the response, if it does not follow from the error."""
    session_headers: list[tuple[bytes, bytes]] | None = None
    """The headers of a response that begins a session."""
    _immediate: bytes | None = None
    """The response of a handler that did not wait, if the response has nothing else."""
    _suspended: tuple[Context, Coroutine[Any, Any, Any], Any] | None = None
    """A handler that waits, and what it waits for."""
    _line: bytes | None = None
    """The response to the message; empty once a stream has it."""
    _code: int | None = None
    _was_rejected: bool = False
    """True if the message did not reach a handler."""
    _open_requests: int = 0
    _changed: asyncio.Future[None] | None = None
    """Completes once a request has been answered or abandoned."""
    _pumping: asyncio.Task[None] | None = None
    """Sends the stream while the handler waits or changes are stored; None if `finish` sends it itself."""
    _first: bytes = b""
    """The first bytes of the stream."""
    _is_finishing: bool = False
    """True once `finish` has begun."""
    _watching: asyncio.Task[None] | None = None
    """Waits for the disconnection of the client, once the handler has waited for a moment."""
    _on_frame: OnFrame | None = None
    """Called with the messages of this exchange, if there is a sink for them."""

    def __repr__(self) -> str:
        """Leave out the headers, since they may contain credentials."""
        return f"<{type(self).__name__}>"

    @property
    def state(self) -> AppState:
        """The state of the application."""
        return self.dispatcher.state

    @property
    def expires(self) -> float | None:
        """The time at which the credentials of the request expire."""
        return None if self.principal is None else self.principal.expires

    @property
    def client(self) -> str | None:
        """The client that budgets count for."""
        scope = self.scope
        if scope is None or self.principal is not None:
            return client_of_principal(self.principal)
        address = scope.get("client")
        return client_at(address[0]) if address else None

    @property
    def header_bytes(self) -> int:
        """The size of the headers."""
        headers: Any = self._headers
        pairs: Iterable[tuple[bytes, bytes]] = headers.items() if headers.__class__ is dict else headers
        return sum(map(len, chain.from_iterable(pairs)))  # a loop in Python would cost 2 % of a call that waits

    @property
    def headers(self) -> Headers:
        """The headers of the request by name."""
        if not isinstance(self._headers, dict):
            self._headers = dict(self._headers)
        return self._headers

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the request as text."""
        return headers_as_text(self.headers)

    # The sink for responses

    def check_headers(self, method_codec: MethodCodec, params: Any) -> None:
        """Accept any headers: on legacy revisions they repeat nothing of the body."""

    def expect(self) -> None:
        """Expect one more response."""
        self._open_requests += 1

    def reject(self, line: bytes, code: int) -> None:
        """Send the error for a message that did not reach a handler."""
        self._was_rejected = True
        self.expect()
        self.send_response(line, code)

    def send_fast(self, line: bytes) -> None:
        """Send the response of a handler that did not wait."""
        if self.stream is None:
            self._line = self._immediate = line
        else:
            self._end_stream(self.stream, line)

    def send_response(self, line: bytes, code: int | None) -> None:
        """Send a response; `code` is that of an error."""
        self._code = code
        if self.stream is None:
            self._line = line
        else:
            self._end_stream(self.stream, line)
        self.abandon()

    def _end_stream(self, stream: EventStream, line: bytes) -> None:
        """Send the response as the last event of a stream; errors if it is large and its client holds its share."""
        if len(line) > LARGE_BODY_BYTES and not stream.hold.take(0):
            line = without_results(line)
        stream.put(line, last=True)
        self._line = b""  # the stream has it

    def abandon(self) -> None:
        """Expect one response fewer."""
        self._open_requests -= 1
        if self._line is None and self.stream is not None:
            self.stream.end()
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def send_message(self, ctx: Context, line: bytes) -> bool:
        """Send a message before the response, which becomes a stream of events. False if the message is dropped."""
        if self.stream is None and not self.open_stream():
            self._drop_message(ctx)
            return False
        assert self.stream is not None
        if self.stream.is_overfull:
            text = "a message: the client reads too slowly"
            self.state.report(Diagnostic(DiagnosticKind.DROPPED, text, ctx.method, ctx.id))
            return False
        return self.stream.put(line)

    def _drop_message(self, ctx: Context) -> None:
        """Report a message for which no stream can be opened; a subscription fails instead."""
        is_accepted = self.accepts_streams
        why = TOO_MANY_STREAMS if is_accepted else "the header Accept lacks text/event-stream"
        if ctx.method == _LISTEN:
            self.status = 503 if is_accepted else 406
            raise RemoteError(INTERNAL_ERROR if is_accepted else INVALID_REQUEST, why)
        self.state.report(Diagnostic(DiagnosticKind.DROPPED, f"a message: {why}", ctx.method, ctx.id))

    @property
    def accepts_streams(self) -> bool:
        """True if the client accepts a stream of events as the response."""
        return accepts(self.headers, b"text/event-stream")

    def disconnect(self, retry: float) -> None:
        """Do nothing: a client without a session could not reconnect for the response."""

    def open_stream(self, log: StreamLog | None = None, first: bytes = b"") -> bool:
        """Make the response an event stream that begins with `first`.

        False if the limit on streams is reached, or if the client does not accept them.
        """
        self.stream = self.state.open_stream(self._send, self.client, log) if self.accepts_streams else None
        if self.stream is None:
            return False
        self.stream.on_frame = self._on_frame
        self._first = first
        if self._is_finishing:
            self._start_pumping(self.stream)
        return True

    def _start_pumping(self, stream: EventStream) -> None:
        """Send a stream in a task of its own. One that is complete before `finish` needs none."""
        self._pumping = self.state.loop.create_task(stream.pump(self._first))
        self._pumping.add_done_callback(lambda _: self.state.forget_stream(stream))  # it may end before it begins

    # Running

    def handle(self, body: bytes) -> bytes | None:
        """Dispatch the message. Return the response if it is complete; otherwise `finish` has to be awaited."""
        dispatcher = self.dispatcher
        started = dispatcher.dispatch_slow(body, self) if dispatcher.full_clients else dispatcher.dispatch(body, self)
        if started is None:
            return self._immediate
        ctx, handling = started
        try:
            waits_for = handling.send(None)
        except StopIteration as stop:
            line = dispatcher.encode_result(ctx, stop.value)
            if line is not None and self.stream is None:
                self._line = line
                return line
            dispatcher.send_encoded(ctx, stop.value, line)
        except BaseException as error:
            dispatcher.ensure_registered(ctx)
            dispatcher.respond_error(ctx, error)
        else:
            self._suspended = ctx, handling, waits_for
        return self._immediate

    async def run(self, body: bytes, receive: Receive) -> None:
        """Dispatch the message, and send the response."""
        if self.state.config.record is not None:
            self._on_frame = self.dispatcher.open_frames()
            if self._on_frame is not None:
                self._on_frame("client", body)
        if len(body) > LARGE_BODY_BYTES:
            await self._handle_in_turn(body)
        else:
            self.handle(body)
        del body
        try:
            await self.finish(receive)
        except HTTPException as error:
            error.on_frame = self._on_frame
            raise

    async def _handle_in_turn(self, body: bytes) -> None:
        """Dispatch a large message, which takes long to decode: all of them get at most half of the loop's time."""
        slots, client = self.state.large_bodies, self.client
        await slots.acquire(client)
        loop = self.state.loop
        began = loop.time()
        try:
            with collector_paused():  # looking for cycles in a decoded message would take two thirds of the time
                self.handle(body)
        finally:
            loop.call_later(loop.time() - began, slots.release, client)

    async def finish(self, receive: Receive) -> None:
        """Wait for the handlers of the message, and send the response."""
        self._is_finishing = True
        if self.stream is not None and (self._line is None or self.has_unsaved_changes()):
            self._start_pumping(self.stream)
        suspended, self._suspended = self._suspended, None  # it refers to this object, and would keep the result
        if suspended is not None:
            await self._resume_handler(*suspended, receive)
        while self._line is None and self._open_requests > 0:
            await self._wait_for_tasks(receive)
        if self.stream is not None and self._line is None:
            self.stream.end()
        if self.has_unsaved_changes():
            await self._save_changes()
        if self.stream is not None:
            await self._finish_stream()
        elif self._code is None and self._line is not None:
            if len(self._line) > LARGE_BODY_BYTES:
                await self._respond_large(self._line)
            else:
                await respond(self._send, 200, self._line, self.session_headers, self._on_frame)
        else:
            await self._respond()

    async def _respond_large(self, line: bytes) -> None:
        """Send a large result, which counts until the client has read it; an error if its client holds its share."""
        with Hold(self.state.config.budgets.calls, self.client) as hold:
            if not hold.take(len(line)):
                line = without_results(line)
                self._line = None  # it may be large
            await respond(self._send, 200, line, self.session_headers, self._on_frame)

    async def _resume_handler(
        self, ctx: Context, handling: Coroutine[Any, Any, Any], waits_for: Any, receive: Receive
    ) -> None:
        """Run a handler to its end, in the same task as its first step."""
        self.dispatcher.ensure_registered(ctx)
        size = CALL_BYTES + len(ctx.raw) + self.header_bytes
        use = self.dispatcher.hold(self.client, size)
        ctx.task = task = asyncio.current_task()
        assert task is not None
        waiting = self.state.waiting
        if ctx.method == _LISTEN:  # which waits for as long as the client is there
            self._start_watching(ctx, receive)
        else:
            waiting.add(ctx, self._start_watching, receive)
        outside = task.cancelling()
        try:
            result = await resume(handling, waits_for)
        except asyncio.CancelledError as error:
            self.on_cancelled(ctx, error)
            if task.cancelling() > outside and not ctx.cancelled:
                await self._end_response(ctx)
                raise
        except BaseException as error:
            self.dispatcher.respond_error(ctx, error)
        else:
            self.dispatcher.respond(ctx, result)
        finally:
            waiting.remove(ctx)
            if self._watching is not None:
                self._watching.cancel()
            self.dispatcher.release(use, size)
        if task.cancelling() > outside:
            await _absorb_cancellation(task, outside)

    def _start_watching(self, ctx: Context, receive: Receive) -> None:
        """Notice from now on when the client disconnects."""
        self._watching = self.state.loop.create_task(self._watch(receive, ctx))
        self.on_suspend(ctx)

    def on_cancelled(self, ctx: Context, error: asyncio.CancelledError) -> None:
        """Respond to a request whose handler was cancelled by the client, or because the server is closing."""
        if ctx.method == _LISTEN and not ctx.cancelled:
            self.dispatcher.respond(ctx, self.dispatcher.subscriptions.final_result(ctx))
        else:
            self.dispatcher.respond_error(ctx, error)

    async def _end_response(self, ctx: Context) -> None:
        """Send the available part of the response, since the server is closing."""
        if self.stream is not None and self._pumping is not None:
            self.stream.end()
            await asyncio.wait([self._pumping], timeout=self.state.config.grace)
        elif not ctx.cancelled:
            await self._respond()

    def has_unsaved_changes(self) -> bool:
        """Return whether changes of the session have to be stored before the response is sent."""
        return False

    async def save_changes(self) -> None:
        """Store the changes of the session."""

    async def _save_changes(self) -> None:
        try:
            await self.save_changes()
        except ConnectionError as error:
            if self.stream is None:
                raise
            self.state.report_unreachable_store(error)

    def on_suspend(self, ctx: Context) -> None:
        """Prepare for a handler that waits for longer than a moment."""

    def on_disconnect(self, ctx: Context) -> None:
        """Handle the disconnection of the client."""
        raise NotImplementedError

    async def _watch(self, receive: Receive, ctx: Context) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.on_disconnect(ctx)

    async def _wait_for_tasks(self, receive: Receive) -> None:
        """Wait until a handler that has a task of its own has responded."""
        self._changed = self.state.loop.create_future()
        watching = self.state.loop.create_task(self._watch_all(receive))
        try:
            await self._changed
        finally:
            watching.cancel()

    async def _watch_all(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        for ctx in list(self.dispatcher.in_flight.values()):
            if http_sink(ctx.sink) is self:
                self.on_disconnect(ctx)

    async def _finish_stream(self) -> None:
        assert self.stream is not None
        await (self.stream.pump(self._first) if self._pumping is None else self._pumping)

    async def _respond(self) -> None:
        status, body = 200, self._line or b""
        if self._line is None:
            status, body = self._acknowledgement()
        elif self._code is not None:
            statuses = self.rejection_statuses if self._was_rejected else self.statuses
            status = self.status or statuses.get(self._code, 200)
        await respond(self._send, status, body, self._extra_headers(status), self._on_frame)

    def _acknowledgement(self) -> tuple[int, bytes]:
        """Return status and body of the response to a message that has no JSON-RPC response."""
        if self.rejection is None:
            return 202, b""
        code, text = self.rejection
        return 400, encode_error(None, code, text)

    def _extra_headers(self, status: int) -> list[tuple[bytes, bytes]] | None:
        if status == 403 and self.state.auth is not None:
            scope = REQUEST_SCOPE.get({}) if self.scope is None else self.scope
            text, scopes = _required_scopes(self._line or b"{}")
            return list(self.state.auth.insufficient_scope(scopes, scope.get("root_path", ""), text).headers)
        return RETRY_LATER if status == 503 else None


def _required_scopes(line: bytes) -> tuple[str | None, list[str]]:
    """Return the text of an error, and the scopes that it names."""
    error: Any = msgspec.json.decode(line).get("error", {})
    data: Any = error.get("data")
    scopes: Any = data.get("requiredScopes") if is_object(data) else None
    return error.get("message"), [scope for scope in scopes if isinstance(scope, str)] if is_array(scopes) else []


async def _absorb_cancellation(task: asyncio.Task[Any], outside: int) -> None:
    """Absorb a cancellation that arrived after the handler had ended: it must not affect the next request."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    while task.cancelling() > outside:
        task.uncancel()


class SessionlessExchange(Exchange):
    """A POST whose request is cancelled when the client disconnects."""

    def on_disconnect(self, ctx: Context) -> None:
        """Cancel the request."""
        ctx.cancelled = True
        if self.dispatcher.in_flight.pop(ctx, None) is not None and ctx.sink is not None:
            ctx.sink.abandon()
        if self.stream is not None:
            self.stream.detach()
        if ctx.task is not None:
            ctx.task.cancel()


class StatelessExchange(SessionlessExchange):
    """A POST on a modern revision."""

    mcp_method: bytes | None = None
    """The header `Mcp-Method`, once it and the version have been read."""
    mcp_name: bytes | None = None
    """The header `Mcp-Name`, if it has been read."""

    def check_headers(self, method_codec: MethodCodec, params: Any) -> None:
        """Raise `ValueError` if the headers may contradict the body; `StatelessDispatcher` then checks precisely."""
        if self.mcp_method is None:
            self._read_headers()
        if self.mcp_method != method_codec.header:
            raise ValueError
        member = method_codec.name_param
        if member is not None:
            value = getattr(params, member)
            if self.header_params:
                raise ValueError
            dispatcher: Any = self.dispatcher
            if dispatcher.plain_names.get(self.mcp_name) != value:
                dispatcher.check_plain(self.mcp_name, value)

    def _read_headers(self) -> None:
        headers, dispatcher = self.headers, cast("StatelessDispatcher", self.dispatcher)
        if headers.get(b"mcp-protocol-version") == dispatcher.version_header:
            self.mcp_method, self.mcp_name = headers.get(b"mcp-method"), headers.get(b"mcp-name")


class LegacyStatelessExchange(SessionlessExchange):
    """A POST on a legacy revision to a server without sessions."""

    statuses: ClassVar[Mapping[int, int]] = _LEGACY_STATUS
    rejection_statuses: ClassVar[Mapping[int, int]] = _LEGACY_REJECTION_STATUS


class SessionExchange(Exchange):
    """A POST in a session, whose request goes on when the client disconnects."""

    statuses: ClassVar[Mapping[int, int]] = _LEGACY_STATUS
    rejection_statuses: ClassVar[Mapping[int, int]] = _LEGACY_REJECTION_STATUS

    create_session: Callable[[SessionExchange], Awaitable[None]] | None = None
    """Stores the session, if this request may begin it."""
    _retry: float | None = None
    """Seconds after which the client reconnects, if the handler wants to disconnect it before there is a stream."""

    @property
    def session(self) -> SessionDispatcher:
        """The dispatcher of the session."""
        return cast("SessionDispatcher", self.dispatcher)

    def has_unsaved_changes(self) -> bool:
        """Return whether the session has changed, or may have begun."""
        return self.create_session is not None or bool(self.session.unsaved)

    async def save_changes(self) -> None:
        """Store the session that begins, or its changes."""
        if self.create_session is not None and self.session.handshake.metadata is not None and self._code is None:
            await self.create_session(self)
            self.session_headers: list[tuple[bytes, bytes]] | None = [(b"mcp-session-id", self.session.id.encode())]
        await self.session.save()

    def on_suspend(self, ctx: Context) -> None:
        """Open a resumable stream, if the revision can begin one without a message."""
        is_short = ctx.method_codec.handler_name in _STORED  # one answer of the store
        if FEATURES[ctx.revision].has_empty_events and self.stream is None and ctx.id is not None and not is_short:
            self._open_resumable(ctx)

    def send_message(self, ctx: Context, line: bytes) -> bool:
        """Send a message before the response, in a resumable stream."""
        if self.stream is None:
            self._open_resumable(ctx)
        return super().send_message(ctx, line)

    def _open_resumable(self, ctx: Context) -> None:
        final_event = encode_error(ctx.id, CallLostError.CODE, CallLostError().message)
        log = StreamLog(self.state.store, self.session.id, self.state.unique_name(), final_event)
        if self.open_stream(log, self.state.first_event(ctx.revision, f"{log.name}.0")) and self._retry is not None:
            self.disconnect(self._retry)

    def on_disconnect(self, ctx: Context) -> None:  # noqa: ARG002  # the request goes on
        """Stop sending; the client can resume the stream."""
        if self.stream is not None:
            self.stream.detach()

    def disconnect(self, retry: float) -> None:
        """Close the connection. The client reconnects for the response after `retry` seconds."""
        if self.stream is not None:
            self.stream.hang_up(round(retry * 1000))
        else:
            self._retry = retry  # until there is a stream to resume
