"""The workers of a connection of lines.

A worker is a task that handles lines, and awaits their handlers in place. It begins as soon as lines arrive, so that a
handler that does not wait needs neither a task of its own nor another turn of the event loop. If a handler waits, it
keeps the task of its worker, and a new worker takes over the lines.
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
from typedmcp.transports import Transport, tap
from typedmcp.transports.eager import EagerTasks, is_equal

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
        self._closing = session.closing
        self._channel = channel
        self._transport = transport
        self._framer = Framer(limits.message_bytes, limits.message_depth)
        self._lines: deque[bytes | OversizeMessage] = deque()
        self._latest: Context | None = None
        """The call whose handler was called last."""
        self._handled_at = 0.0
        """The time of the latest lines, if handlers wait."""
        self._reader: asyncio.Task[None] | None = None

    def run(self, context: contextvars.Context, finished: asyncio.Future[None]) -> None:
        """Begin to handle lines, in a context. `finished` completes at the end of the stream, or with an exception."""
        self._calls.context = context
        self._finished = finished
        self._eager = EagerTasks(finished.get_loop())
        self._reader = self._calls.create_task(self._read())
        self._reader.add_done_callback(self._on_end)

    def stop(self) -> None:
        """Read nothing more, since the session is closing."""
        if self._reader is not None:
            self._reader.cancel()

    def _on_end(self, reader: asyncio.Task[None]) -> None:
        self._lines.clear()
        self._eager.close()
        if not reader.cancelled() and (error := reader.exception()) is not None:
            self._fail(error)
        elif not self._finished.done():
            self._finished.set_result(None)

    def _fail(self, error: BaseException) -> None:
        if not self._finished.done():
            self._finished.set_exception(error)

    # Reading

    async def _read(self) -> None:
        """Read up to the end of the stream. Most transports pass data to `_receive` instead, while no lines wait."""
        await self._eager.prepare()
        is_open = True
        while is_open and not self._closing.is_set():
            tap(self._transport, self._receive)
            is_open = await self._read_more()
            self._eager.loop.call_soon(self._handle)  # a worker cannot begin within this task
            await asyncio.sleep(0)
            while self._lines:
                await (self._channel.drain() if self._transport.is_congested else asyncio.sleep(0))

    async def _read_more(self) -> bool:
        """Read more lines. Return False at the end of the stream."""
        try:
            data = await self._transport.read()
        except OSError as error:
            self._channel.report_broken(error)
            data = b""
        if not data and len(self._calls.tasks) > 1:
            self.has_client_left = self._eager.loop.time() - self._handled_at > _PIPELINE_SECONDS
        self._lines += self._framer.feed(data) if data else self._framer.end()
        return bool(data)

    def _receive(self, data: bytes) -> bool:
        """Handle data as it arrives. Return False if lines wait, so that the transport keeps further data."""
        self._lines += self._framer.feed(data)
        self._handle()
        return not self._lines

    # Handling

    def _handle(self) -> None:
        """Handle lines, up to the first handler that waits. Another worker handles the rest in the next turn."""
        lines, transport, channel = self._lines, self._transport, self._channel
        if self._closing.is_set():
            lines.clear()
        if lines and self._eager.is_ready and not transport.is_congested:
            channel.will_flush = True  # below, at the end of these lines
            task = self._eager.start(self._work())
            if task is not None and self._latest is not None:
                self._calls.tasks.add(task)
                task.add_done_callback(self._calls.tasks.discard)
                task.add_done_callback(self._calls.hold(self._latest, task))
            self._latest = None  # it may be large
            channel.flush()
        if len(self._calls.tasks) > 1:
            self._handled_at = self._eager.loop.time()
        if not lines:
            return
        if not transport.is_congested:
            self._eager.loop.call_soon(self._handle)
        else:
            self._calls.create_task(channel.drain()).add_done_callback(lambda _: self._handle())

    async def _work(self) -> None:
        """Handle lines, up to the first handler that waits, and respond to that one."""
        lines, transport, calls, channel = self._lines, self._transport, self._calls, self._channel
        encode, clean = calls.engine.encode, calls.context
        try:
            while True:
                started = calls.start(lines.popleft(), channel)
                if started is not None:
                    ctx, handling = started
                    self._latest = ctx
                    try:
                        result = await handling
                    except BaseException as error:
                        calls.fail(ctx, error)
                    else:
                        line = encode(ctx, result)
                        if line is not None and ctx.state is _NEW:
                            ctx.state = _ANSWERED  # as in `send_encoded`, whose call would cost 1 % of a call
                            channel.send_fast(line)
                        else:
                            calls.send_encoded(ctx, result, line)
                    if ctx.task is not None:
                        return
                # The next handler must not see the context variables that a handler has set.
                if not lines or transport.is_congested or not is_equal(contextvars.copy_context(), clean):
                    return
        except BaseException as error:
            self._fail(error)
