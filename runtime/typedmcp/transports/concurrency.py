"""Event loops, threads for functions that block, coroutines, and results that may be awaitable."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Generator, Hashable, Iterator
from contextlib import suppress
from contextvars import copy_context
from functools import partial, wraps
from types import GeneratorType, coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from typedmcp.errors import RequestTimeoutError, UsageError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = [
    "FairLimit", "ThreadLimiter", "is_awaitable", "is_in_event_loop", "limit_time", "must_await", "name_function",
    "new_event_loop", "resume", "run_in_daemon_thread",
]  # fmt: skip

_REMEDY: Final = "make the function async, and write `await`"
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


F = TypeVar("F", bound=Callable[..., Any])
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


class _MustAwait(Coroutine[Any, Any, Any]):
    """A coroutine whose text and truth cannot be taken for those of its result, as in a function that is not async."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.__qualname__ = inner, inner.__qualname__

    def __await__(self) -> Any:
        return self._inner.__await__()

    def send(self, value: Any) -> Any:
        return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        return self._inner.throw(*error)

    def close(self) -> None:
        self._inner.close()

    def _reject(self, *_: object) -> Any:
        self._inner.close()  # otherwise Python says once more, later, that it was not awaited
        raise TypeError(f"{self.__qualname__}() was not awaited; {_REMEDY}")

    __str__ = __format__ = __iter__ = _reject

    def __bool__(self) -> bool:  # from Python 3.12 on, the text of a task asks for it
        return inspect.getcoroutinestate(self._inner) != inspect.CORO_CREATED or self._reject()

    def __getattr__(self, name: str) -> Any:
        try:
            self._reject()
        except TypeError as error:
            raise AttributeError(f"{name!r}: {error}", name=name, obj=self) from None


def must_await(function: F) -> F:
    """Let an async method return a coroutine that cannot be used like its result.

    It raises `UsageError` where no event loop runs, as in the thread of a function that is not async.
    """

    @wraps(function)
    def call(*args: Any, **options: Any) -> _MustAwait:
        if not is_in_event_loop():
            raise UsageError(f"{function.__qualname__}() cannot be awaited in a thread; {_REMEDY}")
        return _MustAwait(function(*args, **options))

    return cast(F, call)


def is_in_event_loop() -> bool:
    """Return whether an event loop is running in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
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


class FairLimit:
    """Admits a number of uses at a time. Callers that wait are admitted in turn, one use of each caller after another.

    So a caller with a thousand uses delays another one by one use, and not by a thousand. A caller that is not None has
    at most `most_per_caller` uses at a time.
    """

    def __init__(self, limit: int, most_per_caller: int | None = None) -> None:
        self.limit = limit
        self.used: int = 0
        self.waiting: int = 0
        self._most = limit if most_per_caller is None else most_per_caller
        self._has_shares = self._most < limit
        self._shares: dict[Hashable, int] = {}
        """The uses of each caller; counted only if callers have shares."""
        self._queues: dict[Hashable, OrderedDict[asyncio.Future[None], None]] = {}
        """The uses that wait, by caller, in the order of their turns."""

    @property
    def has_room(self) -> bool:
        """True if a use is admitted at once, unless its caller has its share."""
        return self.used < self.limit

    def try_acquire(self, caller: Hashable = None) -> bool:
        """Begin a use if there is room at once. Return whether it has begun."""
        if self.used >= self.limit or (self._has_shares and not self._may_take(caller)):
            return False
        self._take(caller)
        return True

    async def acquire(self, caller: Hashable, seconds: float | None = None, what: str | None = None) -> None:
        """Begin a use; wait for it if necessary.

        Raises `RequestTimeoutError` after some seconds. `what` describes the limit in it.
        """
        if self.try_acquire(caller):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, OrderedDict())[turn] = None
        self.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException as error:
            self._withdraw(caller, turn)
            if isinstance(error, TimeoutError):
                raise RequestTimeoutError(seconds or 0.0, limit=what) from None
            raise
        finally:
            self.waiting -= 1

    def _withdraw(self, caller: Hashable, turn: asyncio.Future[None]) -> None:
        """Remove a use that waits no longer. One that was admitted in the meantime ends."""
        if turn.done() and not turn.cancelled():
            self.release(caller)
        elif turn in (turns := self._queues.get(caller, OrderedDict[asyncio.Future[None], None]())):
            del turns[turn]
            if not turns:
                del self._queues[caller]

    def release(self, caller: Hashable = None) -> None:
        """End a use, and admit the next caller."""
        self.used -= 1
        if self._has_shares and caller is not None:
            taken = self._shares.pop(caller) - 1
            if taken:
                self._shares[caller] = taken
        while self._queues and self.used < self.limit and (next_caller := self._next_caller()) is not _NOBODY:
            turns = self._queues.pop(next_caller)
            turn, _ = turns.popitem(last=False)
            if turns:
                self._queues[next_caller] = turns  # behind the others
            if not turn.done():  # its caller may have been cancelled a moment ago
                self._take(next_caller)
                turn.set_result(None)

    def _may_take(self, caller: Hashable) -> bool:
        return caller is None or self._shares.get(caller, 0) < self._most

    def _take(self, caller: Hashable) -> None:
        self.used += 1
        if self._has_shares and caller is not None:
            self._shares[caller] = self._shares.get(caller, 0) + 1

    def _next_caller(self) -> Hashable:
        return next((caller for caller in self._queues if self._may_take(caller)), _NOBODY)


class ThreadLimiter:
    """Runs functions in threads, at most `count` at a time, and at most `most_per_client` for one client.

    A function whose caller was cancelled counts until it ends.
    """

    def __init__(self, count: int, most_per_client: int | None = None) -> None:
        self._slots = FairLimit(count, most_per_client)

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


@coroutine
def resume(work: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """Drive a coroutine to its end after its first step, which yielded `waits_for`."""
    while True:
        try:
            sent = yield waits_for
        except BaseException as error:
            step: Any = work.throw
            argument: Any = error
        else:
            step, argument = work.send, sent
        try:
            waits_for = step(argument)
        except StopIteration as stop:
            return cast(T, stop.value)
