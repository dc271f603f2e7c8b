"""Files with the data of sessions, such as recordings, which only their owner may read."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

__all__ = ["open_private_file"]

_MODE: Final = 0o600


def open_private_file(path: str | os.PathLike[str], *, is_replaced: bool) -> int:
    """Open a file to append to it, and return its descriptor. A new file has the mode 0600.

    With `is_replaced`, the contents of a file that exists are dropped, and it gets the same mode; otherwise it keeps
    both, since somebody may have chosen who reads it. Raises `OSError` for a file that cannot be opened, and for a
    link, which another user may have put there. Devices and pipes stay as they are.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags, _MODE)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link, which is not followed", os.fspath(path)) from None
        raise
    try:
        if is_replaced and stat.S_ISREG(os.fstat(descriptor).st_mode):
            if hasattr(os, "fchmod"):  # Windows has other permissions
                os.fchmod(descriptor, _MODE)
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
