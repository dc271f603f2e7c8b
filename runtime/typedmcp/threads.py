"""What blocks, in daemon threads: neither a silent console nor a handler that hangs keeps the process from ending.

asyncio's own executor is waited for at the end of the loop and at the end of the interpreter.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

__all__ = ["Threads", "in_daemon"]

T = TypeVar("T")


def in_daemon(function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
    """Run a function in a thread of its own, in a copy of this context. The future is done when it has ended."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def work() -> None:
        try:
            settle = partial(_settle, future, context.run(function, *args), None)
        except BaseException as error:
            settle = partial(_settle, future, None, error)
        with suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=work, name=f"typedmcp {getattr(function, '__name__', '')}", daemon=True).start()
    return future


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if isinstance(error, StopIteration):  # which a future does not take
        error = RuntimeError("the function raised StopIteration")
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class Threads:
    """So many of them at a time. One whose caller gave up counts until it has ended."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Wait for a function that blocks."""
        await self._free.acquire()
        future = in_daemon(function, *args)
        future.add_done_callback(self._ended)
        return await asyncio.shield(future)

    def _ended(self, future: asyncio.Future[Any]) -> None:
        self._free.release()
        if not future.cancelled():
            future.exception()  # it may be that nobody waits any more
