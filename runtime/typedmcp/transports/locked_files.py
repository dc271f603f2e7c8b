"""Files that processes share: locks that the system releases with the process, and replacement as a whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

__all__ = ["open_lock", "replace_file"]


def open_lock(path: Path) -> tuple[int, Callable[[], bool]]:
    """Open a file to lock, with the mode 0600. Return its descriptor, and a function that tries to get the lock.

    Closing the descriptor releases the lock. Raises `OSError` for a file that cannot be opened, and `ImportError` where
    the system has no such locks.
    """
    import fcntl

    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)

    def try_lock() -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    return descriptor, try_lock


def replace_file(path: Path, value: bytes) -> None:
    """Write a file with the mode 0600 beside it, and rename that: readers see the old contents or the new ones."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(value)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise
