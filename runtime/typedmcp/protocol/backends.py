"""Conversion between the two forms of the dialect's values: msgspec Structs and Pydantic models.

Pydantic is imported when the first model is needed.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import msgspec

from typedmcp import dialect

__all__ = ["models", "models_methods", "to_model", "to_plain", "to_struct"]


@cache
def models() -> Any:
    """Return the module with the dialect's Pydantic models."""
    return dialect.models


@cache
def models_methods() -> Any:
    """Return the module with the dialect's method records on Pydantic models."""
    return import_module(dialect.structs.__name__.replace(".structs", ".models_methods"))


def to_struct(value: Any) -> Any:
    """Convert a model of the dialect to a Struct; return a Struct as it is."""
    if isinstance(value, msgspec.Struct):
        return value
    return dialect.structs.from_builtins(models().to_builtins(value), getattr(dialect.structs, type(value).__name__))


def to_model(value: Any) -> Any:
    """Convert a Struct of the dialect to a model."""
    return models().from_builtins(dialect.structs.to_builtins(value), getattr(models(), type(value).__name__))


def to_plain(value: Any) -> Any:
    """Convert a value of either library to plain JSON, and an absent value to None."""
    if value is msgspec.UNSET:
        return None
    if hasattr(value, "model_dump"):
        return models().to_builtins(value)
    return dialect.structs.to_builtins(value)
