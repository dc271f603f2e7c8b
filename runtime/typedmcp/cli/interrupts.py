"""Ctrl-C: an exception while a command works, which has things to close; the end at once before and after that.

An exception in the midst of imports shows where that was, or is lost in a destructor.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["end_at_once", "raised", "run"]

T = TypeVar("T")

_STATUS = 130


def end_at_once() -> None:
    """Let Ctrl-C end this process, unless it is ignored or somebody else's business."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


@contextmanager
def raised() -> Generator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt` meanwhile, as asyncio wants to have it, too."""
    if signal.getsignal(signal.SIGINT) is not _end:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        end_at_once()


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, which Ctrl-C cancels, and then raises `KeyboardInterrupt` whatever else was cancelled meanwhile.

    asyncio has no handler of the loop's for it: a signal that comes just before the loop waits would not wake it.
    """
    import asyncio

    is_wanted = signal.getsignal(signal.SIGINT) is signal.default_int_handler

    async def main() -> T:
        task = asyncio.current_task()
        if is_wanted and task is not None:
            with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or another thread
                asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
        return await work

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _end(*_: Any) -> None:
    with suppress(OSError):
        os.write(2, b"error: interrupted\n")
    os._exit(_STATUS)
