"""Deadlines of many tasks with one timer of the event loop.

`asyncio.timeout` starts a timer for each use and cancels it at the end. A call over HTTP, which seldom needs one, would
spend a tenth of its instructions on that.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any, TypeAlias

__all__ = ["Deadline", "Deadlines", "Timer"]


class Deadline:
    """The time at which a task is cancelled, unless the deadline is stopped before."""

    __slots__ = ("_cancelling", "_deadlines", "_has_expired", "_task", "_when")

    def __init__(self, deadlines: Deadlines, task: asyncio.Task[Any], when: float | None) -> None:
        self._deadlines = deadlines
        self._task = task
        self._cancelling = task.cancelling()
        self._when = when
        self._has_expired = False

    def when(self) -> float | None:
        """Return the time of the event loop at which the task is cancelled. None: never."""
        return self._when

    def expired(self) -> bool:
        """Return whether the task was cancelled because this time has come."""
        return self._has_expired

    def reschedule(self, when: float | None) -> None:
        """Change the time at which the task is cancelled. None: never."""
        self._when = when
        if when is not None:
            self._deadlines.schedule(when)

    def expire(self) -> None:
        """Cancel the task."""
        self._has_expired = True
        self._task.cancel()

    def take_cancellation(self) -> bool:
        """Return whether a `CancelledError` was raised for this deadline alone, and so ends with it."""
        return self._has_expired and self._task.uncancel() <= self._cancelling


Timer: TypeAlias = Deadline | asyncio.Timeout
"""A deadline of the current task, which can be changed."""


class Deadlines:
    """The deadlines of tasks, such as those that make calls to one server."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf
        """When the timer is due. It may be earlier than all deadlines that are left."""

    def start(self, when: float | None) -> Deadline:
        """Set a deadline for the current task, as a time of the event loop. None: it may be set later."""
        task: Any = asyncio.current_task()
        deadline = Deadline(self, task, when)
        self._open.add(deadline)
        if when is not None and when < self._due:
            self.schedule(when)
        return deadline

    def stop(self, deadline: Deadline) -> None:
        """End a deadline, whether it has passed or not."""
        self._open.discard(deadline)

    def schedule(self, when: float) -> None:
        """Look at all deadlines at this time, or before."""
        if when < self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due = when
            self._timer = self._loop.call_at(when, self._expire)

    def close(self) -> None:
        """Stop the timer if no deadline is left."""
        if self._timer is not None and not self._open:
            self._timer.cancel()
            self._timer, self._due = None, math.inf

    def _expire(self) -> None:
        self._timer, self._due = None, math.inf
        now, earliest = self._loop.time(), math.inf
        for deadline in list(self._open):
            when = deadline.when()
            if when is None:
                continue
            if when <= now:
                self._open.discard(deadline)
                deadline.expire()
            elif when < earliest:
                earliest = when
        if earliest < math.inf:
            self.schedule(earliest)
