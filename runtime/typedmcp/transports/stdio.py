"""A transport over standard input and output, reserved for messages.

While a server runs, file descriptor 1 is standard error and 0 is empty. Neither a stray `print` nor a child process can
write between the messages, or read them.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from typedmcp.transports import HIGH_WATER, Transport
from typedmcp.transports.files import FileTransport
from typedmcp.transports.streams import StreamTransport

__all__ = ["stdio"]


@asynccontextmanager
async def stdio(*, high_water: int = HIGH_WATER) -> AsyncGenerator[Transport]:
    """Reserve standard input and output of this process, and restore them at the end.

    Pipes and sockets need no threads; files and consoles are read and written in threads.
    """
    source, sink = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    sys.stdout.flush()  # text that was printed before and is still buffered would be read as a message
    try:
        if _can_poll(source) and _can_poll(sink):
            transport: Transport = StreamTransport(source, sink, high_water)
        else:
            transport = FileTransport(source, sink, high_water)
        try:
            yield transport
        finally:
            await transport.close()
    finally:
        sys.stdout.flush()
        os.dup2(sink, 1)
        os.dup2(source, 0)
        os.close(source)
        os.close(sink)


def _can_poll(descriptor: int) -> bool:
    """Return whether the event loop may poll a descriptor: a pipe or socket, but not a console, which is shared."""
    if sys.platform == "win32":
        return False
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
