"""Names of a module that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    module: dict[str, Any], places: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a module that imports its names when they are first used.

    `module` are its globals, and `places` the modules that have the names, relative ones with a dot. Assign the result
    where type checkers do not look: with a `__getattr__`, they would accept every name.
    """
    place_of = {name: place for place, names in places.items() for name in names}

    def get(name: str) -> Any:
        if name not in place_of:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        value = module[name] = getattr(import_module(place_of[name], module["__package__"]), name)
        return value

    def list_names() -> list[str]:
        return sorted({*module, *place_of})

    return get, list_names
