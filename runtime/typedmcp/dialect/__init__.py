"""The dialect: the protocol revision whose everyday types handlers and clients use.

Absent members are None, or the protocol's default; JSON Schemas and `_meta` are plain dicts. `exact` has the exact
types of the same revision, which validate what peers send. A newer revision, or the
draft, only adds types to `mcpspec`. To move the dialect, change the name of its package in the modules of this folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Final

from mcpspec import v2026_07_28 as _revision
from mcpspec.features import DRAFT, FEATURES, Features
from typedmcp.dialect import methods, structs

if TYPE_CHECKING:
    from typedmcp.dialect import handlers, models, models_handlers, models_methods

__all__ = [
    "EVERYDAY", "PACKAGE", "SPOKEN", "conversions", "exact", "handlers", "methods", "models", "models_handlers",
    "models_methods", "structs",
]  # fmt: skip

exact = _revision.exact.structs
conversions: ModuleType = import_module(f"{_revision.__name__}.conversions")
PACKAGE: Final = _revision.__name__.rpartition(".")[2]
"""The name of the revision's package in `mcpspec`."""
EVERYDAY: Final = f"{_revision.__name__}.structs"
"""The name of the module of the everyday types."""


def _spoken() -> Iterator[Features]:
    yield from (features for version, features in FEATURES.items() if version <= methods.PROTOCOL_VERSION)
    if DRAFT is not None and DRAFT.version == methods.PROTOCOL_VERSION:
        yield DRAFT


SPOKEN: Final[Mapping[str, Features]] = MappingProxyType({features.version: features for features in _spoken()})
"""The features of the revisions that the runtime speaks, oldest first: the dialect and all dates before it."""


def __getattr__(name: str) -> object:
    """Import the Protocols of handlers, and the Pydantic modules, when they are first used."""
    if name in ("handlers", "models", "models_handlers", "models_methods"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
