"""The calls of a session, from their messages to their responses, in the states of call_states.py.

`start` takes the fast path, or passes the message to the slow one. A handler that does not wait is answered at once,
with `respond` or `fail`. One that waits goes through `wait`, which holds the bytes of its message while another
coroutine awaits it and responds: `answer`, or the worker of a connection of lines.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import msgspec

from mcpspec.support.converters import DroppedFields
from mcpspec.support.errors import UnimplementedMethodError
from typedmcp import dialect
from typedmcp.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, CallLostError, RemoteError, is_reserved_code
from typedmcp.protocol.budgets import CALL_BYTES
from typedmcp.protocol.codec import Response, encode_error, encode_message
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import OversizeMessage
from typedmcp.server.attempts import is_input_required, requested_input
from typedmcp.server.call_states import TRANSITIONS, CallEvent, CallState
from typedmcp.server.channel import Channel
from typedmcp.server.context import Context, ServedSession, StartedCall
from typedmcp.server.engine import Engine
from typedmcp.transports.concurrency import is_awaitable, resume

if TYPE_CHECKING:
    from typedmcp.server.observation import ServerObservation

__all__ = ["ServedCalls", "SuspendedCall"]

D = dialect.structs

SuspendedCall: TypeAlias = "tuple[Context, Awaitable[bool]] | None"
"""A call whose handler waits, and its rest, which `wait` awaits; None if the message needs nothing more."""

T = TypeVar("T")

LISTEN: Final = "subscriptions/listen"
_NEW: Final = CallState.NEW
_ANSWERED: Final = CallState.ANSWERED


class ServedCalls:
    """The calls of one session. `observer` observes them, if the server has telemetry."""

    def __init__(self, engine: Engine, session: ServedSession, observer: ServerObservation | None) -> None:
        self.engine: Engine = engine
        self.session: ServedSession = session
        self.observer: ServerObservation | None = observer
        self.functions: dict[str, Callable[..., Any]] = engine.functions
        """The functions of all methods, by the names of handlers."""
        self.fast_functions: dict[str, Callable[..., Any]] = engine.fast_functions
        """Those that the fast path calls."""
        if observer is not None:
            self.functions = observer.wrap(engine.functions)
            self.fast_functions = {name: self.functions[name] for name in engine.fast_functions}
        self.tasks: set[asyncio.Task[Any]] = set()
        """The tasks of handlers that wait, and of what else has to end with the session."""
        self.context: contextvars.Context | None = None
        """The context variables of new tasks; those of the creator by default."""

    # From the message to the handler

    def start(self, line: bytes | OversizeMessage, channel: Channel) -> StartedCall:
        """Handle a message. Return a call whose handler has to be awaited."""
        session = self.session
        ctx = self.engine.decode(session, line, channel)
        function = None if ctx is None else self.fast_functions.get(ctx.method_codec.handler_name)
        if ctx is None or function is None:
            return session.dispatch_slow(line, channel)
        try:
            result = function(ctx.params, ctx)
        except BaseException as error:
            self.fail(ctx, error)
            return None
        if result.__class__ is CoroutineType:
            return ctx, result
        return self.settle(ctx, result)

    def begin(self, line: bytes, channel: Channel) -> SuspendedCall:
        """Handle a message that came alone, up to the point at which its handler waits."""
        # While a client holds its share of bytes, no request is fast: the slow path asks whose it is.
        started = self.session.dispatch_slow(line, channel) if self.engine.budget.full else self.start(line, channel)
        if started is None:
            return None
        ctx, handling = started
        try:
            waits_for = handling.send(None)
        except StopIteration as stop:
            self.send_encoded(ctx, stop.value, self.engine.encode(ctx, stop.value))
            return None
        except BaseException as error:
            self.fail(ctx, error)
            return None
        return ctx, self.answer(ctx, resume(handling, waits_for))

    def settle(self, ctx: Context, result: object) -> StartedCall:
        """Respond with the result of a plain handler, unless it has to be awaited."""
        if result.__class__ is CoroutineType:
            return ctx, cast("Coroutine[Any, Any, Any]", result)
        if is_awaitable(result):
            return ctx, _as_coroutine(result)
        self.respond(ctx, result)
        return None

    def call_handler(self, ctx: Context, *args: Any) -> Any:
        """Call the function for a request. The result may have to be awaited."""
        name = ctx.method_codec.handler_name
        function = self.functions[name]
        if name in self.engine.config.threaded:
            return self.engine.threads.run(ctx.channel.client, function, *args, ctx)
        return function(*args, ctx)

    # States

    def _key(self, ctx: Context) -> Any:
        """Return the key of a call in flight. Calls of several clients may have the same id."""
        return ctx if self.session.is_shared else ctx.id

    def admit(self, ctx: Context) -> bool:
        """Make a request one of those in flight. Return False if its id is in use: it must get no response."""
        in_flight, key = self.session.in_flight, self._key(ctx)
        if key in in_flight:
            return False
        in_flight[key] = ctx
        ctx.state = TRANSITIONS[ctx.state][CallEvent.ADMIT]
        ctx.channel.expect()
        return True

    def _ensure_admitted(self, ctx: Context) -> None:
        """Admit a request that cannot be completed on the fast path."""
        if ctx.state is _NEW and ctx.id is not None:
            self.admit(ctx)

    def _remove(self, ctx: Context) -> bool:
        """Remove a request that is about to be answered. Return False if it was cancelled: it must get no response."""
        if self.session.in_flight.pop(self._key(ctx), None) is None:
            return False
        ctx.state = TRANSITIONS[ctx.state][CallEvent.ANSWER]
        return ctx.state is _ANSWERED

    def cancel(self, ctx: Context) -> None:
        """Cancel a call: nothing more is sent for it, and its handler is cancelled."""
        ctx.state = TRANSITIONS[ctx.state][CallEvent.CANCEL]
        if ctx.id is not None and self.session.in_flight.pop(self._key(ctx), None) is not None:
            ctx.channel.abandon()
        if ctx.task is not None:
            ctx.task.cancel()

    def end(self) -> None:
        """Cancel everything, since nothing more is sent."""
        for ctx in self.session.in_flight.values():
            ctx.state = TRANSITIONS[ctx.state][CallEvent.CANCEL]  # a handler in a thread sees nothing else
        self.session.in_flight.clear()
        for task in set(self.tasks):
            task.cancel()

    # Waiting

    async def wait(self, ctx: Context, rest: Awaitable[T]) -> T:
        """Await the rest of a call whose handler waits, and count the bytes of its message until then."""
        release = self.hold(ctx, asyncio.current_task())
        try:
            return await rest
        finally:
            release()

    def hold(self, ctx: Context, task: asyncio.Task[Any] | None) -> Callable[..., None]:
        """Count the bytes of a call that waits in a task, until the returned function is called."""
        self._ensure_admitted(ctx)
        ctx.task = task
        calls, client = self.engine.budget, ctx.channel.client
        size = CALL_BYTES + len(ctx.raw) + ctx.channel.header_bytes
        use = calls.uses.get(client) or calls.use_of(client)
        calls.used += size  # as in `ByteBudget.add`, whose call would cost 1 % of such a request
        use.held += size
        if calls.used >= calls.total or use.held >= use.share:
            calls.settle(use)

        def release(*_: object) -> None:
            calls.used -= size
            use.held -= size
            if calls.full or calls.reported:
                calls.settle(use)

        return release

    async def answer(self, ctx: Context, handling: Awaitable[Any]) -> bool:
        """Await a handler, and respond. Return False if the handler was cancelled."""
        try:
            result = await handling
        except BaseException as error:
            self.fail(ctx, error)
            return not isinstance(error, asyncio.CancelledError)
        self.send_encoded(ctx, result, self.engine.encode(ctx, result))
        return True

    def spawn(self, ctx: Context, handling: Coroutine[Any, Any, Any]) -> None:
        """Await the handler of a call in a task of its own, and respond."""
        answering = self.answer(ctx, handling)

        def close(_: object) -> None:
            answering.close()  # the task may have been cancelled before its first step
            handling.close()

        ctx.task = self.create_task(self.wait(ctx, answering))
        ctx.task.add_done_callback(close)

    def create_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine in a task that ends with the session."""
        context = None if self.context is None else self.context.copy()
        task = asyncio.get_running_loop().create_task(work, context=context)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    # Responding

    def respond(self, ctx: Context, result: Any) -> None:
        """Respond to a call with the result of its handler."""
        self.send_encoded(ctx, result, self.engine.encode(ctx, result))

    def send_encoded(self, ctx: Context, result: Any, line: bytes | None) -> None:
        """Send what `Engine.encode` has returned for a result."""
        if line is None:
            self.respond_slow(ctx, result)
        elif ctx.state is _NEW:
            ctx.state = _ANSWERED  # as in the table: the hot path
            ctx.channel.send_fast(line)
        elif self._remove(ctx):
            ctx.channel.send_response(line)

    def respond_slow(self, ctx: Context, result: Any) -> None:
        """Respond with a result that `Engine.encode` did not encode."""
        if ctx.id is None:
            return
        self._ensure_admitted(ctx)
        if is_input_required(result):
            self.session.questions.respond(ctx, result)
            return
        dropped: DroppedFields = []
        try:
            encoded = self.engine.convert(ctx, result, dropped)
        except Exception as error:
            self.fail(ctx, error)
            return
        self.send_result(ctx, encoded)
        self.engine.config.report_dropped(dropped, ctx.method, ctx.revision)

    def send_result(self, ctx: Context, encoded: msgspec.Struct) -> None:
        """Send the result of a request, unless the client has cancelled it."""
        if ctx.id is None or ctx.cancelled:
            return
        try:
            line = encode_message(Response("2.0", ctx.id, encoded))
        except Exception as error:
            try:
                line = encode_message(Response("2.0", ctx.id, self.engine.replace_result(ctx, encoded, error)))
            except Exception as failure:
                self.fail(ctx, failure)
                return
        if self._remove(ctx):
            ctx.channel.send_response(line)

    def fail(self, ctx: Context, error: BaseException) -> None:
        """Respond to a call whose handler raised."""
        if isinstance(error, KeyboardInterrupt):
            raise error
        self._ensure_admitted(ctx)
        try:
            self._respond_error(ctx, error)
        except Exception as broken:  # the error itself cannot be encoded: nothing was sent yet
            if ctx.id is not None:
                self._remove(ctx)
            self._send_internal_error(ctx, broken)

    def _respond_error(self, ctx: Context, error: BaseException) -> None:
        requests = requested_input(error)
        if requests is not None:
            wanted = D.InputRequiredResult(result_type="input_required", input_requests=requests)
            self.session.questions.respond(ctx, wanted)
        elif ctx.cancelled:
            pass  # its id may belong to another request by now
        elif self.session.is_closed:
            self._abandon(ctx)
        elif ctx.method == LISTEN and isinstance(error, asyncio.CancelledError):
            self.respond(ctx, self.session.subscriptions.final_result(ctx))  # the server ends the subscription
        elif isinstance(error, asyncio.CancelledError) and ctx.task is not None and ctx.task.cancelling():
            self.reject(ctx, CallLostError("the server stopped before this call had ended"))
        elif ctx.id is None:
            text = f"the handler of {ctx.method} failed"
            self.engine.config.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, ctx.method, error=error))
        elif isinstance(error, RemoteError):
            self.reject(ctx, error)
        elif isinstance(error, UnimplementedMethodError):
            self.reject(ctx, RemoteError(METHOD_NOT_FOUND, str(error)))
        elif self._remove(ctx):
            self._send_internal_error(ctx, error)

    def reject(self, ctx: Context, error: RemoteError) -> None:
        """Respond to a request in flight with an error."""
        if ctx.id is None or not self._remove(ctx):
            return
        code = error.wire_code(ctx.revision)
        if self.observer is not None:
            self.observer.on_error(ctx, code, error.message)
        ctx.channel.send_response(encode_error(ctx.id, code, error.message, error.data), code)
        if is_reserved_code(error.code, ctx.revision):
            text = f"the error code {error.code} is reserved in {ctx.revision}; {code} was sent"
            self.engine.config.report(Diagnostic(DiagnosticKind.DROPPED, text, ctx.method, ctx.id, error.code, error))

    def _send_internal_error(self, ctx: Context, error: BaseException) -> None:
        """Send an internal error for a request that was removed, and report its cause."""
        text = f"internal error in {ctx.method}"
        if self.observer is not None:
            self.observer.on_error(ctx, INTERNAL_ERROR, text)
        if ctx.id is not None:
            ctx.channel.send_response(encode_error(ctx.id, INTERNAL_ERROR, text), INTERNAL_ERROR)
        cause = f"{ctx.method} failed: {_safe_repr(error)}"
        self.engine.config.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, cause, ctx.method, ctx.id, error=error))

    def _abandon(self, ctx: Context) -> None:
        """End a request without a response."""
        if ctx.id is not None and self._remove(ctx):
            ctx.channel.abandon()


def _safe_repr(error: BaseException) -> str:
    """Return the `repr` of an exception, which may fail itself."""
    try:
        return repr(error)
    except Exception:
        return f"a {type(error).__name__} that cannot be printed"


async def _as_coroutine(awaitable: Awaitable[T]) -> T:
    return await awaitable
