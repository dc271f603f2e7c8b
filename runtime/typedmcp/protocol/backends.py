"""Conversion to the form in which the runtime handles the dialect's values: plain Structs.

Handlers may also return Pydantic models, and the exact types of the dialect.

Pydantic is imported when the first model is needed.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from typedmcp import dialect
from typedmcp.revisions.conversions import upgrader
from typedmcp.revisions.features import DIALECT

__all__ = ["check_struct", "to_model", "to_plain", "to_struct"]

T = TypeVar("T")

_FREE_OF_REVISIONS = ("mcpspec.compat.", "mcpspec.support.compat", "mcp.", "mcp_types")


def check_struct(value: T) -> T:
    """Return a Struct that somebody has built. Raises `DecodeError` for members of wrong types, which Structs take."""
    dialect.structs.from_builtins(dialect.structs.to_builtins(value), type(value))
    return value


def to_struct(value: Any) -> Any:
    """Convert a model or an exact type of the dialect to a plain Struct; return another Struct as it is.

    Types free of revisions, and those of the official package, are models, too.
    """
    kind = value.__class__
    if isinstance(value, msgspec.Struct):
        if kind.__module__ != dialect.exact.__name__:
            return value
        if (convert := upgrader(DIALECT).method(kind.__name__)) is not None:
            return convert(value, lost=[])
    return dialect.structs.from_builtins(to_plain(value), getattr(dialect.structs, kind.__name__))


def to_model(value: Any) -> Any:
    """Convert a Struct of the dialect to a model."""
    kind = getattr(dialect.models, type(value).__name__)
    return dialect.models.from_builtins(dialect.structs.to_builtins(value), kind)


def to_plain(value: Any) -> Any:
    """Convert a value of either library to plain JSON."""
    if hasattr(value, "model_dump"):
        if value.__class__.__module__.startswith(_FREE_OF_REVISIONS):  # in these, None is absence everywhere
            return value.model_dump(mode="json", by_alias=True, exclude_none=True)
        return dialect.models.to_builtins(value)
    return dialect.structs.to_builtins(value)
