"""Tolerance: members of newer revisions, and repairs of what can only mean one thing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from msgspec import UNSET

from mcpspec.support.members import accepts_null, is_struct, members_of
from mcpspec.support.objects import spread_union
from mcpspec.support.walk import Path, walk_objects

__all__ = ["find_newer_members", "newer_names", "repair", "restore_integers"]


@cache
def newer_names(older: Any, newer: Any) -> frozenset[str]:
    """Return the names in JSON of the members that structs in the newer type have, and their older namesakes lack.

    A text without any of these names, in quotation marks, has no newer members.
    """
    known = _declared_names(older)
    return frozenset(
        name for struct, names in _declared_names(newer).items() if struct in known for name in names - known[struct]
    )


def _declared_names(hint: Any) -> dict[str, set[str]]:
    """Return the names of the members of each struct in a type, by the name of the struct."""
    found: dict[str, set[str]] = {}
    pending = [hint]
    while pending:
        for option in spread_union(pending.pop()):
            if is_struct(option) and option.__name__ not in found:
                members = members_of(option).values()
                found[option.__name__] = {member.wire for member in members}
                pending += [member.hint for member in members]
            pending += get_args(option)
    return found


def find_newer_members(value: Any, older: Any, newer: Any) -> Iterator[tuple[Path, Any]]:
    """Yield each member in parsed JSON that its newer type declares and its older one does not: its path, its value.

    The members of open objects, such as `_meta` and JSON Schemas, belong to all revisions.
    """
    known = {found.path: found.shape.hints for found in walk_objects(value, older)}
    for path, parts, shape, is_open in walk_objects(value, newer):
        declared = shape.hints if is_open else known.get(path, shape.hints)
        yield from (((*path, name), parts[name]) for name in shape.hints if name in parts and name not in declared)


def repair(value: Any, hint: Any) -> Iterator[tuple[Path, Any, Any, str]]:
    """Repair parsed JSON where its meaning is clear. Yield the place, the type, the old value and what was done.

    That is: without `null` members, with constants that an open object requires, such as the type of a tool's schema,
    and with `sizes` of an icon as a list, as since 2025-11-25. `UNSET` stands for a value that was absent.
    """
    for path, parts, shape, is_open_object in walk_objects(value, hint):
        for wire, kind, is_required in shape.members:
            part = parts.get(wire, UNSET)
            if is_open_object:
                if part is UNSET and is_required and get_origin(kind) is Literal and len(get_args(kind)) == 1:
                    (parts[wire],) = get_args(kind)
                    yield (*path, wire), kind, UNSET, f"read as {json.dumps(parts[wire])}"
            elif part is None and not is_required and not accepts_null(kind):
                del parts[wire]
                yield (*path, wire), kind, None, "read as absent"
            elif wire == "sizes" and isinstance(part, str):
                parts[wire] = part.split()
                yield (*path, wire), kind, part, "read as a list"


_MAX_EXACT: Final = 1 << 53
"""The largest integer that a float has without loss, and so have all smaller ones."""


def restore_integers(value: dict[str, Any], hint: Any) -> bool:
    """Write integers that parsed JSON has with a fraction of zero, such as `1.0`, as integers where its type has them.

    They are integers for JSON Schema, and some languages write all numbers so. Return whether any has changed.
    """
    changed = False
    for _, parts, shape, _ in walk_objects(value, hint):
        for wire, kind, _ in shape.members:
            part = parts.get(wire)
            if type(part) is float and part.is_integer() and abs(part) <= _MAX_EXACT and _is_integer(kind):
                parts[wire] = int(part)
                changed = True
    return changed


def _is_integer(hint: Any) -> bool:
    """Return whether a type allows integers and no other numbers."""
    options = [get_args(option)[0] if get_origin(option) is Annotated else option for option in spread_union(hint)]
    return int in options and float not in options
