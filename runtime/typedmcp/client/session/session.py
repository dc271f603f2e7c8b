"""A session with one server: open calls, and the dispatch of every message that arrives.

`typedmcp.protocol.pending` keeps the table of calls with their deadlines, and `typedmcp.protocol.framing` classifies
invalid messages. A subclass moves the bytes: `StreamSession` over a byte stream, `HttpSession` with one request per
message. Sessions know neither revisions nor types: a result is passed on as the bytes that the server sent.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpspec.support.objects import is_object
from typedmcp.client.requests.param_headers import ParamHeaders
from typedmcp.errors import ConnectionLostError, Error, ProtocolError, RemoteError
from typedmcp.limits import Limits
from typedmcp.observers import Network
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import (
    Batch,
    Frame,
    InvalidMessage,
    OversizeMessage,
    RequestId,
    classify,
    classify_value,
    find_response_id,
)
from typedmcp.protocol.pending import Call, PendingRequests
from typedmcp.transports.deadlines import Timer

__all__ = [
    "ClientSession", "Exchange", "Notify", "PendingCall", "RepeatableError", "SessionListener", "SessionLostError",
    "SessionObservation",
]  # fmt: skip


class _Message(msgspec.Struct):
    """Any message. Its parts stay undecoded until their receiver decodes them."""

    jsonrpc: Literal["2.0"]
    id: RequestId | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_decode = msgspec.json.Decoder(_Message).decode


class SessionListener(Protocol):
    """Receives the messages of a server that are not responses."""

    is_strict: bool
    """True if messages that break the specification harmlessly are rejected."""

    def on_notification(self, method: str, params: bytes, call: Call | None) -> None:
        """Handle a notification. `call` is the open call that its progress token names."""
        ...

    def on_request(self, id: RequestId, method: str, params: bytes) -> None:
        """Handle a request of the server. Only legacy revisions have them."""
        ...

    def report(self, diagnostic: Diagnostic) -> None:
        """Handle a diagnostic."""
        ...

    def tolerate(self, text: str, method: str | None = None) -> bool:
        """Report that a message breaks the specification harmlessly. Return False if it must be rejected instead."""
        ...

    def on_disconnect(self) -> None:
        """Handle the end of the session."""
        ...


Exchange: TypeAlias = Callable[[Call, Any], Coroutine[Any, Any, Raw]]
"""Sends a request, and returns the bytes of its result."""

Notify: TypeAlias = Callable[[str, Any], None]
"""Sends a notification."""


class SessionObservation(Protocol):
    """Observes the messages of a session."""

    def around_exchange(self, exchange: Exchange) -> Exchange:
        """Return a function that calls `exchange` and observes it."""
        ...

    def around_notify(self, notify: Notify) -> Notify:
        """Return a function that calls `notify` and observes it."""
        ...

    def around_listener(self, listener: SessionListener) -> SessionListener:
        """Return a listener that passes messages of the server to `listener` and observes them."""
        ...


class RepeatableError(ConnectionLostError):
    """The call failed, and may be made again."""


class SessionLostError(RepeatableError):
    """The server has forgotten the session, so it did not execute the call."""


class PendingCall:
    """An open call: the future of its result, and its progress callback."""

    __slots__ = ("is_sent", "on_progress", "response", "timer")

    def __init__(self, response: asyncio.Future[Raw], on_progress: Callable[[Any], object] | None = None) -> None:
        self.response: asyncio.Future[Raw] = response
        self.on_progress: Callable[[Any], object] | None = on_progress
        self.timer: Timer | None = None
        """The timer of the task that makes the call, over HTTP."""
        self.is_sent: bool = False
        """True once the request is sent, so that it can be cancelled."""


class ClientSession(ABC):
    """A session with a server, over any transport."""

    is_renewable: bool = False
    """True if a new session may follow this one without the option `restart`."""

    network: Network | None = None
    """The carrier of the messages. None if the transport does not say it."""

    url: str | None = None
    """The URL of the server, over HTTP."""

    session_id: str | None = None
    """The id of the session, over HTTP with a legacy server."""

    param_headers: ParamHeaders | None = None
    """The parameters that requests repeat in headers, over HTTP."""

    def __init__(self, listener: SessionListener, limits: Limits) -> None:
        self.requests: PendingRequests = PendingRequests()
        self.limits: Limits = limits
        self.abort_reason: str | None = None
        """Why the client ended the session, if it did so because of what the server sent."""
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._closing: asyncio.Task[None] | None = None
        self.has_ended: bool = False
        """True once no further call can be made."""
        self.end_event: asyncio.Event = asyncio.Event()
        """Set once all open calls have failed."""

    # Calls

    def start_call(
        self,
        method: str,
        *,
        timeout: float | None = None,
        latest: float | None = None,
        on_progress: Callable[[Any], object] | None = None,
    ) -> Call:
        """Register a call with a new id, which is also its progress token. Then call `exchange`.

        `timeout` is the time in seconds without a response or progress, `latest` the total time.
        Raises `ConnectionLostError` if the session has ended.
        """
        if self.has_ended:
            raise self.end_error().attach_call(method, "none")
        pending = PendingCall(self._loop.create_future(), on_progress)
        return self.requests.add_call(method, pending, self._loop.time(), timeout=timeout, latest=latest)

    def observe(self, observer: SessionObservation) -> None:
        """Pass requests, notifications and messages of the server through an observer.

        It replaces the methods of this session alone, so that sessions without an observer have no code for it.
        """
        self.exchange = observer.around_exchange(self.exchange)  # type: ignore[assignment, method-assign]
        self.notify = observer.around_notify(self.notify)  # type: ignore[assignment, method-assign]
        self._listener = observer.around_listener(self._listener)

    @property
    def is_signing_in(self) -> bool:
        """True while a person may be signing in, which takes longer than a response."""
        return False

    @abstractmethod
    async def exchange(self, call: Call, params: Any) -> Raw:
        """Send a request and return the bytes of its result. A cancelled call is cancelled at the server.

        Raises `RemoteError` for an error response, `RequestTimeoutError`, `ConnectionLostError` at the end of the
        connection, and `ProtocolError` for an invalid response.
        """

    @abstractmethod
    def exchange_in_background(self, method: str, params: Any, timeout: float) -> None:
        """Send a request and discard its response. `timeout` is in seconds."""

    @abstractmethod
    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""

    async def notify_in_order(self, method: str) -> None:
        """Send a notification that no later message overtakes."""
        self.notify(method)

    @abstractmethod
    def respond(self, id: RequestId, result: Any) -> None:
        """Send the result of a request of the server."""

    @abstractmethod
    def respond_with_error(self, id: RequestId, code: int, message: str, data: Any = None) -> None:
        """Send an error response to a request of the server."""

    @property
    @abstractmethod
    def is_congested(self) -> bool:
        """True while the server is not reading."""

    def propose_revision(self, revision: str) -> None:  # noqa: B027  # only HTTP needs it
        """Use this modern revision for requests until a revision is negotiated."""

    async def apply_revision(self, revision: str, *, handshake: bool) -> None:  # noqa: ARG002  # HTTP needs it
        """Use the negotiated revision from now on, and complete the handshake if there was one."""
        if handshake:
            await self.notify_in_order("notifications/initialized")

    async def wait_for_server_messages(self) -> None:  # noqa: B027  # only HTTP needs it
        """Wait until messages of the server can arrive, which are no responses."""

    def record_progress(self, call: Call) -> None:
        """Restart the timeout of a call, on which the server reports progress."""
        self.requests.record_progress(call.id, self._loop.time())
        pending: PendingCall = call.owner
        if pending.timer is not None and not pending.timer.expired():
            pending.timer.reschedule(call.deadline)

    @abstractmethod
    def end_error(self) -> Error:
        """Return the error for calls that are open when the session ends."""

    def abort(self, reason: str) -> None:
        """End the session because of what the server sent. Nothing more is read from it."""
        self.abort_reason = reason
        self.has_ended = True

    def tolerate(self, text: str, method: str | None = None) -> bool:
        """Report that a message breaks the specification harmlessly. Return False if it must be rejected instead."""
        return self._listener.tolerate(text, method)

    def _fail_all_calls(self) -> None:
        self.has_ended = True
        for call in self.requests.close()[1]:
            pending: PendingCall = call.owner
            if not pending.response.done():
                pending.response.set_exception(self.end_error().attach_call(call.method, call.id))
                pending.response.exception()  # marks it as retrieved: its caller may be gone
        self._listener.on_disconnect()
        self.end_event.set()

    # Incoming messages

    def _receive(self, line: bytes | OversizeMessage, own: Collection[Call] | None = None) -> None:
        """Dispatch a message. A well-formed response takes the fast path.

        A response answers one of the calls in `own`: over HTTP, those of the stream it arrived on. None stands for all.
        """
        try:
            message = _decode(line)  # type: ignore[arg-type]  # an oversize message is a TypeError
        except (ValueError, TypeError):
            self._receive_slow(line, own)
            return
        if message.method is not UNSET:
            self._receive_message(message)
        elif message.result is not UNSET and message.error is UNSET and message.id is not UNSET:
            self._resolve(message.id, message.result, own)
        else:
            self._receive_slow(line, own)

    def _find_result(self, body: bytes, call: Call) -> Raw | None:
        """Return the result in a well-formed response to this call. None for anything else, which `_receive` reads."""
        try:
            message = _decode(body)
        except ValueError:
            return None
        if message.id != call.id or message.method is not UNSET or message.error is not UNSET:
            return None
        if message.result is UNSET or self.requests.calls.pop(call.id, None) is None:
            return None
        return message.result

    def _resolve(self, id: RequestId, result: Raw, own: Collection[Call] | None) -> None:
        call = self.requests.calls.pop(id, None) if own is None and id.__class__ is int else None
        if call is None:
            call = self._find_call(id, None, own)
        if call is not None:
            pending: PendingCall = call.owner
            if not pending.response.done():
                pending.response.set_result(result)

    def _reject(self, id: RequestId | None, error: Error, own: Collection[Call] | None) -> None:
        """End a call with an error."""
        call = self._find_call(id, error, own)
        if call is not None:
            pending: PendingCall = call.owner
            if not pending.response.done():
                pending.response.set_exception(error.attach_call(call.method, call.id))

    def _find_call(self, id: RequestId | None, error: Error | None, own: Collection[Call] | None) -> Call | None:
        """Remove the call of a response from the table, and report an unexpected response."""
        if (text := self._find_fault(id, own)) is not None:
            self._listener.report(Diagnostic(DiagnosticKind.UNEXPECTED_RESPONSE, text, id=id, error=error))
            return None
        call, kind = self.requests.resolve(id)
        if kind is not None:
            method = None if call is None else call.method
            self._listener.report(Diagnostic(kind, _UNEXPECTED_RESPONSES[kind], method, id, error=error))
        return call

    def _find_fault(self, id: RequestId | None, own: Collection[Call] | None) -> str | None:
        """Return why a response with this id must not answer a call, or None if it may."""
        if own is not None and not _is_of(id, own):
            return "a response to a call that was not made on its stream"
        if isinstance(id, str) and self._listener.is_strict:
            return _UNEXPECTED_RESPONSES[DiagnosticKind.ID_TYPE_MISMATCH]
        return None

    def _receive_message(self, message: _Message) -> None:
        params = b"{}" if message.params is UNSET else bytes(message.params)
        method = str(message.method)
        try:
            if message.id is not UNSET:
                self._listener.on_request(message.id, method, params)
            else:
                has_token = method == "notifications/progress"
                self._listener.on_notification(method, params, self._find_call_of_token(params) if has_token else None)
        except Exception as error:  # no message may end the task that reads
            text = f"{method} could not be handled: {error!r}"
            self._listener.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, method, error=error))

    def _find_call_of_token(self, params: bytes) -> Call | None:
        try:
            token = _decode_token(params).token
        except ValueError:
            return None
        return self.requests.calls.get(token)

    # The slow path

    def _receive_slow(self, line: bytes | OversizeMessage, own: Collection[Call] | None) -> None:
        frame = classify(line)
        if isinstance(frame, Batch):
            self._receive_batch(frame.items, own)
        elif isinstance(frame, InvalidMessage):
            value = self._without_null(line)
            if value is None:
                id = find_response_id(line.head if isinstance(line, OversizeMessage) else line)
                self._receive_invalid(frame, id, own)
            else:
                self._receive_value(value, own)
        elif frame is not None:
            self._receive_frame(frame, own)

    def _receive_batch(self, items: list[Any], own: Collection[Call] | None) -> None:
        if len(items) > self.limits.batch_messages:
            text = f"a batch of {len(items)} messages; the limit is {self.limits.batch_messages} (batch_messages)"
            self._listener.report(Diagnostic(DiagnosticKind.MALFORMED, text))
            return
        for item in items:
            self._receive_value(item, own)

    def _receive_value(self, value: Any, own: Collection[Call] | None) -> None:
        frame = classify_value(value)
        if isinstance(frame, InvalidMessage):
            is_response = is_object(value) and "method" not in value
            self._receive_invalid(frame, frame.id if is_response else None, own)
        else:
            self._receive_frame(frame, own)

    def _without_null(self, line: bytes | OversizeMessage) -> dict[str, Any] | None:
        """Return a response that has null beside its result or its error, without the null. None for anything else."""
        if isinstance(line, OversizeMessage) or b"null" not in line:
            return None
        try:
            value: Any = msgspec.json.decode(line)
        except ValueError:
            return None
        if not is_object(value) or "result" not in value or "error" not in value:
            return None
        for name in ("error", "result"):
            if value[name] is None and self.tolerate(f"{name}: null was read as absent"):
                del value[name]
                return value
        return None

    def _receive_frame(self, frame: Frame, own: Collection[Call] | None) -> None:
        if frame.method is not None:
            params = frame.value.get("params", UNSET)
            raw = UNSET if params is UNSET else Raw(msgspec.json.encode(params))
            self._receive_message(_Message("2.0", UNSET if frame.id is None else frame.id, frame.method, raw))
        elif "result" in frame.value and frame.id is not None:
            self._resolve(frame.id, Raw(msgspec.json.encode(frame.value["result"])), own)
        else:
            self._receive_error(frame, own)

    def _receive_error(self, frame: Frame, own: Collection[Call] | None) -> None:
        """End a call with an error response. An error without an id ends the only open call, if there is just one."""
        error = RemoteError.from_wire(frame.value["error"])
        id = frame.id
        open_calls = self.requests.calls.values() if own is None else own
        if id is None and len(open_calls) == 1:
            id = next(iter(open_calls)).id
        if id is None:
            text = f"an error response without an id: {error}"
            self._listener.report(Diagnostic(DiagnosticKind.UNEXPECTED_RESPONSE, text, error=error))
        else:
            self._reject(id, error, own)

    def _receive_invalid(self, invalid: InvalidMessage, id: RequestId | None, own: Collection[Call] | None) -> None:
        """Report an invalid message, and end the call that it was the response to. `id` is that of a response.

        It gets no response: two peers that answered invalid messages would never stop.
        """
        self._listener.report(Diagnostic(DiagnosticKind.MALFORMED, invalid.reason, id=id))
        if id is not None and id in self.requests.calls:
            self._reject(id, ProtocolError(f"the response is not a valid message: {invalid.reason}"), own)

    # The end

    async def close(self) -> None:
        """End the session. Open calls fail. May be called from any task, and more than once."""
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    @abstractmethod
    async def _close(self) -> None: ...


def _is_of(id: RequestId | None, calls: Collection[Call]) -> bool:
    """Return whether an id is that of one of these calls. It may be the number as a string."""
    for call in calls:  # noqa: SIM110  # half the time of a generator, for each response over HTTP
        if id == call.id or id == str(call.id):
            return True
    return False


class _ProgressToken(msgspec.Struct):
    token: RequestId = msgspec.field(name="progressToken")


_decode_token = msgspec.json.Decoder(_ProgressToken).decode

_UNEXPECTED_RESPONSES = {
    DiagnosticKind.UNEXPECTED_RESPONSE: "a response to no request",
    DiagnosticKind.LATE_MESSAGE: "a response to a call that was cancelled or timed out",
    DiagnosticKind.ID_TYPE_MISMATCH: "a response with a string as its id, where the request has a number",
}
