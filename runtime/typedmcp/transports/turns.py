"""A limit on simultaneous uses, whose waiting callers take turns."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable

from typedmcp.errors import RequestTimeoutError

__all__ = ["FairLimit"]


class FairLimit:
    """Admits a number of uses at a time. Callers that wait are admitted in turn, one use of each caller after another.

    So a caller with a thousand uses delays another one by one use, and not by a thousand.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used: int = 0
        self.waiting: int = 0
        self._queues: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()
        """The uses that wait, by caller. The first caller is the next."""

    @property
    def has_room(self) -> bool:
        """True if a use is admitted at once."""
        return self.used < self.limit and not self._queues

    def try_acquire(self) -> bool:
        """Begin a use if there is room at once. Return whether it has begun."""
        if not self.has_room:
            return False
        self.used += 1
        return True

    async def acquire(self, caller: Hashable, seconds: float | None, what: str) -> None:
        """Begin a use; wait for it if necessary.

        Raises `RequestTimeoutError` after some seconds. `what` describes the limit in it.
        """
        if self.try_acquire():
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, deque()).append(future)
        self.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await future
        except BaseException as error:
            self._withdraw(caller, future)
            if isinstance(error, TimeoutError):
                raise RequestTimeoutError(seconds or 0.0, limit=what) from None
            raise
        finally:
            self.waiting -= 1

    def release(self) -> None:
        """End a use, and admit the next caller."""
        self.used -= 1
        self._admit()

    def _admit(self) -> None:
        while self.used < self.limit and self._queues:
            caller, queue = self._queues.popitem(last=False)
            future = queue.popleft()
            if queue:
                self._queues[caller] = queue  # behind the others
            if not future.done():  # its caller may have been cancelled a moment ago
                self.used += 1
                future.set_result(None)

    def _withdraw(self, caller: Hashable, future: asyncio.Future[None]) -> None:
        """Remove a use that waits no longer. One that was admitted in the meantime ends."""
        if future.done() and not future.cancelled():
            self.release()
            return
        queue = self._queues.get(caller)
        if queue is not None and future in queue:
            queue.remove(future)
            if not queue:
                del self._queues[caller]
