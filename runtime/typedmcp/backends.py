"""From the dialect's Structs to its Pydantic models and back, where the runtime itself makes or reads a value."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import msgspec

from typedmcp import dialect

__all__ = ["as_model", "as_struct", "models", "models_methods", "plain"]


@cache
def models() -> Any:
    """The dialect's Pydantic models."""
    return import_module(dialect.structs.__name__.replace(".structs", ".models"))


@cache
def models_methods() -> Any:
    """The dialect's method records on Pydantic models."""
    return import_module(dialect.structs.__name__.replace(".structs", ".models_methods"))


def as_struct(value: Any) -> Any:
    """A value of the dialect as a Struct, whichever it was."""
    if isinstance(value, msgspec.Struct):
        return value
    return dialect.structs.from_builtins(models().to_builtins(value), getattr(dialect.structs, type(value).__name__))


def as_model(value: Any) -> Any:
    """A Struct of the dialect as a model."""
    return models().from_builtins(dialect.structs.to_builtins(value), getattr(models(), type(value).__name__))


def plain(value: Any) -> Any:
    """A value of either library as plain JSON; None for what is absent."""
    if value is msgspec.UNSET:
        return None
    if hasattr(value, "model_dump"):
        return models().to_builtins(value)
    return dialect.structs.to_builtins(value)
