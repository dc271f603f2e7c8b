"""Trace context in `_meta`: `traceparent`, `tracestate` and `baggage`, bounded.

https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import TextMapPropagator

from mcpspec.support.converters import with_meta
from mcpspec.support.objects import is_object

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


def inject(params: Any, propagator: TextMapPropagator, context: Context) -> Any:
    """Return parameters, plain or typed, whose `_meta` has the trace context, in place of one that it had."""
    fields: MutableMapping[str, str] = {}
    propagator.inject(fields, context)  # pyright: ignore[reportArgumentType]  # the default of OpenTelemetry itself
    carrier = {name: fields[name] for name in _LIMITS if name in fields}
    if not carrier:
        return params
    if params is None or params is UNSET:
        return {"_meta": carrier}
    if isinstance(params, Raw):
        members: dict[str, Any] = msgspec.json.decode(params, type=dict[str, Raw])
        return {**members, "_meta": _merged(members.get("_meta"), carrier)}
    if is_object(params):
        return {**params, "_meta": _merged(params.get("_meta"), carrier)}
    copy = with_meta(cast("type[msgspec.Struct]", type(params)))
    return copy(params, _merged(getattr(params, "meta", None), carrier))


def _merged(meta: Any, carrier: dict[str, str]) -> Any:
    if isinstance(meta, Raw):  # encoded once for all requests of a client
        text = bytes(meta)
        if any(name.encode() in text for name in _LIMITS):
            return {**msgspec.json.decode(text), **carrier}
        own = msgspec.json.encode(carrier)
        return Raw(own if text == b"{}" else own[:-1] + b"," + text[1:])
    return {**meta, **carrier} if is_object(meta) else carrier
