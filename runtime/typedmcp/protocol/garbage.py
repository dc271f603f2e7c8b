"""Pauses of Python's garbage collector, for work that makes many objects and no cycles of them."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Generator[None]:
    """Look for no cycles of objects in this block. A collector that the application has disabled stays so."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
