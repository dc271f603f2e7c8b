"""The dialect: the protocol revision whose types handlers and clients use.

A newer revision, or the draft, only adds types to `mcpspec`. To move the dialect, change the import of `_revision`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from mcpspec import v2026_07_28 as _revision
from mcpspec.features import DRAFT, FEATURES, Features

__all__ = ["SPOKEN", "handlers", "methods", "models", "models_handlers", "structs"]

handlers = _revision.handlers
methods = _revision.methods
structs = _revision.structs


def _spoken() -> Iterator[Features]:
    yield from (features for version, features in FEATURES.items() if version <= methods.PROTOCOL_VERSION)
    if DRAFT is not None and DRAFT.version == methods.PROTOCOL_VERSION:
        yield DRAFT


SPOKEN: Final[Mapping[str, Features]] = MappingProxyType({features.version: features for features in _spoken()})
"""The features of the revisions that the runtime speaks, oldest first: the dialect and all dates before it."""

if TYPE_CHECKING:
    models = _revision.models
    models_handlers = _revision.models_handlers


def __getattr__(name: str) -> object:
    """Import the Pydantic modules when they are first used."""
    if name in ("models", "models_handlers"):
        return getattr(_revision, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
