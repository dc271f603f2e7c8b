"""The effect of Ctrl-C: an exception while a command has connections to close, otherwise an immediate exit.

An exception during imports would show a traceback of them, or get lost in a destructor.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["exit_on_interrupt", "raise_on_interrupt", "run_async"]

T = TypeVar("T")

_STATUS = 130


def exit_on_interrupt() -> None:
    """Make Ctrl-C end this process at once, unless SIGINT is ignored or has another handler."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


@contextmanager
def raise_on_interrupt() -> Generator[None]:
    """Make Ctrl-C raise `KeyboardInterrupt` in this block, as asyncio expects."""
    if signal.getsignal(signal.SIGINT) is not _exit:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        exit_on_interrupt()


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine like `asyncio.run`; Ctrl-C cancels it and raises `KeyboardInterrupt` after its cleanup.

    The handler is one of the event loop. Without that, a signal just before the loop waits would not wake it.
    """
    import asyncio

    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler

    async def main() -> T:
        task = asyncio.current_task()
        if is_default and task is not None:
            with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or another thread
                asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
        return await work

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _exit(*_: object) -> None:
    with suppress(OSError):
        os.write(2, b"error: interrupted\n")
    os._exit(_STATUS)
