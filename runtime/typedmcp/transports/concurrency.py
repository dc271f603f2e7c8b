"""Event loops, threads for functions that block, and results that may be awaitable."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = [
    "FairSlots", "ThreadLimiter", "is_awaitable", "limit_time", "name_function", "new_event_loop",
    "run_in_daemon_thread",
]  # fmt: skip

_NOBODY = object()
_LIBRARY: Final = (os.path.dirname(os.path.dirname(__file__)), os.path.dirname(asyncio.__file__))
"""The folders of the functions that call and await those of users."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop, from uvloop if that is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


T = TypeVar("T")


async def limit_time(seconds: float | None, work: Awaitable[object]) -> bool:
    """Await something for some seconds at most, and return whether it ended in time. It is cancelled if it did not.

    Python 3.11's `asyncio.wait_for` ignores a cancellation that comes at the moment in which the work ends.
    """
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True


def name_function(task: asyncio.Task[Any]) -> str:
    """Return the name of the function that a task waits in: the first one that the library has called."""
    name, has_library = "a function", False
    for each in _awaited(task.get_coro()):
        code = each.cr_code if inspect.iscoroutine(each) else each.gi_code
        is_library = code.co_filename.startswith(_LIBRARY)
        name = each.__qualname__
        if has_library and not is_library:
            break
        has_library = has_library or is_library
    return name


def _awaited(waiting: object) -> Iterator[Any]:
    """Yield a coroutine or a generator, and what each of them awaits."""
    while inspect.iscoroutine(waiting) or inspect.isgenerator(waiting):
        yield waiting
        waiting = waiting.cr_await if inspect.iscoroutine(waiting) else _driven(waiting)


def _driven(generator: GeneratorType[Any, Any, Any]) -> object:
    """Return what a generator awaits. One that drives a coroutine by hand has it in a variable."""
    if generator.gi_yieldfrom is not None or generator.gi_frame is None:
        return generator.gi_yieldfrom
    return next((each for each in generator.gi_frame.f_locals.values() if inspect.iscoroutine(each)), None)


def run_in_daemon_thread(function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
    """Run a function in a new thread, in a copy of the current context. The future completes when the function ends."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def work() -> None:
        try:
            settle = partial(_settle, future, context.run(function, *args), None)
        except BaseException as error:
            settle = partial(_settle, future, None, error)
        with suppress(RuntimeError):  # the loop has been closed in the meantime
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=work, name=f"typedmcp {getattr(function, '__name__', '')}", daemon=True).start()
    return future


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if isinstance(error, StopIteration):  # futures do not accept it
        error = RuntimeError("the function raised StopIteration")
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class FairSlots:
    """A number of slots that clients take in turns, so that one client that waits for many delays the others by one.

    A client that is not None has at most `most_per_client` slots at a time.
    """

    def __init__(self, count: int, most_per_client: int | None = None) -> None:
        self._free = count
        self._most = count if most_per_client is None else most_per_client
        self._taken: dict[Hashable, int] = {}
        """The slots that each client has; counted only if clients have shares."""
        self._waiting: dict[Hashable, OrderedDict[asyncio.Future[None], None]] = {}
        """The clients that wait, in the order of their turns."""
        self._has_shares = self._most < count

    async def acquire(self, client: Hashable) -> None:
        """Wait for a slot."""
        if self._free and self._may_take(client):
            self._take(client)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, OrderedDict())[turn] = None
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot came together with the cancellation
                self.release(client)
            self._forget(client, turn)
            raise

    def _forget(self, client: Hashable, turn: asyncio.Future[None]) -> None:
        """Forget a client's wait that was cancelled."""
        turns = self._waiting.get(client)
        if turns is not None and turn in turns:
            del turns[turn]
            if not turns:
                del self._waiting[client]

    def release(self, client: Hashable) -> None:
        """Give a slot back. The next client that waits gets it."""
        self._free += 1
        if self._has_shares and client is not None:
            taken = self._taken.pop(client) - 1
            if taken:
                self._taken[client] = taken
        while self._free and (next_client := self._next_client()) is not _NOBODY:
            turns = self._waiting.pop(next_client)
            turn, _ = turns.popitem(last=False)
            if turns:
                self._waiting[next_client] = turns  # at the end: the others come first
            if not turn.done():
                self._take(next_client)
                turn.set_result(None)

    def _may_take(self, client: Hashable) -> bool:
        return client is None or self._taken.get(client, 0) < self._most

    def _take(self, client: Hashable) -> None:
        self._free -= 1
        if self._has_shares and client is not None:
            self._taken[client] = self._taken.get(client, 0) + 1

    def _next_client(self) -> Hashable:
        return next((client for client in self._waiting if self._may_take(client)), _NOBODY)


class ThreadLimiter:
    """Runs functions in threads, at most `count` at a time, and at most `most_per_client` for one client.

    A function whose caller was cancelled counts until it ends.
    """

    def __init__(self, count: int, most_per_client: int | None = None) -> None:
        self._slots = FairSlots(count, most_per_client)

    async def run(self, client: Hashable, function: Callable[..., T], *args: Any) -> T:
        """Wait for a thread, run the function in it for a client, and return its result."""
        await self._slots.acquire(client)
        future = run_in_daemon_thread(function, *args)
        future.add_done_callback(partial(self._release, client))
        return await asyncio.shield(future)

    def _release(self, client: Hashable, future: asyncio.Future[Any]) -> None:
        self._slots.release(client)
        if not future.cancelled():
            future.exception()  # retrieved, since the caller may have been cancelled


def is_awaitable(value: object) -> TypeIs[Awaitable[Any]]:
    """Return whether a handler or a callback returned an awaitable instead of its result."""
    return hasattr(type(value), "__await__")
