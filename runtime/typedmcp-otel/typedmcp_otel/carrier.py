"""Trace context in `_meta`: `traceparent`, `tracestate` and `baggage`, bounded.

https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Final

from opentelemetry.context import Context
from opentelemetry.propagators.textmap import TextMapPropagator

from typedmcp.building import is_object

__all__ = ["NO_CONTEXT", "extract", "inject"]

NO_CONTEXT: Final = Context()
"""The context of a message that belongs to no trace."""

_LIMITS: Final = {"traceparent": 256, "tracestate": 512, "baggage": 8192}
"""Characters of each member that are read. W3C asks for 512 and 8,192 of the last two; a longer member is ignored."""


def extract(meta: object, propagator: TextMapPropagator, context: Context) -> Context:
    """Return `context` with the trace context of a `_meta`. What is malformed or too long is ignored."""
    if not is_object(meta):
        return context
    carrier: dict[str, str] = {}
    for name, limit in _LIMITS.items():
        value: object = meta.get(name)
        if isinstance(value, str) and len(value) <= limit:
            carrier[name] = value
    return propagator.extract(carrier, context) if carrier else context


def inject(propagator: TextMapPropagator, context: Context) -> dict[str, str]:
    """Return the members of a `_meta` that carry the trace context."""
    fields: MutableMapping[str, str] = {}
    propagator.inject(fields, context)  # pyright: ignore[reportArgumentType]  # the default of OpenTelemetry itself
    return {name: fields[name] for name in _LIMITS if name in fields}
