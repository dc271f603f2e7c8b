"""The text that a child process writes to standard error, and what of it a client holds back."""

from __future__ import annotations

import asyncio
import codecs
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress

__all__ = ["ProbeNoise", "StderrText"]

_log = logging.getLogger("typedmcp")

_LINE_CHARACTERS = 1 << 16
"""The maximum length of a line that is passed on; a longer one is passed on in pieces."""

_TAIL_LINES = 20
_TAIL_BYTES = 4 << 10
"""The last lines and bytes of standard error that are kept."""

_HELD_BYTES = 1 << 16
"""Bytes of standard error that are held back, about."""
_SUMMARY = b"[typedmcp: %d lines of the server about %b, which it does not know; revisions=[%a] does not ask it]\n"


class ProbeNoise:
    """Passes on standard error of a server, but not its lines about a method that it turns out not to know.

    From the first line with the name of the method on, text is held back until that is clear.
    """

    def __init__(self, method: str) -> None:
        self._method = method.encode()
        self._held = b""
        self._is_over = False
        self._revision: str | None = None
        self._lock = threading.Lock()

    def pass_on(self, source: int) -> None:
        """Read a descriptor to its end, and close it. In a thread, since writing to standard error may block."""
        with open(source, "rb", buffering=0) as pipe:
            while data := pipe.read(1 << 16):
                with self._lock:
                    passed = self._filter(data)
                _write_error(passed)

    def end(self, revision: str | None) -> None:
        """Hold nothing back any more. `revision` is that of a server that does not know the method; None for others."""
        with self._lock:
            self._is_over, self._revision, held, self._held = True, revision, self._held, b""
            passed = self._filter(held)
        _write_error(passed)

    def _filter(self, data: bytes) -> bytes:
        """Return what is passed on now."""
        if not self._is_over and len(self._held) < _HELD_BYTES:
            before, about, rest = self._split(self._held + data)
            self._held = about + rest
            return before
        if self._revision is None:
            return data
        before, about, rest = self._split(data)
        summary = _SUMMARY % (about.count(b"\n"), self._method, self._revision) if about else b""
        return before + summary + rest

    def _split(self, data: bytes) -> tuple[bytes, bytes, bytes]:
        """Return the lines before those about the method, these, with what is indented below them, and the rest."""
        if (at := data.find(self._method)) < 0:
            return data, b"", b""
        begin = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", data.rfind(self._method)) + 1 or len(data)
        while data[end : end + 1] in (b" ", b"\t"):
            end = data.find(b"\n", end) + 1 or len(data)
        return data[:begin], data[begin:end], data[end:]


def _write_error(data: bytes) -> None:
    with suppress(OSError):  # nobody may read it
        while data:
            data = data[os.write(2, data) :]


class StderrText:
    """The text on standard error. It keeps the last lines, and calls `on_line` with each line."""

    def __init__(self, encoding: str, on_line: Callable[[str], object] | None) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._on_line = on_line
        self._line = ""
        self._tail = ""
        self.ended: asyncio.Event = asyncio.Event()

    @property
    def tail(self) -> str:
        """The last lines, without the last newline."""
        text = "\n".join(self._tail.splitlines()[-_TAIL_LINES:])
        return text.encode(errors="replace")[-_TAIL_BYTES:].decode(errors="ignore")

    def add(self, data: bytes) -> None:
        """Add bytes in any chunking; empty bytes are the end, which passes on the last line, without a newline."""
        self._add(self._decoder.decode(data, final=not data))
        if not data:
            if self._line:
                self._pass_on(self._line)
            self.ended.set()

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
