"""The members of structs and open objects, as their classes declare them."""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UnsetType

from mcpspec.support.objects import spread_union, strip_absent
from mcpspec.support.structs import OpenObject

__all__ = [
    "StructMember", "accepts_null", "declared_members", "holds_objects", "is_open", "is_struct", "item_type",
    "max_items", "members_of", "strip_optional",
]  # fmt: skip


class StructMember(NamedTuple):
    """A member of a struct or an open object."""

    wire: str
    hint: Any
    """Its type, without that of absence."""
    optional: bool


def members_of(kind: type[msgspec.Struct | OpenObject]) -> dict[str, StructMember]:
    """Return the members of a struct, or the declared ones of an open object, by their Python names."""
    hints = get_type_hints(kind, include_extras=True)
    if issubclass(kind, OpenObject):
        return {
            name: StructMember(each.wire, strip_optional(hints[name]), not each.required)
            for name, each in kind.__attributes__.items()
        }
    return {
        f.name: StructMember(
            f.encode_name,
            strip_optional(hints[f.name] if f.default is not None else strip_absent(hints[f.name], NoneType)),
            not f.required,
        )
        for f in msgspec.structs.fields(kind)
    }


def strip_optional(hint: Any) -> Any:
    """Remove `UnsetType` and annotations from a hint."""
    if get_origin(hint) is Annotated:
        return strip_optional(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        kept = [strip_optional(option) for option in get_args(hint) if option is not UnsetType]
        return Union[tuple(kept)]  # noqa: UP007  # of a tuple
    return hint


def is_struct(hint: Any) -> bool:
    """Return whether a type is a struct."""
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def is_open(hint: Any) -> bool:
    """Return whether a type is an open object, which keeps undeclared members."""
    return isinstance(hint, type) and issubclass(hint, OpenObject)


def declared_members(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return the declared members of an open object by their names in JSON: the type, and whether it is required."""
    hints = get_type_hints(kind, include_extras=True)
    return {member.wire: (hints[name], member.required) for name, member in kind.__attributes__.items()}


def holds_objects(hint: Any) -> bool:
    """Return whether values of a type may be, or contain, structs or open objects."""
    return any(
        is_struct(option) or is_open(option) or any(map(holds_objects, get_args(option)))
        for option in spread_union(hint)
    )


@cache
def accepts_null(hint: Any) -> bool:
    """Return whether null is a value of a type."""
    return any(option in (Any, NoneType) for option in spread_union(hint))


def item_type(hint: Any) -> Any:
    """Return the type of a list's items, or None for other types."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return get_args(hint)[0] if get_origin(hint) is list else None


def max_items(hint: Any) -> int | None:
    """Return how many items the type of a list allows, or None if it sets no limit."""
    bounds = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((bound.max_length for bound in bounds if bound.max_length is not None), None)
