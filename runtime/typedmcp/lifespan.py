"""What is open for as long as a server runs: a database, a model, a connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias, cast

from typedmcp.errors import ConnectionLost, UsageError

__all__ = ["Lifespan", "Running"]

Lifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any] | AsyncGenerator[Any]]
"""What is open while a server runs: gets the server; what it yields is `ctx.lifespan`."""
Lifespans: TypeAlias = Callable[[], Mapping[object, Lifespan]]
"""Gives the lifespans, each with the object that it gets."""


class Running:
    """Lifespans, entered with the first that uses them and left with the last, in a task of their own.

    That is what context managers ask for that have task groups inside: to be left where they were entered.
    """

    def __init__(self, lifespans: Lifespans) -> None:
        self._lifespans = lifespans
        self.states: dict[object, Any] = {}
        """What each of them yielded."""
        self._users = 0
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._end: asyncio.Event | None = None
        self._leaving: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def entered(self) -> AsyncGenerator[None]:
        """Use them. What entering or leaving raises, is raised here."""
        await self.enter()
        try:
            yield
        finally:
            await self.leave()

    async def enter(self) -> None:
        """Use them from now on. Raises `ConnectionLost` where entering them is given up meanwhile."""
        if not self._lifespans():
            return
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            self._users, self._end, self._ready = 0, asyncio.Event(), loop.create_future()
            self._task = loop.create_task(self._run(self._ready, self._end))
        elif self._task.get_loop() is not loop:
            raise UsageError("a server with a lifespan runs in one event loop at a time")
        self._users += 1
        assert self._ready is not None
        try:
            await asyncio.shield(self._ready)
        except BaseException:
            await self.leave()
            raise

    async def leave(self) -> None:
        """Use them no more. Where the last user goes before they are entered, entering them is given up."""
        task = self._task
        if task is None:
            return
        self._users -= 1
        if self._users or task.get_loop() is not asyncio.get_running_loop():
            return
        assert self._end is not None
        self.interrupt()
        self._end.set()
        self._task, self._leaving = None, task
        await asyncio.wait([task])  # which goes on where this is cancelled
        if not task.cancelled():
            task.result()

    def interrupt(self) -> None:
        """Give up entering or leaving them, whichever is under way: somebody wants the process to end."""
        is_entering = self._task is not None and self._ready is not None and not self._ready.done()
        task = self._task if is_entering else self._leaving
        if task is not None:
            task.cancel()

    async def _run(self, ready: asyncio.Future[None], end: asyncio.Event) -> None:
        async with AsyncExitStack() as stack:
            states: dict[object, Any] = {}
            try:
                for owner, lifespan in self._lifespans().items():
                    states[owner] = await stack.enter_async_context(_manager(lifespan(owner)))
            except BaseException as error:
                is_given_up = isinstance(error, asyncio.CancelledError)
                ready.set_exception(ConnectionLost("ended before its lifespan had begun") if is_given_up else error)
                ready.exception()  # it may be that nobody waits any more
                return
            self.states = states
            ready.set_result(None)
            await end.wait()


def _manager(made: Any) -> AbstractAsyncContextManager[Any]:
    """What a lifespan gave; a generator is taken for what `asynccontextmanager` makes of it."""
    if isinstance(made, AsyncGenerator):
        return asynccontextmanager(lambda: cast("AsyncGenerator[Any]", made))()
    if not isinstance(made, AbstractAsyncContextManager):
        raise UsageError(f"a lifespan gives an async context manager, not {made!r}")
    return cast("AbstractAsyncContextManager[Any]", made)
