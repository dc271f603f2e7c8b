"""The callbacks that are running or waiting: for notifications in order, for requests at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from typedmcp.limits import Limits
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import RequestId
from typedmcp.transports.concurrency import is_awaitable, limit_time, name_function

__all__ = ["RunningCallbacks"]


class RunningCallbacks:
    """Awaits callbacks, within limits of their number and of the bytes of their messages.

    A call waits `grace` seconds for those that have been called before its result comes. They get as many to end at
    the end of the client.
    """

    def __init__(self, limits: Limits, grace: float, report: Callable[[Diagnostic], None]) -> None:
        self.answering: dict[RequestId, asyncio.Task[None]] = {}
        """The tasks that answer requests of a legacy server, by id."""
        self._limits = limits
        self._grace = grace
        self._report = report
        self._waiting: asyncio.Queue[tuple[Awaitable[object], int]] = asyncio.Queue(limits.waiting_notifications)
        """Async callbacks that have been called, in order, and the bytes of their notifications."""
        self._waiting_bytes = 0
        """Bytes of the notifications and requests whose callbacks wait or run."""
        self._awaiting: asyncio.Task[None] | None = None

    def answer(self, id: RequestId, answering: Coroutine[Any, Any, None], size: int) -> None:
        """Answer a request of `size` bytes in a task."""
        task = asyncio.get_running_loop().create_task(answering)
        self.answering[id] = task
        self._waiting_bytes += size
        task.add_done_callback(lambda _: self._end_answer(id, size))

    def _end_answer(self, id: RequestId, size: int) -> None:
        self.answering.pop(id, None)
        self._waiting_bytes -= size

    def has_room(self, size: int) -> bool:
        """Return whether a message has few enough bytes to wait with the others. The first one always has room."""
        return self._waiting_bytes == 0 or self._waiting_bytes + size <= self._limits.waiting_message_bytes

    def call(self, callback: Callable[[Any], object], params: Any, size: int) -> None:
        """Call a callback for a notification of `size` bytes.

        Async callbacks are awaited in order, in a task of their own.
        """
        try:
            returned = callback(params)
        except Exception as error:
            self._report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, f"a callback failed: {error!r}", error=error))
            return
        if not is_awaitable(returned):
            return
        if self._waiting.full() or not self.has_room(size):
            _discard(returned)
            limit = f"{self._limits.waiting_notifications} notifications"
            if not self._waiting.full():
                limit = f"{self._limits.waiting_message_bytes} bytes (waiting_message_bytes)"
            text = f"more than {limit} wait for callbacks: one is dropped"
            self._report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text))
            return
        self._waiting.put_nowait((returned, size))
        self._waiting_bytes += size
        if self._awaiting is None:
            self._awaiting = asyncio.get_running_loop().create_task(self._await_callbacks())

    async def _await_callbacks(self) -> None:
        while True:
            waiting, size = await self._waiting.get()
            try:
                await waiting
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                self._report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, "a callback was cancelled", error=error))
            except Exception as error:
                self._report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, f"a callback failed: {error!r}", error=error))
            finally:
                self._waiting_bytes -= size
                self._waiting.task_done()
            del waiting  # with the notification, which would live until the next one

    async def settle(self) -> None:
        """Wait until no callback for a notification waits or runs. One that makes a call does not wait for itself."""
        if asyncio.current_task() is not self._awaiting:
            await limit_time(self._grace, self._waiting.join())

    def cancel_answers(self) -> None:
        """Cancel the callbacks for requests, whose responses can no longer be sent."""
        for task in list(self.answering.values()):
            task.cancel()

    async def close(self, caller: asyncio.Task[Any] | None) -> None:
        """Cancel the running callbacks, except `caller`: a callback may close its own client.

        Those that do not end in time are reported, and the client closes without them.
        """
        tasks = {*self.answering.values(), *([self._awaiting] if self._awaiting else [])} - {caller}
        self._awaiting = None
        for task in tasks:
            task.cancel()
        if tasks:
            _, unended = await asyncio.wait(tasks, timeout=self._grace)
            for task in unended:
                text = f"the callback {name_function(task)} did not end within {self._grace:g} s of its cancellation"
                self._report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, f"{text} (grace): the client closes without it"))
        while not self._waiting.empty():
            callback, size = self._waiting.get_nowait()
            self._waiting_bytes -= size
            self._waiting.task_done()
            _discard(callback)


def _discard(awaitable: Awaitable[object]) -> None:
    """End what an async callback has returned, and will not be awaited."""
    if isinstance(awaitable, Coroutine):
        awaitable.close()
    elif isinstance(awaitable, asyncio.Future):
        awaitable.cancel()
