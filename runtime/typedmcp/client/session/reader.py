"""The dispatch of every message that arrives: responses to their calls, others to the listener of the session.

`typedmcp.protocol.framing` classifies invalid messages. A result is passed on as the bytes that the server sent.
"""

from __future__ import annotations

import asyncio
from codecs import BOM_UTF8
from collections.abc import Callable, Collection
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpspec.support.error_text import format_value
from mcpspec.support.objects import is_object
from typedmcp.errors import Error, ProtocolError, RemoteError
from typedmcp.limits import Limits
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

__all__ = ["MessageReader", "PendingCall", "SessionListener"]


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


class PendingCall(msgspec.Struct, eq=False):
    """An open call: the future of its result, and its progress callback."""

    response: asyncio.Future[Raw]
    on_progress: Callable[[Any], object] | None = None
    timer: Timer | None = None
    """The timer of the task that makes the call, over HTTP."""
    is_sent: bool = False
    """True once the request is sent, so that it can be cancelled."""
    status: int = 200
    """The status of the response, over HTTP, if that is an error."""


class MessageReader(msgspec.Struct, eq=False):
    """Dispatches the messages of a server. `on_stray` gets the beginning of a line that is no JSON object or array."""

    _requests: PendingRequests
    _limits: Limits
    listener: SessionListener
    _on_stray: Callable[[bytes], None] | None = None

    def receive(self, line: bytes | OversizeMessage, own: Collection[Call] | None = None) -> None:
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
        elif message.result is UNSET or message.error is not UNSET or (id := message.id) is UNSET:
            self._receive_slow(line, own)
        elif own is None and id.__class__ is int and (call := self._requests.calls.pop(id, None)) is not None:
            response = call.owner.response  # as in `_resolve`: the hot path
            if not response.done():
                response.set_result(message.result)
        else:
            self._resolve(id, message.result, own)

    def find_result(self, body: bytes, call: Call) -> Raw | None:
        """Return the result in a well-formed response to this call. None for anything else, which `receive` reads."""
        try:
            message = _decode(body)
        except ValueError:
            return None
        if message.id != call.id or message.method is not UNSET or message.error is not UNSET:
            return None
        if message.result is UNSET or self._requests.calls.pop(call.id, None) is None:
            return None
        return message.result

    def _resolve(self, id: RequestId, result: Raw, own: Collection[Call] | None) -> None:
        call = self._find_call(id, None, own)
        if call is not None and not call.owner.response.done():
            call.owner.response.set_result(result)

    def _reject(self, id: RequestId | None, error: Error, own: Collection[Call] | None) -> None:
        """End a call with an error."""
        call = self._find_call(id, error, own)
        if call is not None and not call.owner.response.done():
            call.owner.response.set_exception(error.attach_call(call.method, call.id))

    def _find_call(self, id: RequestId | None, error: Error | None, own: Collection[Call] | None) -> Call | None:
        """Remove the call of a response from the table, and report an unexpected response."""
        if (text := self._find_fault(id, own)) is not None:
            self.listener.report(Diagnostic(DiagnosticKind.UNEXPECTED_RESPONSE, text, id=id, error=error))
            return None
        call, kind = self._requests.resolve(id)
        if kind is not None:
            method = None if call is None else call.method
            self.listener.report(Diagnostic(kind, _UNEXPECTED_RESPONSES[kind], method, id, error=error))
            if error is None:
                self.reject_handshake(f"the server answered with the id {format_value(id)}")
        return call

    def reject_handshake(self, fault: str) -> None:
        """End `initialize`, if that is open, because of a result without its id: no other result can arrive then."""
        for call in [call for call in self._requests.calls.values() if call.method == "initialize"]:
            self._reject(call.id, ProtocolError(fault), None)

    def _find_fault(self, id: RequestId | None, own: Collection[Call] | None) -> str | None:
        """Return why a response with this id must not answer a call, or None if it may."""
        if own is not None and not _is_of(id, own):
            return "a response to a call that was not made on its stream"
        if isinstance(id, str) and self.listener.is_strict:
            return _UNEXPECTED_RESPONSES[DiagnosticKind.ID_TYPE_MISMATCH]
        return None

    def _receive_message(self, message: _Message) -> None:
        params = b"{}" if message.params is UNSET else bytes(message.params)
        method = str(message.method)
        try:
            if message.id is not UNSET:
                self.listener.on_request(message.id, method, params)
            else:
                has_token = method == "notifications/progress"
                self.listener.on_notification(method, params, self._find_call_of_token(params) if has_token else None)
        except Exception as error:  # no message may end the task that reads
            text = f"{method} could not be handled: {error!r}"
            self.listener.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, method, error=error))

    def _find_call_of_token(self, params: bytes) -> Call | None:
        try:
            token = _decode_token(params).token
        except ValueError:
            return None
        return self._requests.calls.get(token)

    # The slow path

    def _receive_slow(self, line: bytes | OversizeMessage, own: Collection[Call] | None) -> None:
        has_mark = not isinstance(line, OversizeMessage) and line.startswith(BOM_UTF8)
        if has_mark and self.listener.tolerate("a byte order mark before a message was left out"):
            self.receive(line[len(BOM_UTF8) :], own)  # type: ignore[index]  # it is bytes
            return
        if self._on_stray is not None:
            start = (line.head if isinstance(line, OversizeMessage) else line).strip()
            if start and not start.startswith((b"{", b"[")):
                self._on_stray(start)
                return
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
        if len(items) > self._limits.batch_messages:
            text = f"a batch of {len(items)} messages; the limit is {self._limits.batch_messages} (batch_messages)"
            self.listener.report(Diagnostic(DiagnosticKind.MALFORMED, text))
            return
        for item in items:
            self._receive_value(item, own)

    def _receive_value(self, value: Any, own: Collection[Call] | None) -> None:
        frame = classify_value(value)
        if isinstance(frame, InvalidMessage):
            is_response = is_object(value) and value.get("method") is None
            self._receive_invalid(frame, frame.id if is_response else None, own)
        else:
            self._receive_frame(frame, own)

    def _without_null(self, line: bytes | OversizeMessage) -> dict[str, Any] | None:
        """Return a response that has null beside its result or error, without that null. None for anything else."""
        if isinstance(line, OversizeMessage) or b"null" not in line:
            return None
        try:
            value: Any = msgspec.json.decode(line)
        except ValueError:
            return None
        if not is_object(value):
            return None
        nulls = [name for name in ("method", "error", "result") if name in value and value[name] is None]
        if not nulls or (value.get("result") is None and value.get("error") is None):
            return None
        for name in nulls:
            if not self.listener.tolerate(f"{name}: null was read as absent"):
                return None
            del value[name]
        return value

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
        open_calls = self._requests.calls.values() if own is None else own
        if id is None and len(open_calls) == 1:
            id = next(iter(open_calls)).id
        if id is None:
            text = f"an error response without an id: {error}"
            self.listener.report(Diagnostic(DiagnosticKind.UNEXPECTED_RESPONSE, text, error=error))
        else:
            self._reject(id, error, own)

    def _receive_invalid(self, invalid: InvalidMessage, id: RequestId | None, own: Collection[Call] | None) -> None:
        """Report an invalid message, and end the call that it was the response to. `id` is that of a response.

        It gets no response: two peers that answered invalid messages would never stop.
        """
        self.listener.report(Diagnostic(DiagnosticKind.MALFORMED, invalid.reason, id=id))
        if id is None and not invalid.is_answerable:
            self.reject_handshake(f"the server answered with an invalid message: {invalid.reason}")
        elif id in self._requests.calls:
            self._reject(id, ProtocolError(f"the response is not a valid message: {invalid.reason}"), own)


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
