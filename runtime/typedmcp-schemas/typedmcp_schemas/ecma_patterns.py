"""Regular expressions of Python in the syntax of JavaScript, which the patterns of JSON Schema have.

Validators in JavaScript compile patterns with the flag `u`. It rejects what it does not know, such as the names of
groups as Python writes them, escapes of characters that need none, and brackets that stand for themselves.
https://json-schema.org/draft/2020-12/json-schema-core#section-6.4
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

__all__ = ["to_ecma_pattern"]

_TOKENS: Final = re.compile(
    r"(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<escape>\\(?:[pPu]\{[^}]*\}|.))"
    r"|(?P<named>\(\?P[<=])"
    r"|(?P<group>\(\?(?:[:=!]|<[=!]|<(?=\w)))"
    r"|(?P<possessive>[*+?}]\+)"
    r"|(?P<unknown>\(\?)"
    r"|(?P<counts>\{(?:\d+(?:,\d*)?|,\d+)\})"
    r"|(?P<bracket>[{}\]])",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:[pPu]\{[^}]*\}|.)", re.DOTALL)
_SYNTAX: Final = frozenset("^$\\.*+?()[]{}|/")
"""Characters that may be escaped."""
_LETTERS: Final = frozenset("dDwWsSbBcfnrtvpPux0123456789")
"""Letters and digits that mean the same after a backslash."""
_ANCHORS: Final = {r"\A": "^", r"\Z": "$", r"\z": "$"}


class _UntranslatableError(Exception):
    """A pattern has no equivalent."""


@cache
def to_ecma_pattern(pattern: str) -> str | None:
    """Return a pattern for the same texts that JavaScript reads. None if there is none, as for flags within one."""
    try:
        return _TOKENS.sub(_translate, re.sub(r"\(\?P=(\w+)\)", r"\\k<\1>", pattern))
    except _UntranslatableError:
        return None


def _translate(found: re.Match[str]) -> str:
    text, kind = found[0], found.lastgroup
    if kind == "class":
        start = re.match(r"\[\^?", text)
        begin = "" if start is None else start[0]
        body = text[len(begin) : -1]
        body = rf"\{body}" if body.startswith("]") else body
        return f"{begin}{_ESCAPE.sub(_translate_escape, body)}]"
    if kind == "escape":
        return _translate_escape(found)
    if kind == "counts":
        return text.replace("{,", "{0,")
    if kind == "bracket":
        return rf"\{text}"
    if kind in ("possessive", "unknown"):
        raise _UntranslatableError
    return "(?<" if kind == "named" else text


def _translate_escape(found: re.Match[str]) -> str:
    text = found[0]
    character = text[1]
    in_class = found.re is not _TOKENS
    if text in _ANCHORS:
        return _ANCHORS[text]
    if character in _SYNTAX or character in _LETTERS or text == r"\k" or (in_class and character == "-"):
        return text
    if character.isalnum():
        raise _UntranslatableError
    return character
