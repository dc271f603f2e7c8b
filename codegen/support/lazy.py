"""Modules that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType

__all__ = ["lazy_modules", "load_revision"]


def lazy_modules(
    package: str, names: dict[str, object], modules: Sequence[str]
) -> tuple[Callable[[str], ModuleType], Callable[[], list[str]]]:
    """`__getattr__`, by which a package imports its modules on first use, and the `__dir__` that lists them.

    `names` are the package's globals.
    """

    def __getattr__(name: str) -> ModuleType:
        if name in modules:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*names, *modules})

    return __getattr__, __dir__


def load_revision(version: str, versions: Sequence[str]) -> ModuleType:
    """The package of a revision; `LookupError` for one that is unknown."""
    if version not in versions:
        raise LookupError(f"no revision {version!r}; there are {', '.join(versions)}")
    return import_module("mcpspec.v" + version.replace("-", "_"))
