"""The text that a child process writes to standard error."""

from __future__ import annotations

import asyncio
import codecs
import logging
from collections.abc import Callable

__all__ = ["StderrText"]

_log = logging.getLogger("typedmcp")

_LINE_CHARACTERS = 1 << 16
"""The maximum length of a line that is passed on; a longer one is passed on in pieces."""

_TAIL_LINES = 20
_TAIL_BYTES = 4 << 10
"""The last lines and bytes of standard error that are kept."""


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
