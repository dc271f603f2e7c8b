"""The members of object types, the choice among the types of a union, and differences of JSON, for both backends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from math import isfinite
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from mcpspec.support.error_text import format_path_part

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = [
    "LARGE_TEXT",
    "Constant",
    "Member",
    "Shape",
    "UnionOptions",
    "classes_of",
    "face_of",
    "find_differences",
    "is_array",
    "is_object",
    "is_surely_finite",
    "rank_fit",
    "spread_member",
    "spread_union",
    "strip_absent",
]

T = TypeVar("T")

LARGE_TEXT = 4096
"""Bytes of text above which it may be faster to search the value than the text."""
_BYTES_PER_PART = 1024
"""Bytes of text that pay for the visit of one part of a value. About four times as many can be searched in the same
time, so that a search of the value that finds nothing costs little."""

_MAX_ORDERS = 256
"""Cached orders for one union, so that data that always looks different does not fill the memory."""
_MAX_ORDER_KEY = 64
"""Longest cache key of an order, in members."""
_MAX_ORDER_NAMES = 1024
"""Longest cache key of an order, in characters of all names."""
_FINITE = frozenset({str, int, bool, NoneType})
_OTHER = object()
"""Stands for any value of a constant member that no type of a union allows."""


class Constant(NamedTuple):
    """The default of a member with a constant value: constructors fill it in, decoding requires it."""

    value: Any
    optional: bool
    name: str | None


class Member(NamedTuple):
    """A member of an object: its name on the wire, its type, and whether it is required."""

    wire: str
    hint: Any
    required: bool


class Shape:
    """The members of an object type. A closed type allows no others."""

    def __init__(self, members: tuple[Member, ...], closed: bool = False) -> None:
        self.members = members
        self.closed = closed

    @cached_property
    def ordered(self) -> list[Member]:
        """The members, sorted by their names on the wire."""
        return sorted(self.members, key=lambda member: member.wire)

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The types of the members, by their names on the wire."""
        return {member.wire: member.hint for member in self.members}

    @cached_property
    def is_notification(self) -> bool:
        """True for messages that have no `id`."""
        wires = {member.wire for member in self.members}
        return {"jsonrpc", "method"} <= wires and "id" not in wires

    @cached_property
    def literals(self) -> dict[str, tuple[Any, ...]]:
        """The members that allow only certain values: name → values."""
        return {m.wire: get_args(m.hint) for m in self.members if get_origin(m.hint) is Literal}


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Return whether a parsed JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Return whether a parsed JSON value is an array."""
    return isinstance(value, list)


def face_of(kind: type) -> str:
    """Return what tells exact types from everyday ones, whose names are the same, when they are shown."""
    return "exact." if ".exact." in kind.__module__ else ""


def spread_union(hint: Any) -> list[Any]:
    """List the members of a union type, and of the unions and aliases in it. A type with a check is one member."""
    if get_origin(hint) is Annotated:
        base, *marks = get_args(hint)
        is_bounded = any(getattr(mark, "metadata", None) for mark in marks)  # a union with bounds is one type
        return spread_union(base) if get_origin(base) in (Union, UnionType) and not is_bounded else [hint]
    if (spread := getattr(hint, "__union__", None)) is not None:  # an untagged union of structs
        return spread_member(spread())
    if (alias := getattr(hint, "__value__", None)) is not None:  # a TypeAliasType
        return spread_member(alias)
    if get_origin(hint) in (Union, UnionType):
        return [leaf for member in get_args(hint) for leaf in spread_member(member)]
    return [NoneType if hint is None else hint]


def spread_member(hint: Any) -> list[Any]:
    """List what a member adds to a union: itself if it has a check, else the members of the union that it is."""
    return [hint] if getattr(hint, "__check__", None) is not None else spread_union(hint)


def classes_of(leaf: Any) -> list[type]:
    """List the classes of the values of a member of a union."""
    if get_origin(leaf) is Literal:
        return [type(value) for value in get_args(leaf)]
    if get_origin(leaf) is Annotated:
        return classes_of(get_args(leaf)[0])
    if hasattr(leaf, "__union__"):  # with a check
        return [kind for option in spread_union(leaf) for kind in classes_of(option)]
    if leaf is Any:
        return [object]
    return [get_origin(leaf) or leaf]


def strip_absent(hint: Any, absent: object) -> Any:
    """Return the type of an optional member that is present: its hint without the marker for absence."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    return Union[tuple(option for option in get_args(hint) if option is not absent)]  # noqa: UP007  # of a tuple


class UnionOptions(Generic[T]):
    """The object types of a union, from which the best fit for a value is chosen."""

    def __init__(self, kinds: list[T], shape_of: Callable[[Any], Shape | None]) -> None:
        self._shapes = [(kind, shape) for kind in kinds if (shape := shape_of(kind)) is not None]
        constants: dict[str, set[Any]] = {}
        for _, shape in self._shapes:
            for wire, allowed in shape.literals.items():
                constants.setdefault(wire, set()).update(allowed)
        self._constants = [*constants.items()]
        self._needs = {id(shape): _needs(shape, shape_of) for _, shape in self._shapes}
        self._distinguishing = _distinguishing_members([*self._needs.values()])
        self._orders: dict[tuple[Any, ...], list[T]] = {}

    def rank(self, value: Mapping[str, Any]) -> list[T]:
        """Return the types in the order in which to try them, without those that cannot fit.

        The order depends only on the names of the members, on the values of constant members, and on the names within
        the members that distinguish types. It is cached by these, since many values have them in common.
        """
        seen: list[Any] = [*value, None]
        try:
            for wire, allowed in self._constants:
                found = value.get(wire)
                seen.append(found if found is None or found in allowed else _OTHER)
        except TypeError:  # a list where a name should be
            return self._order(value)
        for wire in self._distinguishing:
            if wire in value and is_object(inner := value[wire]):
                seen += (None, wire, *inner)
        key = tuple(seen)
        order = self._orders.get(key)
        if order is None:
            order = self._order(value)
            if _is_short(key):
                if len(self._orders) >= _MAX_ORDERS:
                    self._orders.clear()
                self._orders[key] = order
        return order

    def _order(self, value: Mapping[str, Any]) -> list[T]:
        ordered = sorted(self._shapes, key=lambda option: rank_fit(value, option[1]))
        possible = [kind for kind, shape in ordered if not self._contradicts(value, shape)]
        return possible or [kind for kind, _ in ordered]

    def _contradicts(self, value: Mapping[str, Any], shape: Shape) -> bool:
        """Return whether a member has a value that a type rejects, or lacks a required member. Null is ignored.

        What has an `id` is no notification, whatever its `id` is: JSON-RPC says so, and the schemas do not.
        """
        if shape.is_notification and "id" in value:
            return True
        for wire, allowed in shape.literals.items():
            if (found := value.get(wire)) is not None and found not in allowed:
                return True
        needs = self._needs[id(shape)]
        inside = {wire: inner for wire in self._distinguishing if is_object(inner := value.get(wire))}
        return any(not needs[wire] <= inner.keys() for wire, inner in inside.items() if wire in needs)


def _is_short(key: tuple[Any, ...]) -> bool:
    names = (name for name in key if isinstance(name, str))
    return len(key) <= _MAX_ORDER_KEY and sum(map(len, names)) <= _MAX_ORDER_NAMES


def _needs(shape: Shape, shape_of: Callable[[Any], Shape | None]) -> dict[str, frozenset[str]]:
    """Return the members that are objects, with the names of their required members."""
    return {
        member.wire: frozenset(each.wire for each in inner.members if each.required)
        for member in shape.members
        if (inner := shape_of(member.hint)) is not None
    }


def _distinguishing_members(needs: list[dict[str, frozenset[str]]]) -> list[str]:
    """List the members whose required members differ between the types."""
    wires = sorted({wire for found in needs for wire in found})
    return [wire for wire in wires if len({found[wire] for found in needs if wire in found}) > 1]


def is_surely_finite(value: Any, size: int, parts_of: Callable[[Any], Collection[Any] | None]) -> bool:
    """Return True if a value certainly contains neither NaN nor infinity, and False if that would be slow to find out.

    `size` is the length of its encoded text; if that is large, most of it is in few strings. `parts_of` returns the
    parts of an object, or None if it does not know the object.
    """
    budget = size // _BYTES_PER_PART
    pending: list[Any] = [value]
    while pending:
        found = pending.pop()
        kind = found.__class__
        if kind in _FINITE:
            continue
        if kind is float:
            if not isfinite(found):
                return False
            continue
        parts: Collection[Any] | None = (
            found if kind is list or kind is tuple else found.values() if is_object(found) else parts_of(found)
        )
        if parts is None or len(parts) > budget:
            return False
        budget -= len(parts)
        pending += parts
    return True


def rank_fit(value: Mapping[str, Any], shape: Shape) -> tuple[int, int, int]:
    """Return a sort key, smallest for the best fit: most members present, fewest missing, most required."""
    present = sum(member.wire in value for member in shape.members)
    missing = sum(member.required and member.wire not in value for member in shape.members)
    return -present, missing, -sum(member.required for member in shape.members)


def find_differences(before: Any, after: Any, path: str) -> list[str]:
    """Return the paths of the values that are missing in another value, or have changed. Additions do not count."""
    return [] if before == after else [*_differences(before, after, path)]


def _differences(before: Any, after: Any, path: str) -> Iterator[str]:
    """Yield the paths of the differences between two values that are not equal. Equal parts cost one comparison."""
    if is_object(before) and is_object(after):
        for key, value in before.items():
            if key not in after:
                yield path + format_path_part(key)
            elif value != after[key]:
                yield from _differences(value, after[key], path + format_path_part(key))
    elif is_array(before) and is_array(after) and len(before) == len(after):
        for i, value in enumerate(before):
            if value != after[i]:
                yield from _differences(value, after[i], f"{path}[{i}]")
    else:
        yield path
