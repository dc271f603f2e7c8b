"""The observer of a server: a span for each message that it handles or sends."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cached_property, wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from opentelemetry import context
from opentelemetry.trace import Link, SpanKind, get_current_span

from typedmcp.building import is_awaitable, is_object
from typedmcp.observers import MessageInfo, MetaMembers, RequestInfo, ServerConnectionInfo
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

    from typedmcp.errors import RemoteError
    from typedmcp_otel.instruments import Instruments

__all__ = ["ServerTelemetry"]

T = TypeVar("T")

_OPERATION: Final = "typedmcp_otel"
"""The key of a request's operation in what is kept with the request."""

_LISTS: Final = {"tools/list": ("tools", "tools/call"), "prompts/list": ("prompts", "prompts/get")}
"""The member of the result that has names, and the method that takes one of them, by method."""


class ServerTelemetry:
    """Observes the messages of one connection or session of a server."""

    def __init__(self, telemetry: Instruments, connection: ServerConnectionInfo) -> None:
        self._telemetry = telemetry
        self._connection = connection
        self._names = telemetry.names_of(connection.server)
        self._began = perf_counter()
        self._revision: str | None = None

    # The connection, once it is complete: with the first message

    @cached_property
    def _is_local(self) -> bool:
        return self._connection.is_local

    @cached_property
    def _session_id(self) -> str | None:
        return self._connection.id

    @cached_property
    def _network(self) -> dict[str, Any]:
        return network_attributes(self._connection)

    # Incoming messages

    def wrap(self, function: Callable[..., Any], *, is_known: bool) -> Callable[..., Any]:
        """Return a function that calls a handler and observes it."""
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def observed_coroutine(*args: Any) -> Any:
                return await self._observe(self._start(args[-2], args[-1], is_known), args[-1], function(*args))

            return observed_coroutine

        @wraps(function)
        def observed(*args: Any) -> Any:
            operation = self._start(args[-2], args[-1], is_known)
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

    async def _observe(self, operation: Operation, request: RequestInfo, result: Awaitable[T]) -> T:
        token = context.attach(operation.context)
        try:
            value = await result
        except BaseException as error:
            self._on_raised(operation, error)
            raise
        finally:
            context.detach(token)
        self._on_result(operation, request, value)
        return value

    def _start(self, params: Any, request: RequestInfo, is_known: bool) -> Operation:
        method = request.method if is_known else OTHER
        details: dict[str, Any] = {} if request.id is None else {JSONRPC_ID: bounded(request.id)}
        name = None
        if method in TARGETS:
            name = self._known_name(method, params.name)
            if self._telemetry.content and method == "tools/call":
                details[TOOL_ARGUMENTS] = bounded_json(params.arguments)
        elif is_known and isinstance(uri := getattr(params, "uri", None), str):
            details[RESOURCE_URI] = bounded_uri(uri)
        if self._revision is None and self._is_local:  # a connection without a handshake
            self._revision = request.revision
        operation = self._start_span(method, request.meta, request.revision, details, name)
        vars(request)[_OPERATION] = operation
        return operation

    def _start_span(
        self, method: str, meta: object, revision: str | None, details: dict[str, Any], target: str | None = None
    ) -> Operation:
        # A connection of lines has the context in which it began, which says nothing about its messages.
        current = NO_CONTEXT if self._is_local else context.get_current()
        parent = self._telemetry.extract(meta, current)
        if self._session_id is not None:
            details[SESSION_ID] = self._session_id
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
        return {**self._network, PROTOCOL_VERSION: revision} if revision else self._network

    def _known_name(self, method: str, name: str) -> str | None:
        """Return the name of a tool or prompt, if one of this name is known to exist."""
        is_tool = self._connection.has_tool(name) if method == "tools/call" else None
        if is_tool is not None:
            return bounded(name) if is_tool else None
        return name if self._names.has(method, name) else None

    def _on_raised(self, operation: Operation, error: BaseException) -> None:
        """End an operation whose handler raised, once the response is sent: `on_error` has its code."""
        if isinstance(error, asyncio.CancelledError):
            operation.fail("cancelled")
        self._finish_later(operation)

    def _on_result(self, operation: Operation, request: RequestInfo, result: object) -> None:
        method = operation.method
        if method in _LISTS:
            self._add_names(result, *_LISTS[method])
        elif method in TARGETS:
            if getattr(result, "is_error", None) is True or (is_object(result) and result.get("isError") is True):
                operation.fail("tool_error")
            elif (name := getattr(request.params, "name", None)) is not None:
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
        self._connection.call_soon(operation.finish)

    def on_error(self, request: RequestInfo, code: int, text: str, *, is_known: bool) -> None:
        """Record the error response to a request, which perhaps did not reach its handler."""
        operation: Operation | None = vars(request).get(_OPERATION)
        if operation is None:
            message = MessageInfo(request.method, request.id, request.meta, is_known)
            self._record_error(message, request.revision, code, text)
        else:
            operation.fail(str(code), code=code, message=text)

    def on_rejected(self, message: MessageInfo, error: RemoteError) -> None:
        """Record a message that was rejected before its parameters were read."""
        self._record_error(message, self._revision, error.code, error.message)

    def _record_error(self, message: MessageInfo, revision: str | None, code: int, text: str) -> None:
        operation = self._start_message(message, revision)
        operation.fail(str(code), code=code, message=text)
        operation.finish()

    def on_handshake(self, message: MessageInfo, revision: str) -> None:
        """Record a message of the handshake that has been handled."""
        self._revision = revision or self._revision
        self._start_message(message, self._revision).finish()

    def _start_message(self, message: MessageInfo, revision: str | None) -> Operation:
        details: dict[str, Any] = {} if message.id is None else {JSONRPC_ID: bounded(message.id)}
        method = message.method if message.is_known else OTHER
        return self._start_span(method, message.meta, revision, details)

    # Outgoing messages

    def on_send(self, request: RequestInfo | None, method: str, id: str | int | None) -> MetaMembers:
        """Return the trace context for a message to the client; a notification gets a span of its own."""
        telemetry, current = self._telemetry, _context_of(request)
        if id is not None or not telemetry.notifications:
            return inject(telemetry.propagator, current)
        measured = self._measured(self._revision if request is None else request.revision)
        operation = telemetry.start(
            method, SpanKind.CLIENT, telemetry.client_duration, measured=measured, parent=current
        )
        members = inject(telemetry.propagator, operation.context)
        operation.finish()
        return members

    async def on_ask(self, request: RequestInfo, method: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Observe a request to the client, such as `elicitation/create`, until its result has come."""
        telemetry = self._telemetry
        measured = self._measured(request.revision)
        operation = telemetry.start(
            method, SpanKind.CLIENT, telemetry.client_duration, measured=measured, parent=_context_of(request)
        )
        token = context.attach(operation.context)
        try:
            return await ask()
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


def _context_of(request: RequestInfo | None) -> TraceContext:
    """Return the context of what a handler sends: the current one, or that of its request in a task of another one."""
    current = context.get_current()
    operation: Operation | None = None if request is None else vars(request).get(_OPERATION)
    has_span = get_current_span(current).get_span_context().is_valid
    return current if has_span or operation is None else operation.context


def _links(current: TraceContext, parent: TraceContext) -> list[Link]:
    """Return a link to the span around a message that has a parent of its own, such as that of an HTTP request."""
    around, own = get_current_span(current).get_span_context(), get_current_span(parent).get_span_context()
    return [Link(around)] if around.is_valid and around.span_id != own.span_id else []
