"""The conversions between the dialect and the revision of a peer, which `mcpspec` has for each pair."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import mcpspec
from mcpspec.support.converters import Converter, Downgrade, DroppedFields, Upgrade, converter_for, load_conversion
from typedmcp import dialect
from typedmcp.revisions.features import DIALECT, structs_of

__all__ = ["convert_with", "downgrade", "downgrader", "exact_upgrader", "upgrader"]


_OWN: Final = mcpspec.revision(DIALECT).structs


def _package(revision: str) -> str:
    return mcpspec.revision(revision).__name__.rpartition(".")[2]


def _load(direction: str, revision: str) -> Any:
    if direction == "Downgrade" and _package(revision) == dialect.PACKAGE:
        return Downgrade  # which changes nothing
    return load_conversion(direction, dialect.PACKAGE, _package(revision))


@cache
def upgrader(revision: str, module: Any = _OWN) -> Upgrade:
    """Return the conversion from exact types of a revision to those of the dialect.

    `module` has types that extend the dialect, if those are the handler's.
    """
    made: Upgrade = _load("Upgrade", revision)(module if module is _OWN else _Extended(module))
    return made


class _Extended:
    """The types of a module, and those of the dialect that it leaves as they are."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.__all__ = [*_OWN.__all__, *module.__all__]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name, None)
        return getattr(_OWN, name) if found is None else found


@cache
def exact_upgrader(revision: str) -> Upgrade:
    """Return the conversion from exact types of a revision to exact types of the dialect."""
    made: Upgrade = _load("Upgrade", revision)(dialect.exact, is_exact=True)
    return made


@cache
def downgrader(revision: str, *, is_exact: bool = False, added: frozenset[type] = frozenset()) -> Downgrade:
    """Return the conversion from types of the dialect, or its exact types, to types of an older revision.

    `added` are further types that unions may have, and whose values are left as they are.
    """
    module = structs_of(revision) if is_exact else mcpspec.revision(revision).structs
    made: Downgrade = _load("Downgrade", revision)(module, is_exact=is_exact)
    made.added = added
    return made


def downgrade(value: Any, revision: str, dropped: DroppedFields) -> Any:
    """Convert a value of the dialect to a revision."""
    return downgrader(revision).of_class[type(value)](value, lost=dropped)


def convert_with(conversion: Upgrade, source: Any, target: Any) -> Converter | None:
    """Return the converter between two type hints, or None if their values are equal."""
    return None if source == target else converter_for(conversion, source, target)
