"""The observer of a client: a span for each message that it sends, or handles for the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw
from opentelemetry.trace import SpanKind

from mcpspec.support.objects import is_object
from typedmcp.client.callbacks import to_remote_error
from typedmcp.client.session import SessionListener
from typedmcp.dialect import methods
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.observers import Exchange, Notify
from typedmcp.protocol.pending import Call
from typedmcp.revisions.features import methods_of
from typedmcp.telemetry.api import context
from typedmcp.telemetry.attributes import (
    JSONRPC_ID,
    OTHER,
    PROTOCOL_VERSION,
    RESOURCE_URI,
    SESSION_ID,
    TARGETS,
    TOOL_ARGUMENTS,
    TOOL_RESULT,
    bounded,
    bounded_json,
    bounded_uri,
)
from typedmcp.telemetry.carrier import NO_CONTEXT, extract, inject
from typedmcp.telemetry.network import session_attributes
from typedmcp.telemetry.operation import Operation, fail_with

if TYPE_CHECKING:
    from opentelemetry.context import Context as TraceContext

    from typedmcp.client.session import ClientSession
    from typedmcp.telemetry.instruments import Instruments

__all__ = ["SessionObserver", "observe_answer"]

T = TypeVar("T")


class _Outcome(msgspec.Struct):
    """The member of a tool's result that says whether it failed."""

    is_error: Any = msgspec.field(name="isError", default=False)


class _Meta(msgspec.Struct):
    meta: Any = msgspec.field(name="_meta", default=None)


_decode_outcome = msgspec.json.Decoder(_Outcome).decode
_decode_meta = msgspec.json.Decoder(_Meta).decode


class SessionObserver:
    """Observes one session of a client."""

    def __init__(self, telemetry: Instruments, session: ClientSession) -> None:
        self._telemetry = telemetry
        self._session: Any = session
        self._listener: SessionListener | None = None
        self._names = telemetry.names_of(telemetry)  # of all sessions: a gateway passes on what its clients call
        self._network = session_attributes(session)
        self._contexts: dict[RequestId, TraceContext] = {}
        """The contexts of open calls, in which their progress arrives."""

    # Outgoing messages

    def around_exchange(self, exchange: Exchange) -> Exchange:
        """Return a function that sends a request and observes it."""

        async def observed(call: Call, params: Any) -> Raw:
            operation = self._start_call(call, params)
            self._contexts[call.id] = operation.context
            token = context.attach(operation.context)
            try:
                raw = await exchange(call, inject(params, self._telemetry.propagator, operation.context))
                self._read_outcome(operation, raw)
                return raw
            except BaseException as error:
                fail_with(operation, error)
                raise
            finally:
                context.detach(token)
                self._contexts.pop(call.id, None)
                operation.finish()

        return observed

    def _start_call(self, call: Call, params: Any) -> Operation:
        method, details = call.method, {JSONRPC_ID: str(call.id), **self._session_details()}
        uri = _member(params, "uri")
        if isinstance(uri, str):
            details[RESOURCE_URI] = bounded_uri(uri)
        if self._telemetry.content and method == "tools/call":
            with suppress(TypeError, ValueError):
                details[TOOL_ARGUMENTS] = bounded_json(_member(params, "arguments"))
        target = _member(params, "name") if method in TARGETS else None
        if isinstance(target, str):
            self._names.add(method, target)
        if not isinstance(target, str) or not self._names.has(method, target):
            target = None
        histogram = self._telemetry.client_duration
        return self._start(bounded(method), SpanKind.CLIENT, histogram, target=target, details=details)

    def _start(self, method: str, kind: SpanKind, histogram: Any, **options: Any) -> Operation:
        return self._telemetry.start(method, kind, histogram, measured=self._measured(), **options)

    def _measured(self) -> dict[str, Any]:
        revision: str | None = getattr(self._listener, "revision", None)
        return {**self._network, PROTOCOL_VERSION: revision} if revision else self._network

    def _session_details(self) -> dict[str, Any]:
        id: str | None = getattr(self._session, "_session_id", None)
        return {} if id is None else {SESSION_ID: bounded(id)}

    def _read_outcome(self, operation: Operation, raw: Raw) -> None:
        if operation.method != "tools/call":
            return
        with suppress(ValueError):
            if _decode_outcome(raw).is_error is True:
                operation.fail("tool_error")
        if self._telemetry.content:
            operation.span.set_attribute(TOOL_RESULT, bounded_json(raw))

    def around_notify(self, notify: Notify) -> Notify:
        """Return a function that sends a notification and observes it."""

        def observed(method: str, params: Any = None) -> None:
            telemetry = self._telemetry
            if not telemetry.notifications:
                notify(method, inject(params, telemetry.propagator, context.get_current()))
                return
            details = self._session_details()
            operation = self._start(bounded(method), SpanKind.CLIENT, telemetry.client_duration, details=details)
            try:
                notify(method, inject(params, telemetry.propagator, operation.context))
            except BaseException as error:
                fail_with(operation, error)
                raise
            finally:
                operation.finish()

        return observed

    # Incoming messages

    def around_listener(self, listener: SessionListener) -> SessionListener:
        """Return a listener that observes notifications, and the end of the session."""
        self._listener = listener
        return _ObservedListener(self, listener)

    def receive(self, method: str, params: bytes, call: Call | None, handle: Callable[[], None]) -> None:
        """Observe a notification of the server while `handle()` handles it."""
        telemetry = self._telemetry
        if not telemetry.notifications:
            handle()
            return
        parent = extract(_meta_of(params), telemetry.propagator, self.context_around(call))
        name = method if method in methods.METHODS or method in self._methods() else OTHER
        operation = self._start(
            name, SpanKind.SERVER, telemetry.server_duration, details=self._session_details(), parent=parent
        )
        token = context.attach(operation.context)
        try:
            handle()
        except BaseException as error:
            fail_with(operation, error)
            raise
        finally:
            context.detach(token)
            operation.finish()

    def context_around(self, call: Call | None) -> TraceContext:
        """Return the context of the call that a message of the server is about, as far as that is known."""
        contexts = self._contexts
        if call is not None and call.id in contexts:
            return contexts[call.id]
        current = context.get_current()  # over HTTP, the task of a call reads what arrives with its response
        if any(each is current for each in contexts.values()):
            return current
        return next(iter(contexts.values())) if len(contexts) == 1 else NO_CONTEXT

    def _methods(self) -> Any:
        revision: str | None = getattr(self._listener, "revision", None)
        return () if revision is None else methods_of(revision).METHODS

    def on_end(self, seconds: float) -> None:
        """Measure the duration of the session."""
        self._telemetry.client_session_duration.record(seconds, self._measured())


class _ObservedListener:
    """Passes the messages of a server to the listener of the session."""

    def __init__(self, observer: SessionObserver, listener: SessionListener) -> None:
        self._observer = observer
        self._listener = listener
        self.is_strict: bool = listener.is_strict
        """True if messages that break the specification harmlessly are rejected."""
        self._began = perf_counter()
        self._has_ended = False

    def on_notification(self, method: str, params: bytes, call: Call | None) -> None:
        """Handle a notification."""
        self._observer.receive(method, params, call, lambda: self._listener.on_notification(method, params, call))

    def on_request(self, id: RequestId, method: str, params: bytes) -> None:
        """Handle a request of the server, which `observe_answer` observes, in the context of the call around it."""
        token = context.attach(self._observer.context_around(None))
        try:
            self._listener.on_request(id, method, params)
        finally:
            context.detach(token)

    def report(self, diagnostic: Diagnostic) -> None:
        """Handle a diagnostic."""
        self._listener.report(diagnostic)

    def tolerate(self, text: str, method: str | None = None) -> bool:
        """Report that a message breaks the specification harmlessly. Return False if it must be rejected instead."""
        return self._listener.tolerate(text, method)

    def on_disconnect(self) -> None:
        """Handle the end of the session, and measure its duration once."""
        if not self._has_ended:
            self._has_ended = True
            self._observer.on_end(perf_counter() - self._began)
        self._listener.on_disconnect()


async def observe_answer(
    telemetry: Instruments, method: str, params: bytes | None, revision: str | None, answer: Callable[[], Awaitable[T]]
) -> T:
    """Observe a callback that answers an input request. One of a legacy server has `params` with trace context."""
    current = context.get_current()
    parent = current if params is None else extract(_meta_of(params), telemetry.propagator, current)
    is_known = method in methods.METHODS or (revision is not None and method in methods_of(revision).METHODS)
    measured = {} if revision is None else {PROTOCOL_VERSION: revision}
    operation = telemetry.start(
        method if is_known else OTHER, SpanKind.SERVER, telemetry.server_duration, measured=measured, parent=parent
    )
    token = context.attach(operation.context)
    try:
        return await answer()
    except BaseException as error:
        fail_with(operation, to_remote_error(error, method) if isinstance(error, Exception) else error)
        raise
    finally:
        context.detach(token)
        operation.finish()


def _member(params: Any, name: str) -> Any:
    return params.get(name) if is_object(params) else getattr(params, name, None)


def _meta_of(params: bytes) -> Any:
    try:
        return _decode_meta(params).meta
    except ValueError:
        return None
