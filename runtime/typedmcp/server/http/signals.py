"""The signals that end a process, which ASGI tells an application too late: after the server's open connections."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType

__all__ = ["on_end_signal"]


def on_end_signal(function: Callable[[], object]) -> Callable[[], None]:
    """Call a function for SIGINT and SIGTERM, before the handlers that a server has set. Return what stops that.

    A signal without a handler, and one that is ignored, keeps its effect. Threads other than the main one cannot set
    handlers.
    """
    previous: dict[int, Callable[[int, FrameType | None], object]] = {}

    def handle(number: int, frame: FrameType | None) -> None:
        function()
        previous[number](number, frame)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler) and handler is not signal.default_int_handler:
                previous[number] = handler
                signal.signal(number, handle)

    def undo() -> None:
        for number, handler in previous.items():
            if signal.getsignal(number) is handle:
                signal.signal(number, handler)

    return undo
