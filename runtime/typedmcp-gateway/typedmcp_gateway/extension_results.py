"""Results of types that extensions add to methods of the protocol."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Raw

from typedmcp import Context

__all__ = ["AddedResult", "find_added_result", "result_type_of"]


class AddedResult(NamedTuple):
    """A result of a type that an extension adds."""

    result_type: str
    content: Raw


def find_added_result(raw: Raw, ctx: Context) -> AddedResult | None:
    """Return a result of a type that an extension adds. None for others, and for a client without extensions."""
    try:
        name = result_type_of(raw)
    except ValueError:
        return None
    if name in (None, "complete", "input_required") or not ctx.is_modern or not ctx.client_capabilities.extensions:
        return None
    return AddedResult(str(name), raw)


def result_type_of(raw: Raw) -> str | None:
    """Return the `resultType` of a result. Raises `msgspec.ValidationError` for one that is no object."""
    return _decode(raw).result_type


class _TypedResult(msgspec.Struct):
    result_type: str | None = msgspec.field(name="resultType", default=None)


_decode = msgspec.json.Decoder(_TypedResult).decode
