"""The observer of a server: a span for each message that it handles or sends."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from opentelemetry.trace import Link, SpanKind, get_current_span

from mcpspec.support.objects import is_object
from typedmcp.protocol.codec import Notification
from typedmcp.protocol.framing import Frame
from typedmcp.telemetry.api import context
from typedmcp.telemetry.attributes import (
    HTTP,
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
from typedmcp.telemetry.network import transport_attributes
from typedmcp.telemetry.operation import Operation, fail_with
from typedmcp.transports.concurrency import is_awaitable

if TYPE_CHECKING:
    from opentelemetry.context import Context as TraceContext

    from typedmcp.errors import RemoteError
    from typedmcp.server.context import Context
    from typedmcp.server.dispatcher import Dispatcher
    from typedmcp.telemetry.instruments import Instruments

__all__ = ["DispatcherObserver"]

T = TypeVar("T")

_OPERATION: Final = "telemetry"
"""The attribute of a `Context` that holds its operation."""

_LISTS: Final = {"tools/list": ("tools", "tools/call"), "prompts/list": ("prompts", "prompts/get")}
"""The member of the result that has names, and the method that takes one of them, by method."""


class DispatcherObserver:
    """Observes the messages of one dispatcher."""

    def __init__(self, telemetry: Instruments, dispatcher: Dispatcher) -> None:
        self._telemetry = telemetry
        self._dispatcher = dispatcher
        self._names = telemetry.names_of(dispatcher.config)
        self._began = perf_counter()
        self._revision: str | None = None
        self._network: dict[str, Any] | None = None

    # Incoming messages

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls a handler and observes it."""
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def observed_coroutine(*args: Any) -> Any:
                return await self._observe(self._start(*args[-2:]), args[-1], function(*args))

            return observed_coroutine

        @wraps(function)
        def observed(*args: Any) -> Any:
            operation = self._start(*args[-2:])
            token = context.attach(operation.context)
            try:
                result = function(*args)
            except BaseException as error:
                self._on_raised(operation, error)
                raise
            finally:
                context.detach(token)
            if is_awaitable(result):
                return self._observe(operation, args[-1], result)
            self._on_result(operation, args[-1], result)
            return result

        return observed

    async def _observe(self, operation: Operation, ctx: Context, result: Awaitable[T]) -> T:
        token = context.attach(operation.context)
        try:
            value = await result
        except BaseException as error:
            self._on_raised(operation, error)
            raise
        finally:
            context.detach(token)
        self._on_result(operation, ctx, value)
        return value

    def _start(self, params: Any, ctx: Context) -> Operation:
        is_known = ctx.method_codec.handler_name != "fallback"
        method = ctx.method if is_known else OTHER
        details: dict[str, Any] = {} if ctx.id is None else {JSONRPC_ID: bounded(ctx.id)}
        name = None
        if method in TARGETS:
            name = self._known_name(method, params.name)
            if self._telemetry.content and method == "tools/call":
                details[TOOL_ARGUMENTS] = bounded_json(params.arguments)
        elif is_known and isinstance(uri := getattr(params, "uri", None), str):
            details[RESOURCE_URI] = bounded_uri(uri)
        if self._revision is None and self._dispatcher.is_local:  # a connection without a handshake
            self._revision = ctx.revision
        operation = self._start_span(method, ctx.meta, ctx.revision, details, name)
        ctx.__dict__[_OPERATION] = operation  # pyright: ignore[reportIndexIssue]  # it has one of its own
        return operation

    def _start_span(
        self, method: str, meta: object, revision: str | None, details: dict[str, Any], target: str | None = None
    ) -> Operation:
        # A connection of lines has the context in which it began, which says nothing about its messages.
        current = NO_CONTEXT if self._dispatcher.is_local else context.get_current()
        parent = extract(meta, self._telemetry.propagator, current)
        if (session := getattr(self._dispatcher, "id", None)) is not None:
            details[SESSION_ID] = session
        return self._telemetry.start(
            method,
            SpanKind.SERVER,
            self._telemetry.server_duration,
            measured=self._measured(revision),
            target=target,
            details=details,
            parent=parent,
            links=() if parent is current else _links(current, parent),
        )

    def _measured(self, revision: str | None) -> dict[str, Any]:
        """Return the attributes of the connection, which measurements have, too."""
        if self._network is None:
            dispatcher: Any = self._dispatcher
            is_local: bool = dispatcher.is_local
            self._network = transport_attributes(getattr(dispatcher, "_transport", None)) if is_local else HTTP
        return {**self._network, PROTOCOL_VERSION: revision} if revision else self._network

    def _known_name(self, method: str, name: str) -> str | None:
        """Return the name of a tool or prompt, if one of this name is known to exist."""
        input_schema_of = self._dispatcher.config.input_schema_of
        if method == "tools/call" and input_schema_of is not None:
            schema = input_schema_of(name)
            if schema is not None:
                return bounded(name) if schema else None
        return name if self._names.has(method, name) else None

    def _on_raised(self, operation: Operation, error: BaseException) -> None:
        """End an operation whose handler raised, once the response is sent: `on_error` has its code."""
        if isinstance(error, asyncio.CancelledError):
            operation.fail("cancelled")
        self._finish_later(operation)

    def _on_result(self, operation: Operation, ctx: Context, result: object) -> None:
        method = operation.method
        if method in _LISTS:
            self._add_names(result, *_LISTS[method])
        elif method in TARGETS:
            if getattr(result, "is_error", None) is True or (is_object(result) and result.get("isError") is True):
                operation.fail("tool_error")
            elif (name := getattr(ctx.params, "name", None)) is not None:
                self._add_name(operation, name)
            if self._telemetry.content and method == "tools/call":
                with suppress(TypeError, ValueError):
                    operation.span.set_attribute(TOOL_RESULT, bounded_json(result))
        self._finish_later(operation)

    def _add_name(self, operation: Operation, name: str) -> None:
        """Remember the name of a call that succeeded: it exists."""
        method = operation.method
        if TARGETS[method] not in operation.attributes:
            self._names.add(method, name)
            if self._names.has(method, name):
                operation.name_target(name)

    def _add_names(self, result: Any, member: str, method: str) -> None:
        listed = result.get(member) if is_object(result) else getattr(result, member, None)
        for item in listed or ():
            name = item.get("name") if is_object(item) else getattr(item, "name", None)
            if isinstance(name, str):
                self._names.add(method, name)

    def _finish_later(self, operation: Operation) -> None:
        """End an operation after its response has been encoded, which may fail."""
        operation.stop()
        dispatcher = self._dispatcher
        is_here = threading.get_ident() == dispatcher.thread_id
        (dispatcher.loop.call_soon if is_here else dispatcher.loop.call_soon_threadsafe)(operation.finish)

    def on_error(self, ctx: Context, code: int, message: str) -> None:
        """Record the error response to a request, which perhaps did not reach its handler."""
        operation: Operation | None = ctx.__dict__.get(_OPERATION)
        if operation is None:
            method = ctx.method if ctx.method_codec.handler_name != "fallback" else OTHER
            self._record_error(method, ctx.id, ctx.meta, ctx.revision, code, message)
        else:
            operation.fail(str(code), code=code, message=message)

    def on_rejected(self, frame: Frame, error: RemoteError) -> None:
        """Record a message that was rejected before it had a context."""
        dispatcher = self._dispatcher
        is_known = dispatcher.has_method(frame, dispatcher.config.revisions)
        params: Any = frame.value.get("params")
        meta = params.get("_meta") if is_object(params) else None
        method = str(frame.method) if is_known else OTHER
        self._record_error(method, frame.id, meta, self._revision, error.code, error.message)

    def _record_error(
        self, method: str, id: object, meta: object, revision: str | None, code: int, message: str
    ) -> None:
        details: dict[str, Any] = {} if id is None else {JSONRPC_ID: bounded(id)}
        operation = self._start_span(method, meta, revision, details)
        operation.fail(str(code), code=code, message=message)
        operation.finish()

    def on_handshake(self, frame: Frame, revision: str) -> None:
        """Record a message of the handshake that has been handled."""
        self._revision = revision or self._revision
        params: Any = frame.value.get("params")
        meta = params.get("_meta") if is_object(params) else None
        details: dict[str, Any] = {} if frame.id is None else {JSONRPC_ID: bounded(frame.id)}
        self._start_span(str(frame.method), meta, self._revision, details).finish()

    # Outgoing messages

    def on_send(self, ctx: Context | None, message: msgspec.Struct) -> msgspec.Struct:
        """Add the trace context to a message for the client; a notification gets a span of its own."""
        if not isinstance(message, Notification):
            return message
        telemetry, current = self._telemetry, _context_of(ctx)
        if message.id is not None or not telemetry.notifications:
            return _with_context(message, inject(message.params, telemetry.propagator, current))
        measured = self._measured(self._revision if ctx is None else ctx.revision)
        operation = telemetry.start(
            message.method, SpanKind.CLIENT, telemetry.client_duration, measured=measured, parent=current
        )
        made = _with_context(message, inject(message.params, telemetry.propagator, operation.context))
        operation.finish()
        return made

    async def ask(self, call: Callable[[Any, Any], Awaitable[T]], ctx: Context, request: Any) -> T:
        """Observe a request to the client, such as `elicitation/create`, until its result has come."""
        telemetry = self._telemetry
        measured = self._measured(ctx.revision)
        operation = telemetry.start(
            request.method, SpanKind.CLIENT, telemetry.client_duration, measured=measured, parent=_context_of(ctx)
        )
        token = context.attach(operation.context)
        try:
            return await call(ctx, request)
        except BaseException as error:
            fail_with(operation, error)
            raise
        finally:
            context.detach(token)
            operation.finish()

    def on_end(self) -> None:
        """Measure the duration of a connection, or of a session that has begun in this process."""
        if self._revision is None:
            return
        self._telemetry.server_session_duration.record(perf_counter() - self._began, self._measured(self._revision))


def _context_of(ctx: Context | None) -> TraceContext:
    """Return the context of what a handler sends: the current one, or that of its request in a task of another one."""
    current = context.get_current()
    operation: Operation | None = None if ctx is None else ctx.__dict__.get(_OPERATION)
    has_span = get_current_span(current).get_span_context().is_valid
    return current if has_span or operation is None else operation.context


def _with_context(message: Notification, params: Any) -> Notification:
    return Notification(message.jsonrpc, message.method, params, message.id)


def _links(current: TraceContext, parent: TraceContext) -> list[Link]:
    """Return a link to the span around a message that has a parent of its own, such as that of an HTTP request."""
    around, own = get_current_span(current).get_span_context(), get_current_span(parent).get_span_context()
    return [Link(around)] if around.is_valid and around.span_id != own.span_id else []
