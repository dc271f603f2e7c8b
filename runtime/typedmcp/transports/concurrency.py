"""Event loops, threads for functions that block, and results that may be awaitable."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["ThreadLimiter", "is_awaitable", "new_event_loop", "run_in_daemon_thread"]


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop, from uvloop if that is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


T = TypeVar("T")


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


class ThreadLimiter:
    """Runs functions in threads, at most `count` at a time.

    A function whose caller was cancelled counts until it ends.
    """

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Wait for a free thread, run the function in it, and return its result."""
        await self._free.acquire()
        future = run_in_daemon_thread(function, *args)
        future.add_done_callback(self._release)
        return await asyncio.shield(future)

    def _release(self, future: asyncio.Future[Any]) -> None:
        self._free.release()
        if not future.cancelled():
            future.exception()  # retrieved, since the caller may have been cancelled


def is_awaitable(value: object) -> TypeIs[Awaitable[Any]]:
    """Return whether a handler or a callback returned an awaitable instead of its result."""
    return hasattr(type(value), "__await__")
