"""One connection of a server: lines in, handlers called, lines out.

The hot path is `_work`: a worker task reads, decodes, calls the handler and awaits it in place, so that a handler
which does not wait costs no task. Where one does wait, its worker becomes the handler's own task, and another worker
takes over the reading.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from typing import Any

from mcpspec._support.objects import LARGE
from mcpspec._support.structs import may_have_lost
from typedmcp.codec import Response, encoder
from typedmcp.context import Context
from typedmcp.edge.convert import Lost
from typedmcp.engine import Channel, Engine, resumed
from typedmcp.errors import ConnectionLost
from typedmcp.peer import Kind, Report
from typedmcp.service import Service
from typedmcp.transports import Transport
from typedmcp.wire import Framer, Oversize

__all__ = ["ServerSession"]

_encode_into = encoder.encode_into
_EARLY = 4096
"""How many bytes of answers are collected before they are sent: the peer works on them while the rest is made."""
_LARGE = 1 << 16
"""From how many bytes on an answer is sent by itself, rather than copied to the others."""
_ABSENT: Any = object()


class ServerSession(Engine):
    """Serves one connection until it ends.

    `principal` is who the client was authenticated as, if it was.
    """

    def __init__(self, service: Service, transport: Transport, *, principal: str | None = None) -> None:
        super().__init__(service, principal=principal)
        self._transport = transport
        self._framer = Framer(service.limit)
        self._lines: deque[bytes | Oversize] = deque()
        self._out = bytearray()
        self._line = bytearray()
        self._flushing = False
        self._worker: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None
        self.begun: bool = False
        """Whether the lifespan has been entered."""
        self._entered: Any = None
        """The context of the handler that was entered last."""

    # Running

    async def run(self) -> None:
        """Serve until the peer closes, then let open requests finish, for `grace` seconds at most."""
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._finished: asyncio.Future[None] = self._loop.create_future()
        if not await self._begin():
            return
        self._hire()
        try:
            await self._finished
            self.ending.set()
            self._lose_calls()
            if self.tasks:
                await asyncio.wait(set(self.tasks), timeout=self.service.grace)
        finally:
            try:
                await self._close()
            finally:
                await self.service.running.leave()

    async def _begin(self) -> bool:
        """Enter the lifespan. False where the connection is told to end before that is done."""
        entering = self._loop.create_task(self.service.running.enter())
        try:
            await asyncio.wait([entering, self._finished], return_when=asyncio.FIRST_COMPLETED)
            self.begun = entering.done()
            if self.begun:
                await entering
        finally:
            if not entering.done():
                entering.cancel()
                await asyncio.wait([entering])
            if not self.begun or entering.exception() is not None:  # there is nobody to serve the client
                await self._transport.close()
        return self.begun

    def stop(self) -> None:
        """End the connection from this side: nothing more is read, open requests may finish."""
        self.ending.set()
        if not self._finished.done():
            self._finished.set_result(None)
        if self._worker is not None:
            self._worker.cancel()

    async def _close(self) -> None:
        self._flush()
        self.ended = True
        self.ending.set()
        self.subscriptions.close()
        for ctx in list(self.in_flight.values()):
            ctx.cancelled = True  # which is all that a handler in a thread can see
        self._lose_calls()
        self.peer.close()
        tasks = set(self.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self.service.grace)
        try:
            await asyncio.wait_for(self._transport.close(), self.service.grace)
        except TimeoutError:
            self.report(Report(Kind.BROKEN, "the connection ended before the client had read everything"))

    def _lose_calls(self) -> None:
        """Nothing is read any more, so nothing that was asked can be answered."""
        for call in list(self.peer.pending.values()):
            self.peer.cancel(call.id)
            if not call.owner.done():
                call.owner.set_exception(ConnectionLost("the connection ended").of_call(call.method, call.id))
                call.owner.exception()  # it may be that nobody waits any more

    def _hire(self) -> None:
        """A new worker."""
        self._worker = self._loop.create_task(self._work(), context=self._context.copy())
        self.tasks.add(self._worker)
        self._worker.add_done_callback(self._let_go)

    def _let_go(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if self._finished.done():
            return
        if error is not None:
            self._finished.set_exception(error)
        elif task is self._worker and task.cancelled() and not self.ending.is_set():
            self._hire()  # a handler that did not wait has cancelled the task it was in
        elif task is self._worker:
            self._finished.set_result(None)

    async def _work(self) -> None:
        clean = contextvars.copy_context()
        while True:
            while self._lines:
                if self._transport.congested:
                    await self.drain(None)
                self._flushing = True  # at the end of these lines, or when this task waits
                handling = self._handle_lines(clean)
                try:
                    waits_for = handling.send(None)
                except StopIteration:
                    pass
                else:
                    # A handler waits. It keeps this task, and the next lines get one of their own.
                    self.note(self._entered)
                    self._entered.task = asyncio.current_task()
                    self._hire()
                    await resumed(handling, waits_for)
                    return
                if _differs(clean):
                    # What a handler left in the context of this task is none of the next one's business.
                    self._hire()
                    return
            self._flush()
            if not await self._read_more():
                return

    async def _handle_lines(self, clean: contextvars.Context) -> None:
        """Take lines in and answer them, up to the first handler that waits for something."""
        lines, transport = self._lines, self._transport
        while lines and not transport.congested:
            started = self.start(lines.popleft())
            if started is None:
                if _differs(clean):
                    return
                continue
            self._entered, answer = started
            ctx = self._entered
            try:
                result = await answer
            except BaseException as error:
                if ctx.task is None:
                    self.note(ctx)
                self.failed(ctx, error)
            else:
                if ctx.task is None:
                    self.answer_at_once(ctx, result)
                else:
                    self.answer(ctx, result)
            if ctx.task is not None or _differs(clean):
                return

    async def _read_more(self) -> bool:
        """Wait for more lines. False at the end of the stream."""
        if self.ending.is_set():
            return False
        try:
            data = await self._transport.read()
        except OSError as error:
            self.report(Report(Kind.BROKEN, f"the connection broke: {error}", error=error))
            data = b""
        self._lines.extend(self._framer.feed(data) if data else self._framer.end())
        return bool(data) or bool(self._lines)

    # Writing

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that the connection is served in."""
        return self._loop

    @property
    def congested(self) -> bool:
        """Whether the peer does not read what it is sent."""
        return self._transport.congested

    def is_congested(self, ctx: Context | None) -> bool:  # noqa: ARG002  # all share the connection
        """Whether the peer does not read what it is sent."""
        return self._transport.congested

    async def drain(self, ctx: Context | None) -> None:  # noqa: ARG002
        """Wait until it does."""
        self._flush()
        await self._transport.drain()
        self.subscriptions.resume()

    def drain_later(self, ctx: Context | None) -> None:
        """Tell of what was held back as soon as it does."""
        if self._draining is None or self._draining.done():
            self._draining = self._loop.create_task(self.drain(ctx), context=self._context.copy())
            self.tasks.add(self._draining)
            self._draining.add_done_callback(self.tasks.discard)

    def tell(self, ctx: Context | None, line: bytes) -> bool:  # noqa: ARG002
        """Send a message that is no answer."""
        self._out += line
        self._schedule_flush()
        return True

    def reply(self, channel: Channel | None, line: bytes, code: int | None = None) -> None:
        """Send an answer, or put it to the others of its batch."""
        if channel is not None:
            channel.reply(line, code)
        else:
            self._out += line
            self._schedule_flush()

    def _task_context(self) -> contextvars.Context:
        return self._context.copy()

    def _flush(self) -> None:
        self._flushing = False
        if self._out:
            self._write()

    def _write(self) -> None:
        data = bytes(self._out)
        self._out.clear()
        self._send(data)

    def _send(self, data: bytes) -> None:
        try:
            self._transport.write(data)
        except OSError as error:
            self.report(Report(Kind.BROKEN, f"the connection broke: {error}", error=error))
            self.stop()

    def _schedule_flush(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def answer_at_once(self, ctx: Context, result: object) -> None:
        """`answer`, for a handler that did not wait: the hot path's second half."""
        entry, id = ctx.entry, ctx.id
        convert = entry.downs.get(type(result), _ABSENT)
        if convert is _ABSENT or id is None or ctx.channel is not None or id in self.in_flight:
            self.note(ctx)
            self.answer(ctx, result)
            return
        lost: Lost = []
        line, out = self._line, self._out
        try:
            encoded = result if convert is None else convert(result, lost)
            if ctx.facts.is_modern:
                encoded = self.service.named(encoded)
            _encode_into(Response("2.0", id, encoded), line)
            is_lossy = line.rfind(b"null") >= 0 if len(line) <= LARGE else may_have_lost(line, encoded)
            if is_lossy or line.find(b"\n") >= 0:  # for which `in` takes three times as long
                raise ValueError("perhaps NaN, or JSON that was encoded already")
        except Exception:
            self.note(ctx)
            self.answer(ctx, result)
            return
        ctx.ended = True
        line += b"\n"
        if lost:
            self.report_lost(lost, entry.method, ctx.revision)
        if not out and len(line) > _LARGE:  # is not copied once more
            self._send(bytes(line))
            return
        out += line
        if len(out) > _EARLY:
            self._write()
        elif not self._flushing:
            self._schedule_flush()


def _differs(clean: contextvars.Context) -> bool:
    """Whether something was left in the context of this task."""
    try:
        return contextvars.copy_context() != clean
    except Exception:  # values that cannot be compared
        return True
