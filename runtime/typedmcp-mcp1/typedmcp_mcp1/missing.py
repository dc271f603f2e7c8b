"""Names of mcp 1.x that are not here: importing one says what to use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["missing_names"]


def missing_names(module: str, remedy: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module without the names that it has in mcp 1.x. `remedy` says what to use.

    It raises `ImportError`, since `from … import` replaces the text of an `AttributeError`.
    """

    def find(name: str) -> Any:
        if name.startswith("_"):  # asked for by the import system
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise ImportError(f"{module} has no {name}: {remedy}")

    return find
