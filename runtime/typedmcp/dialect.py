"""The dialect: the protocol revision whose types handlers and clients use.

A newer revision only adds types to `mcpspec`. To move the dialect, change the import of `_revision`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpspec import v2026_07_28 as _revision

__all__ = ["handlers", "methods", "models", "models_handlers", "structs"]

handlers = _revision.handlers
methods = _revision.methods
structs = _revision.structs

if TYPE_CHECKING:
    models = _revision.models
    models_handlers = _revision.models_handlers


def __getattr__(name: str) -> object:
    """Import the Pydantic modules when they are first used."""
    if name in ("models", "models_handlers"):
        return getattr(_revision, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
