"""Checks of the members that plain types take as dicts, and exact types as open objects: JSON Schemas and `_meta`.

A result of the dialect is decoded straight into plain types. What those leave unchecked is checked here, column by
column: all `inputSchema` of a list of tools in one call of msgspec.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias, get_args, get_origin

import msgspec
from msgspec import UnsetType

from mcpspec.support.members import is_open, is_struct, members_of
from mcpspec.support.objects import spread_union
from mcpspec.support.structs import dec_hook, declared_struct, fits

__all__ = ["ColumnCheck", "member_checks"]

ColumnCheck: TypeAlias = Callable[[list[Any]], None]
"""Checks values of one type. Raises `ValueError` if one of them does not fit."""


def member_checks(
    kind: type[msgspec.Struct], outer: tuple[Any, ...] = ()
) -> list[tuple[Callable[[Any], Any], ColumnCheck]]:
    """Return the checks for the members of a struct, each with the function that reads the member.

    `kind` is the exact type; the values are of the plain type. `outer` are the types that contain this one: what a type
    contains of itself is not checked.
    """
    return [
        (attrgetter(name), check)
        for name, member in members_of(kind).items()
        if (check := _compile_check(member.hint, (*outer, kind))) is not None
    ]


def _compile_check(kind: Any, outer: tuple[Any, ...]) -> ColumnCheck | None:
    """Return the check of plain values by their exact type, or None if plain types check everything already."""
    options = [option for option in spread_union(kind) if option is not UnsetType]
    if len(options) != 1:
        return _check_union(options, outer)
    (kind,) = options
    if kind in outer:
        return None
    if is_open(kind):
        return _check_open(kind) if kind.__attributes__ else None
    if is_struct(kind):
        return _check_members(member_checks(kind, outer))
    if get_origin(kind) in (list, dict):
        inner = _compile_check(get_args(kind)[-1], outer)
        return None if inner is None else _check_items(inner, is_list=get_origin(kind) is list)
    return None


def _check_open(kind: Any) -> ColumnCheck:
    one = declared_struct(kind)
    several: Any = list[one]  # type: ignore[valid-type]

    def check(values: list[Any]) -> None:
        if len(values) > 1:  # msgspec inspects such a type each time, which takes as long as to check three values
            msgspec.convert(values, several, dec_hook=dec_hook)
        elif not fits(values[0], one):
            raise ValueError(f"expected {kind.__name__}")

    return check


def _check_members(checks: list[tuple[Callable[[Any], Any], ColumnCheck]]) -> ColumnCheck | None:
    if not checks:
        return None

    def check_members(values: list[Any]) -> None:
        for read, check in checks:
            if present := [value for value in map(read, values) if value is not None]:
                check(present)

    return check_members


def _check_items(check: ColumnCheck, *, is_list: bool) -> ColumnCheck:
    flatten = chain.from_iterable
    return lambda values: check([*flatten(values if is_list else (value.values() for value in values))])


def _check_union(options: list[Any], outer: tuple[Any, ...]) -> ColumnCheck | None:
    """Check each value by the exact type that has the name of its class."""
    checks = {kind.__name__: check for kind in filter(is_struct, options) if (check := _compile_check(kind, outer))}
    if not checks:
        return None

    def check_by_class(values: list[Any]) -> None:
        for name, check in checks.items():
            if found := [value for value in values if value.__class__.__name__ == name]:
                check(found)

    return check_by_class
