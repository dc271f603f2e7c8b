"""The observer of a client: a span for each message that it sends, or handles for the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw
from opentelemetry import context
from opentelemetry.trace import SpanKind

from typedmcp.building import is_object
from typedmcp.errors import to_remote_error
from typedmcp.observers import ConnectionInfo, MessageInfo, MetaMembers
from typedmcp_otel.attributes import (
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
from typedmcp_otel.carrier import NO_CONTEXT, inject
from typedmcp_otel.network import network_attributes
from typedmcp_otel.operation import Operation, fail_with

if TYPE_CHECKING:
    from opentelemetry.context import Context as TraceContext

    from typedmcp_otel.instruments import Instruments

__all__ = ["SessionTelemetry", "observe_answer"]

T = TypeVar("T")


class _Outcome(msgspec.Struct):
    """The member of a tool's result that says whether it failed."""

    is_error: Any = msgspec.field(name="isError", default=False)


_decode_outcome = msgspec.json.Decoder(_Outcome).decode


class SessionTelemetry:
    """Observes one session of a client."""

    def __init__(self, telemetry: Instruments, connection: ConnectionInfo) -> None:
        self._telemetry = telemetry
        self._connection = connection
        self._names = telemetry.names_of(telemetry)  # of all sessions: a gateway passes on what its clients call
        self._network = network_attributes(connection)
        self._began = perf_counter()
        self._contexts: dict[str | int, TraceContext] = {}
        """The contexts of open calls, in which their progress arrives."""

    # Outgoing messages

    async def on_call(
        self, method: str, id: str | int, params: Any, send: Callable[[MetaMembers], Awaitable[Raw]]
    ) -> Raw:
        """Send a request and observe it."""
        operation = self._start_call(method, id, params)
        self._contexts[id] = operation.context
        token = context.attach(operation.context)
        try:
            raw = await send(inject(self._telemetry.propagator, operation.context))
            self._read_outcome(operation, raw)
            return raw
        except BaseException as error:
            fail_with(operation, error)
            raise
        finally:
            context.detach(token)
            self._contexts.pop(id, None)
            operation.finish()

    def _start_call(self, method: str, id: str | int, params: Any) -> Operation:
        details = {JSONRPC_ID: str(id), **self._session_details()}
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
        revision = self._connection.revision
        return {**self._network, PROTOCOL_VERSION: revision} if revision else self._network

    def _session_details(self) -> dict[str, Any]:
        id = self._connection.id
        return {} if id is None else {SESSION_ID: bounded(id)}

    def _read_outcome(self, operation: Operation, raw: Raw) -> None:
        if operation.method != "tools/call":
            return
        with suppress(ValueError):
            if _decode_outcome(raw).is_error is True:
                operation.fail("tool_error")
        if self._telemetry.content:
            operation.span.set_attribute(TOOL_RESULT, bounded_json(raw))

    def on_notify(self, method: str, send: Callable[[MetaMembers], None]) -> None:
        """Send a notification and observe it."""
        telemetry = self._telemetry
        if not telemetry.notifications:
            send(inject(telemetry.propagator, context.get_current()))
            return
        details = self._session_details()
        operation = self._start(bounded(method), SpanKind.CLIENT, telemetry.client_duration, details=details)
        try:
            send(inject(telemetry.propagator, operation.context))
        except BaseException as error:
            fail_with(operation, error)
            raise
        finally:
            operation.finish()

    # Incoming messages

    def on_receive(self, message: MessageInfo, call: str | int | None, handle: Callable[[], None]) -> None:
        """Observe a notification of the server. `observe_answer` observes a request, in the context of its call."""
        telemetry = self._telemetry
        if message.id is not None:
            _handle_in(self._context_around(None), handle)
            return
        if not telemetry.notifications:
            handle()
            return
        parent = telemetry.extract(message.meta, self._context_around(call))
        name = message.method if message.is_known else OTHER
        operation = self._start(
            name, SpanKind.SERVER, telemetry.server_duration, details=self._session_details(), parent=parent
        )
        try:
            _handle_in(operation.context, handle)
        except BaseException as error:
            fail_with(operation, error)
            raise
        finally:
            operation.finish()

    def _context_around(self, call: str | int | None) -> TraceContext:
        """Return the context of the call that a message of the server is about, as far as that is known."""
        contexts = self._contexts
        if call is not None and call in contexts:
            return contexts[call]
        current = context.get_current()  # over HTTP, the task of a call reads what arrives with its response
        if any(each is current for each in contexts.values()):
            return current
        return next(iter(contexts.values())) if len(contexts) == 1 else NO_CONTEXT

    def on_end(self) -> None:
        """Measure the duration of the session."""
        self._telemetry.client_session_duration.record(perf_counter() - self._began, self._measured())


def _handle_in(around: TraceContext, handle: Callable[[], None]) -> None:
    token = context.attach(around)
    try:
        handle()
    finally:
        context.detach(token)


async def observe_answer(
    telemetry: Instruments, message: MessageInfo, revision: str | None, answer: Callable[[], Awaitable[T]]
) -> T:
    """Observe a callback that answers an input request. One of a legacy server may have trace context."""
    parent = telemetry.extract(message.meta, context.get_current())
    measured = {} if revision is None else {PROTOCOL_VERSION: revision}
    method = message.method if message.is_known else OTHER
    operation = telemetry.start(method, SpanKind.SERVER, telemetry.server_duration, measured=measured, parent=parent)
    token = context.attach(operation.context)
    try:
        return await answer()
    except BaseException as error:
        fail_with(operation, to_remote_error(error, message.method) if isinstance(error, Exception) else error)
        raise
    finally:
        context.detach(token)
        operation.finish()


def _member(params: Any, name: str) -> Any:
    return params.get(name) if is_object(params) else getattr(params, name, None)
