"""The one revision that handlers and clients are written in: a re-export.

A newer revision only adds types to `mcpspec`; what handlers receive changes when this module does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mcpspec.v2026_07_28 import handlers as handlers
from mcpspec.v2026_07_28 import methods as methods
from mcpspec.v2026_07_28 import structs as structs

if TYPE_CHECKING:
    from mcpspec.v2026_07_28 import models as models
    from mcpspec.v2026_07_28 import models_handlers as models_handlers

__all__ = ["handlers", "methods", "models", "models_handlers", "structs"]


def __getattr__(name: str) -> object:
    """The Pydantic side, imported when it is first used."""
    if name in ("models", "models_handlers"):
        return import_module(f"mcpspec.v2026_07_28.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
