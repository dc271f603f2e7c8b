"""Lifespans: resources that are open while a server runs, such as a database, a model or a connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias, cast

from typedmcp.errors import ConnectionLostError, UsageError

__all__ = ["Lifespan", "LifespanManager", "Lifespans"]

Lifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any] | AsyncGenerator[Any]]
"""A function that takes the server and opens its resources. The value that it yields is `ctx.lifespan`."""
Lifespans: TypeAlias = Callable[[], Mapping[object, Lifespan]]
"""A function that returns the lifespans by server."""


class LifespanManager:
    """Enters lifespans with their first user, and leaves them with the last, in a task of their own.

    Context managers that contain task groups must be left in the task that entered them.
    """

    def __init__(self, lifespans: Lifespans) -> None:
        self._lifespans = lifespans
        self.states: dict[object, Any] = {}
        """The values that the lifespans yielded, by their servers."""
        self._users = 0
        self._task: asyncio.Task[None] | None = None
        self._entered: asyncio.Future[None] | None = None
        self._end: asyncio.Event | None = None
        self._leaving: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """True while the lifespans have users."""
        return self._task is not None

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[None]:
        """Keep the lifespans open in a block. Exceptions of entering and leaving them are raised."""
        await self.enter()
        try:
            yield
        finally:
            await self.leave()

    async def enter(self) -> None:
        """Add a user, and wait until the lifespans are entered.

        Raises `ConnectionLostError` if entering them is cancelled, and the exceptions of entering them.
        """
        if not self._lifespans():
            return
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            self._users, self._end, self._entered = 0, asyncio.Event(), loop.create_future()
            self._task = loop.create_task(self._run(self._entered, self._end))
        elif self._task.get_loop() is not loop:
            raise UsageError("lifespan: a server with a lifespan runs in one event loop at a time")
        self._users += 1
        assert self._entered is not None
        try:
            await asyncio.shield(self._entered)
        except BaseException:
            await self.leave()
            raise

    async def leave(self) -> None:
        """Remove a user. The last one leaves the lifespans, or cancels entering them."""
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
        await asyncio.wait([task])  # the task goes on if this is cancelled
        if not task.cancelled():
            task.result()

    def interrupt(self) -> None:
        """Cancel entering or leaving the lifespans, whichever is in progress: the process is about to end."""
        is_entering = self._task is not None and self._entered is not None and not self._entered.done()
        task = self._task if is_entering else self._leaving
        if task is not None:
            task.cancel()

    async def _run(self, entered: asyncio.Future[None], end: asyncio.Event) -> None:
        async with AsyncExitStack() as stack:
            states: dict[object, Any] = {}
            try:
                for owner, lifespan in self._lifespans().items():
                    states[owner] = await stack.enter_async_context(_as_context_manager(lifespan(owner)))
            except BaseException as error:
                is_cancelled = isinstance(error, asyncio.CancelledError)
                entered.set_exception(
                    ConnectionLostError("the server ended before its lifespan began") if is_cancelled else error
                )
                entered.exception()  # perhaps no user is waiting
                return
            self.states = states
            entered.set_result(None)
            await end.wait()


def _as_context_manager(made: object) -> AbstractAsyncContextManager[Any]:
    """Return the context manager of a lifespan; a generator becomes one, as with `asynccontextmanager`."""
    if isinstance(made, AsyncGenerator):
        return asynccontextmanager(lambda: cast("AsyncGenerator[Any]", made))()
    if not isinstance(made, AbstractAsyncContextManager):
        raise UsageError(f"lifespan must return an async context manager, not {made!r}")
    return cast("AbstractAsyncContextManager[Any]", made)
