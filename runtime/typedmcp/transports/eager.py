"""Tasks that begin at once: a coroutine that does not wait needs no turn of the event loop.

That saves a sixth of the time of a call over HTTP, and as much over stdio. Python 3.12 has such tasks. On 3.11 a
coroutine takes its first step in place of a task that waits for work, and keeps that task if it has to wait itself.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Coroutine
from typing import Any, Final

from typedmcp.transports.concurrency import resume

__all__ = ["EagerTasks", "is_equal"]

_HAS_EAGER_TASKS: Final = sys.version_info >= (3, 12)
_enter_task, _leave_task = asyncio.tasks._enter_task, asyncio.tasks._leave_task
"""Documented under "Extending asyncio"."""


def is_equal(context: contextvars.Context, other: contextvars.Context | None) -> bool:
    """Return whether contexts have the same variables. Values that cannot be compared are different."""
    try:
        return context == other
    except Exception:
        return False


class EagerTasks:
    """Starts tasks of one event loop at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop: asyncio.AbstractEventLoop = loop
        self.is_ready: bool = _HAS_EAGER_TASKS
        """True if a coroutine can begin at once, for a caller that is no task."""
        self._carrier: _Carrier | None = None
        """The task that waits for work. One is enough, since only one coroutine at a time takes its first step."""

    async def prepare(self) -> None:
        """Wait until `is_ready` is True."""
        while not self.is_ready:
            self._carrier = self._carrier or _Carrier(self)
            await asyncio.sleep(0)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        """Run a coroutine, which must not raise. Return its task if it waits.

        On 3.11, the task begins in the next turn for a caller that is a task itself, and no callback of the loop, and
        right after a coroutine that waits.
        """
        if _HAS_EAGER_TASKS:
            task: asyncio.Task[None] = asyncio.Task(work, loop=self.loop, eager_start=True)  # type: ignore[call-arg]
            return None if task.done() else task
        carrier = self._carrier
        if carrier is None:
            carrier = self._carrier = _Carrier(self)
        if not self.is_ready:
            return self.loop.create_task(work)
        try:
            _enter_task(self.loop, carrier.task)
        except RuntimeError:  # the caller is a task
            return self.loop.create_task(work)
        try:
            waits_for = carrier.context.run(work.send, None)
        except StopIteration:
            if not carrier.is_clean():
                self._carrier = _Carrier(self)
            return None
        finally:
            _leave_task(self.loop, carrier.task)
        carrier.carry(work, waits_for)
        self._carrier = _Carrier(self)
        return carrier.task

    def close(self) -> None:
        """End the task that waits for work."""
        if self._carrier is not None:
            self._carrier.task.cancel()
            self._carrier = None


class _Carrier:
    """A task that waits for a coroutine which has taken its first step, and drives it to its end."""

    def __init__(self, tasks: EagerTasks) -> None:
        self._tasks = tasks
        tasks.is_ready = False  # a task that is cancelled before it begins would never take the work
        self._wake: asyncio.Future[None] = tasks.loop.create_future()
        self._work: tuple[Coroutine[Any, Any, None], Any] | None = None
        """The coroutine, and what its first step yielded."""
        self._clean = contextvars.copy_context()
        self.context: contextvars.Context = contextvars.copy_context()
        self.task: asyncio.Task[None] = tasks.loop.create_task(self._carry(), context=self.context)

    def is_clean(self) -> bool:
        """Return whether another coroutine can begin here: the last one has left neither variables nor cancellation."""
        if is_equal(self.context, self._clean) and not self.task.cancelling():
            return True
        self.task.cancel()
        return False

    def carry(self, work: Coroutine[Any, Any, None], waits_for: Any) -> None:
        """Drive a coroutine whose first step yielded `waits_for`."""
        self._work = work, waits_for
        if not self._wake.done():
            self._wake.set_result(None)

    async def _carry(self) -> None:
        self._tasks.is_ready, is_cancelled = True, False
        try:
            await self._wake
        except asyncio.CancelledError:
            is_cancelled = True
        if self._work is None:
            return
        (work, waits_for), self._work = self._work, None
        # A cancellation that came before this step of the task goes where `Task.cancel` would have sent it.
        if is_cancelled and (waits_for is None or not waits_for.cancel()):
            try:
                waits_for = work.throw(asyncio.CancelledError())
            except StopIteration:
                return
        await resume(work, waits_for)
