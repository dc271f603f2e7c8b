"""A connection that carries lines, such as standard input and output: it reads, dispatches and writes.

The hot path is `_work`: a worker task reads lines, calls their handlers, and awaits each handler in place, so that a
handler that does not wait needs no task of its own. If a handler waits, it keeps the task of its worker, and a new
worker takes over the lines.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import os
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcpspec.support.converters import DroppedFields
from typedmcp.errors import ConnectionLostError
from typedmcp.frames import FrameSink, ObservedTransport
from typedmcp.observers import Network
from typedmcp.protocol.budgets import CALL_BYTES, ClientKey
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Frame, Framer, OversizeMessage
from typedmcp.server.batches import BatchResponse
from typedmcp.server.config import CANCELLATION_SHARE, ServerConfig
from typedmcp.server.context import Context, ResponseSink
from typedmcp.server.dispatcher import Dispatcher, resume
from typedmcp.server.handshake import Handshake
from typedmcp.server.principal import Principal
from typedmcp.transports import Transport, network_of
from typedmcp.transports.concurrency import ThreadLimiter

__all__ = ["ServerConnection"]

_PIPELINE_SECONDS = 0.25
"""A client that ends its side within this time after its last request waits for the responses, like a pipeline.
One that does so later has left its session: some clients crash if they get responses then."""
_FLUSH_BYTES = 4096
"""Bytes of responses that are collected before they are sent: the client works on them while others are made."""
_LARGE_BYTES = 1 << 16
"""A message of more bytes is sent by itself, since copying it to the others would cost more."""

_numbers = itertools.count(1)


class ServerConnection(Dispatcher):
    """Serves one connection until it ends.

    `principal` is who the client authenticated as, if it did. `client` is the client that budgets count
    for, by default the principal or the connection. `threads` runs functions that block; by default the connection has
    threads of its own. `request_headers` are those of the HTTP request that opened the connection, if there was one.
    `use_once` records the use of a state that is valid once, by default for this process.
    """

    def __init__(
        self,
        config: ServerConfig,
        transport: Transport,
        *,
        principal: Principal | None = None,
        client: ClientKey = None,
        threads: ThreadLimiter | None = None,
        request_headers: Mapping[str, str] | None = None,
        use_once: Callable[[str, float], Awaitable[bool]] | None = None,
    ) -> None:
        if client is None:
            client = f"connection {next(_numbers)}" if principal is None else f"principal {principal.key}"
        super().__init__(
            config, principal=principal, client=client, threads=threads, request_headers=request_headers or {}
        )
        self._use_once = use_once or config.used_states.use_once
        self._transport = transport
        if config.record is not None:
            self._observe_frames(config.record)
        self._framer = Framer(config.limits.message_bytes, config.limits.message_depth)
        self._lines: deque[bytes | OversizeMessage] = deque()
        self._out = bytearray()
        self._will_flush = False
        self._worker: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None
        self._has_client_left = False
        self._is_running = False
        self.has_begun: bool = False
        """True once the lifespan has been entered."""
        self._session_id: str | None = None
        self._latest: Any = None
        """The context of the handler that was called last."""

    @property
    def session_id(self) -> str:
        """A text that identifies the connection."""
        if self._session_id is None:
            self._session_id = os.urandom(32).hex()
        return self._session_id

    @property
    def network(self) -> Network | None:
        """The carrier of the messages. None if the transport does not say it."""
        return network_of(self._transport) if self.is_local else "http"

    def _observe_frames(self, sink: FrameSink) -> None:
        from typedmcp.server.observation import ObservedConnection  # loaded where it is used

        if (on_frame := sink.open(ObservedConnection(self))) is not None:
            limit = self.config.limits.message_bytes
            self._transport = ObservedTransport(self._transport, on_frame, limit, peer="client")

    # Running

    async def run(self) -> None:
        """Serve until the client closes the connection or `stop` is called.

        Then give open requests `grace` seconds, cancel them, and send nothing more. If the client has left its session,
        they are cancelled at once.
        """
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._finished: asyncio.Future[None] = self._loop.create_future()
        self._is_running = True
        if self.closing.is_set():
            self._finished.set_result(None)
        if not await self._begin():
            return
        self._start_worker()
        try:
            await self._finished
            self.closing.set()
            self._fail_calls()
            if self.tasks:
                grace = 0 if self._has_client_left else self.config.connection_grace
                await asyncio.wait(set(self.tasks), timeout=grace)
        finally:
            if self.observer is not None:
                self.observer.on_end()
            await self._end()

    async def _begin(self) -> bool:
        """Enter the lifespan. Return False if the connection is stopped first."""
        entering = self._loop.create_task(self.config.lifespans.enter())
        try:
            await asyncio.wait([entering, self._finished], return_when=asyncio.FIRST_COMPLETED)
            self.has_begun = entering.done()
            if self.has_begun:
                await entering
        finally:
            if not entering.done():
                entering.cancel()
                await asyncio.wait([entering])
            if not self.has_begun or entering.exception() is not None:  # the client cannot be served
                await self._transport.close()
        return self.has_begun

    def stop(self) -> None:
        """End the connection from this side: nothing more is read, open requests may finish.

        A connection that does not run yet ends as soon as `run` is called.
        """
        self.closing.set()
        if self._is_running and not self._finished.done():
            self._finished.set_result(None)
        if self._worker is not None:
            self._worker.cancel()

    async def _end(self) -> None:
        """Cancel the open requests, and leave the lifespan while the client reads what was written before."""
        self._cancel_requests()
        if not self.tasks and not self.config.lifespans.is_open:
            await self._close_transport()
            return
        closing = self._loop.create_task(self._close_transport())
        try:
            if self.tasks:
                seconds = self.config.connection_grace * CANCELLATION_SHARE
                _, unended = await asyncio.wait(set(self.tasks), timeout=seconds)
                self.config.report_unended(unended, seconds)
        finally:
            try:
                await self.config.lifespans.leave()
            finally:
                await asyncio.wait([closing])
        closing.result()

    def _cancel_requests(self) -> None:
        """Cancel the open requests, and send nothing more."""
        self._flush()
        self.is_closed = True
        self.closing.set()
        self.end_callbacks.call()
        self.subscriptions.close()
        for ctx in list(self.in_flight.values()):
            ctx.cancelled = True  # a handler in a thread sees nothing else
            _discard_batch(ctx)
        self._fail_calls()
        self.pending.close()
        for task in set(self.tasks):
            task.cancel()

    async def _close_transport(self) -> None:
        """Send what was written, as far as the client reads it, and end the connection."""
        try:
            async with asyncio.timeout(self.config.connection_grace):
                await self._transport.close()
        except TimeoutError:
            text = "the connection ended before the client had read everything"
            self.report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, text))

    def _fail_calls(self) -> None:
        """Fail the open requests to the client, since no more responses are read."""
        for call in list(self.pending.calls.values()):
            self.pending.cancel_call(call.id)
            if not call.owner.done():
                call.owner.set_exception(ConnectionLostError("the connection ended").attach_call(call.method, call.id))
                call.owner.exception()  # perhaps no task is waiting for it

    def use_once(self, name: str, seconds: float) -> Awaitable[bool]:
        """Record the use of a name, for some seconds. The result is False if it was used already."""
        return self._use_once(name, seconds)

    def _start_worker(self) -> None:
        self._worker = self._loop.create_task(self._work(), context=self._context.copy())
        self.tasks.add(self._worker)
        self._worker.add_done_callback(self._on_worker_done)

    def _on_worker_done(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if self._finished.done():
            return
        if error is not None:
            self._finished.set_exception(error)
        elif task is self._worker and task.cancelled() and not self.closing.is_set():
            self._start_worker()  # a handler that did not wait has cancelled its task
        elif task is self._worker:
            self._finished.set_result(None)

    async def _work(self) -> None:
        """Read lines and handle them, until one of the handlers waits."""
        clean = contextvars.copy_context()
        while True:
            while self._lines:
                if self._transport.is_congested:
                    await self.drain(None)
                self._will_flush = True  # at the end of these lines, or when this task waits
                handling = self._handle_lines(clean)
                try:
                    waits_for = handling.send(None)
                except StopIteration:
                    self._latest = None  # it may be large
                else:
                    # A handler waits. It keeps this task, and the next lines get a new one.
                    ctx: Context = self._latest
                    self._latest = None
                    self.ensure_registered(ctx)
                    ctx.task = asyncio.current_task()
                    self._start_worker()
                    size = CALL_BYTES + len(ctx.raw)
                    use = self.hold(self.client, size)
                    try:
                        await resume(handling, waits_for)
                    finally:
                        self.release(use, size)
                    return
                if _context_changed(clean):
                    # The next handler must not see the context variables that a handler has set.
                    self._start_worker()
                    return
            self._flush()
            if not await self._read_more():
                return

    async def _handle_lines(self, clean: contextvars.Context) -> None:
        """Handle lines in one step, up to the first handler that waits."""
        lines, transport = self._lines, self._transport
        while lines and not transport.is_congested:
            started = self.dispatch(lines.popleft())
            if started is None:
                if _context_changed(clean):
                    return
                continue
            self._latest, handling = started
            ctx = self._latest
            try:
                result = await handling
            except BaseException as error:
                if ctx.task is None:
                    self.ensure_registered(ctx)
                self.respond_error(ctx, error)
            else:
                if ctx.task is not None:
                    self.respond(ctx, result)
                elif (line := self.encode_result(ctx, result)) is None:
                    self.ensure_registered(ctx)
                    self.respond_slow(ctx, result)
                else:
                    self.send_fast(ctx, line)
            if ctx.task is not None or _context_changed(clean):
                return

    async def _read_more(self) -> bool:
        """Read more lines. Return False at the end of the stream."""
        if self.closing.is_set():
            return False
        began = self._loop.time() if len(self.tasks) > 1 else None  # while a handler waits
        try:
            data = await self._transport.read()
        except OSError as error:
            self._report_broken(error)
            data = b""
        if not data and began is not None:
            self._has_client_left = self._loop.time() - began > _PIPELINE_SECONDS
        self._lines.extend(self._framer.feed(data) if data else self._framer.end())
        return bool(data) or bool(self._lines)

    # Sessions

    def restart_session(self, frame: Frame, dropped: DroppedFields) -> Any:
        """Begin a new session on this connection. Its client has left it, such as the earlier user of a proxy.

        The open requests are cancelled without a response: the new client uses their ids again.
        """
        if self.config.strict:
            return super().restart_session(frame, dropped)
        handshake = Handshake(self.config)
        result = handshake.handle_request(frame, dropped)
        text = "initialize: a new session begins on this connection, in place of the one that was open"
        self.report(Diagnostic(DiagnosticKind.TOLERATED, text, frame.method, frame.id))
        for id, ctx in list(self.in_flight.items()):
            _discard_batch(ctx)
            self.cancel(id)
        self._fail_calls()
        self.subscriptions.close()
        self.subscriptions.uris.clear()
        self.metadata.open_session(None)
        self.handshake = handshake
        return result

    # Writing

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that the connection is served in."""
        return self._loop

    def is_congested(self, ctx: Context | None) -> bool:  # noqa: ARG002  # all requests share the connection
        """Return whether the client does not read what is sent to it."""
        return self._transport.is_congested

    async def drain(self, ctx: Context | None) -> None:  # noqa: ARG002
        """Wait until the client reads again."""
        self._flush()
        await self._transport.drain()
        self.subscriptions.resume()

    def drain_later(self, ctx: Context | None) -> None:
        """Send delayed changes as soon as the client reads again."""
        if self._draining is None or self._draining.done():
            self._draining = self._loop.create_task(self.drain(ctx), context=self._context.copy())
            self.tasks.add(self._draining)
            self._draining.add_done_callback(self.tasks.discard)

    def send_message(self, ctx: Context | None, line: bytes) -> bool:  # noqa: ARG002
        """Send a notification or a request."""
        self._send_line(line)
        return True

    def send_response(self, sink: ResponseSink | None, line: bytes, code: int | None = None) -> None:
        """Send a response, or add it to its batch."""
        if sink is not None:
            sink.send_response(line, code)
        else:
            self._send_line(line)

    def _send_line(self, line: bytes) -> None:
        if len(line) > _LARGE_BYTES:
            self._send_large(line)
            return
        self._out += line
        self._out += b"\n"
        self._schedule_flush()

    def _send_large(self, line: bytes) -> None:
        if self._out:
            self._write_out()
        self._write(line, b"\n")

    def send_fast(self, ctx: Context, line: bytes) -> None:  # noqa: ARG002
        """Send a response."""
        if len(line) > _LARGE_BYTES:
            self._send_large(line)
            return
        out = self._out
        out += line
        out += b"\n"
        if len(out) > _FLUSH_BYTES:
            self._write_out()
        elif not self._will_flush:
            self._schedule_flush()

    def _task_context(self) -> contextvars.Context:
        return self._context.copy()

    def _schedule_flush(self) -> None:
        if not self._will_flush:
            self._will_flush = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._will_flush = False
        if self._out:
            self._write_out()

    def _write_out(self) -> None:
        data = bytes(self._out)
        self._out.clear()
        self._write(data)

    def _write(self, *parts: bytes) -> None:
        try:
            for data in parts:
                self._transport.write(data)
        except OSError as error:
            self._report_broken(error)
            self.stop()

    def _report_broken(self, error: OSError) -> None:
        text = f"the connection broke: {error}"
        self.report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, text, error=error))


def _discard_batch(ctx: Context) -> None:
    """Send no response to the batch that a request was in, not even for its other requests."""
    if isinstance(ctx.sink, BatchResponse):
        ctx.sink.discard()


def _context_changed(clean: contextvars.Context) -> bool:
    """Return whether a handler has set context variables of this task."""
    try:
        return contextvars.copy_context() != clean
    except Exception:  # values that cannot be compared
        return True
