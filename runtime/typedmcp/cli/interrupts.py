"""Ctrl-C: an exception while a command works, which has things to close; the end at once before and after that.

An exception in the midst of imports shows where that was, or is lost in a destructor.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

__all__ = ["end_at_once", "raised"]

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


def _end(*_: Any) -> None:
    with suppress(OSError):
        os.write(2, b"error: interrupted\n")
    os._exit(_STATUS)
