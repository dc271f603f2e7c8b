"""Standard output and standard error of a child process."""

from __future__ import annotations

import asyncio
import codecs
import logging
import os
from collections.abc import Callable

from typedmcp.transports.streams import StreamTransport

__all__ = ["StderrReader", "StderrText", "StdoutTransport"]

_log = logging.getLogger("typedmcp")

_CHUNK_BYTES = 1 << 16
"""Bytes that are read at once: as many as a pipe holds."""

_CHUNKS_AT_CLOSE = 16
"""Chunks of standard error that are read while closing. A process that outlives the child may write forever."""

_LINE_CHARACTERS = 1 << 16
"""The maximum length of a line that is passed on; a longer one is passed on in pieces."""

_TAIL_LINES = 20
_TAIL_BYTES = 4 << 10
"""The last lines and bytes of standard error that are kept."""


class StdoutTransport(StreamTransport):
    """Standard output. It is read to the end even after the reader has closed, so that the child does not block."""

    def discard(self) -> None:
        """End the stream for the reader, and discard all further output."""
        self._chunks.clear()
        self._at_end = True
        self._wake()
        self._loop.add_reader(self._source, self._throw_away)

    def _throw_away(self) -> None:
        try:
            data = os.read(self._source, _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._source)


class StderrText:
    """The text on standard error. It keeps the last lines, and calls `on_line` with each line."""

    def __init__(self, encoding: str, on_line: Callable[[str], object] | None) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._on_line = on_line
        self._line = ""
        self._tail = ""

    @property
    def tail(self) -> str:
        """The last lines, without the last newline."""
        text = "\n".join(self._tail.splitlines()[-_TAIL_LINES:])
        return text.encode(errors="replace")[-_TAIL_BYTES:].decode(errors="ignore")

    def add(self, data: bytes) -> None:
        """Add bytes in any chunking."""
        self._add(self._decoder.decode(data))

    def end(self) -> None:
        """Pass on the last line, which has no newline."""
        self._add(self._decoder.decode(b"", final=True))
        if self._line:
            self._pass_on(self._line)

    def _add(self, text: str) -> None:
        self._tail = (self._tail + text)[-_TAIL_BYTES:]
        if self._on_line is None:
            return
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._pass_on(line.removesuffix("\r"))
        while len(self._line) > _LINE_CHARACTERS:
            self._pass_on(self._line[:_LINE_CHARACTERS])
            self._line = self._line[_LINE_CHARACTERS:]

    def _pass_on(self, line: str) -> None:
        assert self._on_line is not None
        for start in range(0, len(line) or 1, _LINE_CHARACTERS):
            try:
                self._on_line(line[start : start + _LINE_CHARACTERS])
            except Exception:
                _log.exception("the function given as `stderr` failed")


class StderrReader:
    """Reads standard error as it arrives, into a `StderrText`. Without a `source` it reads nothing."""

    def __init__(self, source: int | None, text: StderrText) -> None:
        self._loop = asyncio.get_running_loop()
        self.text = text
        self._source = None if source is None else os.dup(source)
        if self._source is not None:
            os.set_blocking(self._source, False)
            self._loop.add_reader(self._source, self._read_chunk)

    def close(self) -> None:
        """Read what has been written so far, and stop reading."""
        for _ in range(_CHUNKS_AT_CLOSE):
            if not self._read_chunk():
                break
        self._end()

    def _read_chunk(self) -> bool:
        """Read a chunk, and return whether there may be more."""
        if self._source is None:
            return False
        try:
            data = os.read(self._source, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self.text.add(data)
        else:
            self._end()
        return bool(data)

    def _end(self) -> None:
        if self._source is None:
            return
        self._loop.remove_reader(self._source)
        os.close(self._source)
        self._source = None
        self.text.end()
