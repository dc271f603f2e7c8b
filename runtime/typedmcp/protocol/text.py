"""Text of peers, made safe for logs, terminals and error messages.

Text from a peer may hold escape sequences that control a terminal, line ends that forge lines of a log, and characters
that show text in another order than it has. https://cwe.mitre.org/data/definitions/117.html
"""

from __future__ import annotations

import logging
import re
from typing import Final

from mcpspec.support.error_text import clip

__all__ = ["escape_controls", "log_failure", "visible"]

_DEFAULT_LIMIT: Final = 2000
"""Characters of a text in a log or an error."""

_CONTROL: Final = r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
"""Control characters, line ends, characters that change the direction of text, and what has no place in UTF-8.

Patterns that most processes never use are strings, which `re` compiles at their first use.
"""

_CONTROL_IN_LINE: Final = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
"""The same without tabs and newlines."""

_log = logging.getLogger("typedmcp")


def visible(text: str, limit: int = _DEFAULT_LIMIT) -> str:
    r"""Return text of a peer as one line of at most `limit` characters, with `\x1b` in place of a control character."""
    return clip(escape_controls(text[: limit + 1]), limit)


def escape_controls(text: str, *, keep_lines: bool = False) -> str:
    r"""Escape control characters and bidirectional overrides as `\x1b` or `\u202e`.

    With `keep_lines`, newlines and tabs are kept.
    """
    if text.isprintable():
        return text
    if keep_lines:
        return re.sub(_CONTROL_IN_LINE, _escape, text.replace("\r\n", "\n"))
    return re.sub(_CONTROL, _escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def log_failure(level: int, text: str, error: BaseException | None) -> None:
    """Log a text, and an exception with its traceback, which begins in the author's code.

    The logger's level DEBUG shows the whole traceback. An exception without one that the text quotes is not repeated.
    Every line of the traceback is indented, since an exception may hold text of a peer: a line end in it must not begin
    a line of the log.
    """
    if not _log.isEnabledFor(level):
        return
    info = None if error is None else (type(error), error, error.__traceback__)
    path, line, function, _ = _log.findCaller(stacklevel=2)
    record = _log.makeRecord(_log.name, level, path, line, visible(text), (), info, function)
    if error is None or (error.__traceback__ is None and error.__cause__ is None and str(error) in text):
        record.exc_info = None
    else:
        record.exc_text = _format_traceback(error)
    _log.handle(record)


def _format_traceback(error: BaseException) -> str:
    from typedmcp.protocol.tracebacks import format_traceback  # nothing has failed before

    text = format_traceback(error, full=_log.isEnabledFor(logging.DEBUG))
    lines = escape_controls(text, keep_lines=True).rstrip("\n").split("\n")
    return "\n".join([f"  {line}" for line in lines])
