"""Trace context in `_meta`: `traceparent`, `tracestate` and `baggage`, bounded.

https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta

The propagators of OpenTelemetry take time that grows with the square of blanks, and log what they do not understand as
it is. So what they get has the grammar of W3C, which is checked here in one pass, and the rest is left out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, MutableMapping
from typing import Final

from opentelemetry.context import Context
from opentelemetry.propagators.textmap import TextMapPropagator

from typedmcp.building import is_object

__all__ = ["NO_CONTEXT", "TraceReader", "inject"]

_log = logging.getLogger("typedmcp")

NO_CONTEXT: Final = Context()
"""The context of a message that belongs to no trace."""

_LIMITS: Final = {"traceparent": 256, "tracestate": 512, "baggage": 8192}
"""Characters of each member that are read. W3C asks for 512 and 8,192 of the last two; a longer member is ignored."""

_MAX_BAGGAGE_ENTRIES: Final = 180
_MAX_BAGGAGE_ENTRY: Final = 4096
"""Entries, and characters of one, as in the first version of W3C's document. OpenTelemetry logs those beyond."""

# Blanks are matched possessively: otherwise a fault behind many of them would be looked for from each of them.
_BLANKS: Final = r"[ \t]*+"
_NAME: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_PAIR: Final = rf"{_NAME}{_BLANKS}={_BLANKS}[!#-+\--:<-\[\]-~]*+"
_BAGGAGE_ENTRY = re.compile(rf"{_PAIR}(?:{_BLANKS};{_BLANKS}(?:{_PAIR}|{_NAME}))*+")
"""https://www.w3.org/TR/baggage/#definition"""

_NO_BLANKS: Final = str.maketrans("", "", " \t")

_STATE_ENTRY = re.compile(
    r"(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[ -+\--<>-~]{1,256}"
)
"""https://www.w3.org/TR/trace-context/#list"""


class TraceReader:
    """Reads the trace context in a `_meta`. What is left out is logged once, without its text."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def extract(self, meta: object, propagator: TextMapPropagator, context: Context) -> Context:
        """Return `context` with the trace context of a `_meta`. What is malformed or too long is ignored."""
        if not is_object(meta):
            return context
        carrier: dict[str, str] = {}
        for name, limit in _LIMITS.items():
            value: object = meta.get(name)
            if value is None:
                continue
            valid, is_all = _VALID[name](value) if isinstance(value, str) and len(value) <= limit else ("", False)
            if valid:
                carrier[name] = valid
            if not is_all:
                self._report(name)
        return propagator.extract(carrier, context) if carrier else context

    def _report(self, name: str) -> None:
        if name not in self._reported:
            self._reported.add(name)
            _log.warning("_meta.%s of a peer is malformed or too long; it is left out, and this is logged once", name)


def _valid_parent(text: str) -> tuple[str, bool]:
    is_valid = text.isascii() and text.isprintable()
    return text if is_valid else "", is_valid


def _valid_state(text: str) -> tuple[str, bool]:
    """Return a `tracestate`, or nothing if one entry is not valid, since no part of it may be used then."""
    entries = _entries(text)
    is_valid = all(map(_STATE_ENTRY.fullmatch, entries))
    return ",".join(entries) if is_valid else "", is_valid


def _valid_baggage(text: str) -> tuple[str, bool]:
    """Return the valid entries of a `baggage` without blanks, which are optional, and whether these are all."""
    entries = _entries(text)
    valid = [each for each in entries if len(each) <= _MAX_BAGGAGE_ENTRY and _BAGGAGE_ENTRY.fullmatch(each)]
    del valid[_MAX_BAGGAGE_ENTRIES:]
    return ",".join(valid).translate(_NO_BLANKS), len(valid) == len(entries)


def _entries(text: str) -> list[str]:
    return [stripped for entry in text.split(",") if (stripped := entry.strip(" \t"))]


_VALID: Final[dict[str, Callable[[str], tuple[str, bool]]]] = {
    "traceparent": _valid_parent,
    "tracestate": _valid_state,
    "baggage": _valid_baggage,
}


def inject(propagator: TextMapPropagator, context: Context) -> dict[str, str]:
    """Return the members of a `_meta` that carry the trace context."""
    fields: MutableMapping[str, str] = {}
    propagator.inject(fields, context)  # pyright: ignore[reportArgumentType]  # the default of OpenTelemetry itself
    return {name: fields[name] for name in _LIMITS if name in fields}
