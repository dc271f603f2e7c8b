"""Parameters whose integers a peer wrote with a fraction of zero, such as `1.0`: see `typedmcp_schemas.integers`."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin

from mcpspec.support.objects import spread_union
from mcpspec.support.walk import walk_objects
from typedmcp_schemas.integers import to_integer

__all__ = ["restore_integers"]


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
