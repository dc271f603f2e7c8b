"""A transport over standard input and output, reserved for messages.

While a server runs, file descriptor 1 is standard error and 0 is empty. Neither a stray `print` nor a child process can
write between the messages, or read them.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from select import select
from typing import Any, Final

from typedmcp.transports import HIGH_WATER, Transport
from typedmcp.transports.files import FileTransport
from typedmcp.transports.streams import StreamTransport

__all__ = ["stdio"]

_CHUNK: Final = 400
"""Bytes that a pipe takes without blocking once it takes any, after a note: the `PIPE_BUF` of POSIX is 512."""
_DROPPED: Final = b"\n[%d bytes of logs and prints were dropped, since nobody read standard error]\n"


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
    with _dropping():
        try:
            if _can_poll(source) and _can_poll(sink):
                transport: Transport = _ServedStream(source, sink, high_water)
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


class _ServedStream(StreamTransport):
    """The stream of a server, which ends once its client gets no responses any more."""

    def _on_broken(self) -> None:
        self.consume(len)  # which ends the stream, and drops what the client still sends


class _LossyFile(io.FileIO):
    """Standard error that drops what its reader does not take, so that writing to it never blocks the event loop."""

    dropped = 0
    """Bytes that were dropped and not reported yet."""

    def write(self, data: Any) -> int:
        for begin in range(0, len(data), _CHUNK):
            if not select((), (self,), (), 0)[1]:
                self.dropped += len(data) - begin
                break
            note = _DROPPED % self.dropped if self.dropped else b""
            self.dropped = 0
            super().write(note + bytes(data[begin : begin + _CHUNK]))
        return len(data)


@contextmanager
def _dropping() -> Generator[None]:
    """Let the streams of Python, which loggers may hold, write to a file that drops, if standard error is a pipe."""
    streams: list[Any] = [sys.__stdout__, sys.__stderr__] if _can_poll(2) else []
    before, lossy = [stream.buffer for stream in streams], _LossyFile(2, "w", closefd=False)
    try:
        for stream in streams:
            _use_buffer(stream, lossy)
        yield
    finally:
        for stream, buffer in zip(streams, before, strict=True):
            _use_buffer(stream, buffer)


def _use_buffer(stream: Any, buffer: Any) -> None:
    stream.flush()
    stream.__init__(buffer, stream.encoding, stream.errors, None, stream.line_buffering, stream.write_through)


def _can_poll(descriptor: int) -> bool:
    """Return whether the event loop may poll a descriptor: a pipe or socket, but not a console, which is shared."""
    if sys.platform == "win32":
        return False
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
