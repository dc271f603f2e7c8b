"""The workers of a connection of lines.

A worker is a task that reads lines, calls their handlers, and awaits each handler in place, so that a handler that does
not wait needs no task of its own. If a handler waits, it keeps the task of its worker, and a new worker takes over the
lines.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from typing import Final

from typedmcp.protocol.framing import Framer, OversizeMessage
from typedmcp.server.call_states import CallState
from typedmcp.server.context import Context
from typedmcp.server.line_channel import LineChannel
from typedmcp.server.session import Session
from typedmcp.transports import Transport
from typedmcp.transports.concurrency import resume

__all__ = ["LineWorkers"]

_NEW: Final = CallState.NEW
_ANSWERED: Final = CallState.ANSWERED

_PIPELINE_SECONDS: Final = 0.25
"""A client that ends its side within this time after its last request waits for the responses, like a pipeline.
One that does so later has left its session: some clients crash if they get responses then."""


class LineWorkers:
    """Handles the lines of a transport, as calls of a session."""

    def __init__(self, session: Session, channel: LineChannel, transport: Transport) -> None:
        limits = session.config.limits
        self.has_client_left: bool = False
        """True if the client has ended its side some time after its last request."""
        self._calls = session.calls
        self._encode = session.engine.encode
        self._closing = session.closing
        self._channel = channel
        self._transport = transport
        self._framer = Framer(limits.message_bytes, limits.message_depth)
        self._lines: deque[bytes | OversizeMessage] = deque()
        self._latest: Context | None = None
        """The call whose handler was called last."""
        self._worker: asyncio.Task[None] | None = None

    def run(self, context: contextvars.Context, finished: asyncio.Future[None]) -> None:
        """Begin to handle lines, in a context. `finished` completes at the end of the stream, or with an exception."""
        self._calls.context = context
        self._finished = finished
        self._loop = finished.get_loop()
        self._start_worker()

    def stop(self) -> None:
        """Read nothing more, since the session is closing."""
        if self._worker is not None:
            self._worker.cancel()

    def _start_worker(self) -> None:
        self._worker = self._calls.create_task(self._work())
        self._worker.add_done_callback(self._on_worker_done)

    def _on_worker_done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if self._finished.done():
            return
        if error is not None:
            self._finished.set_exception(error)
        elif task is self._worker and task.cancelled() and not self._closing.is_set():
            self._start_worker()  # a handler that did not wait has cancelled its task
        elif task is self._worker:
            self._finished.set_result(None)

    async def _work(self) -> None:
        """Read lines and handle them, until one of the handlers waits."""
        clean = contextvars.copy_context()
        while True:
            while self._lines:
                if self._transport.is_congested:
                    await self._channel.drain()
                self._channel.will_flush = True  # at the end of these lines, or when this task waits
                handling = self._handle_lines(clean)
                try:
                    waits_for = handling.send(None)
                except StopIteration:
                    self._latest = None  # it may be large
                else:
                    # A handler waits. It keeps this task, and the next lines get a new one.
                    ctx, self._latest = self._latest, None
                    assert ctx is not None
                    self._start_worker()
                    await self._calls.wait(ctx, resume(handling, waits_for))
                    return
                if _context_changed(clean):
                    # The next handler must not see the context variables that a handler has set.
                    self._start_worker()
                    return
            self._channel.flush()
            if not await self._read_more():
                return

    async def _handle_lines(self, clean: contextvars.Context) -> None:
        """Handle lines in one step, up to the first handler that waits."""
        lines, transport, calls, channel = self._lines, self._transport, self._calls, self._channel
        while lines and not transport.is_congested:
            started = calls.start(lines.popleft(), channel)
            if started is None:
                if _context_changed(clean):
                    return
                continue
            ctx, handling = started
            self._latest = ctx
            try:
                result = await handling
            except BaseException as error:
                calls.fail(ctx, error)
            else:
                line = self._encode(ctx, result)
                if line is not None and ctx.state is _NEW:
                    ctx.state = _ANSWERED  # as in `send_encoded`, whose call would cost 1 % of a call
                    channel.send_fast(line)
                else:
                    calls.send_encoded(ctx, result, line)
            if ctx.task is not None or _context_changed(clean):
                return

    async def _read_more(self) -> bool:
        """Read more lines. Return False at the end of the stream."""
        if self._closing.is_set():
            return False
        began = self._loop.time() if len(self._calls.tasks) > 1 else None  # while a handler waits
        try:
            data = await self._transport.read()
        except OSError as error:
            self._channel.report_broken(error)
            data = b""
        if not data and began is not None:
            self.has_client_left = self._loop.time() - began > _PIPELINE_SECONDS
        self._lines.extend(self._framer.feed(data) if data else self._framer.end())
        return bool(data) or bool(self._lines)


def _context_changed(clean: contextvars.Context) -> bool:
    """Return whether a handler has set context variables of this task."""
    try:
        return contextvars.copy_context() != clean
    except Exception:  # values that cannot be compared
        return True
