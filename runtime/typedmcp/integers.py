"""Integers that a peer wrote with a fraction of zero, such as `1.0`.

They are integers for JSON Schema, and some languages write all numbers so. Decoders of Python do not take them for
`int`, so messages that do not fit are read again with them as integers. https://json-schema.org/draft/2020-12/json-schema-validation#section-6.1.1
"""

from __future__ import annotations

from typing import Annotated, Any, Final, get_args, get_origin

from mcpspec.support.objects import is_array, is_object, spread_union
from mcpspec.support.walk import walk_objects

__all__ = ["restore_integers", "to_integer", "to_integers"]

_MAX_EXACT: Final = 1 << 53
"""The largest integer that a float has without loss, and so have all smaller ones."""


def to_integer(value: Any) -> Any:
    """Return the integer that a float equals without loss; return any other value as it is."""
    return int(value) if type(value) is float and abs(value) <= _MAX_EXACT and value.is_integer() else value


def to_integers(value: Any) -> Any:
    """Return parsed JSON in which integers take the place of all floats that equal one."""
    if is_object(value):
        return {name: to_integers(member) for name, member in value.items()}
    return [to_integers(item) for item in value] if is_array(value) else to_integer(value)


def restore_integers(params: dict[str, Any], kind: Any) -> bool:
    """Write the members of parsed parameters whose type is an integer as integers. Return whether any has changed."""
    changed = False
    for found in walk_objects(params, kind):
        for member in found.shape.members:
            value = found.value.get(member.wire)
            number = to_integer(value)
            if number is not value and _is_integer(member.hint):
                found.value[member.wire] = number
                changed = True
    return changed


def _is_integer(hint: Any) -> bool:
    """Return whether a type allows integers and no other numbers."""
    options = [get_args(option)[0] if get_origin(option) is Annotated else option for option in spread_union(hint)]
    return int in options and float not in options
