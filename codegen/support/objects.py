"""What both backends know about an object type: its members, and how well a value fits it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = [
    "LARGE",
    "Constant",
    "Member",
    "Options",
    "Shape",
    "fit",
    "is_array",
    "is_finite",
    "is_object",
    "leaves",
    "present",
]

T = TypeVar("T")

LARGE = 4096
"""From how many bytes of text on a look at the value may take less time than one at the text."""
_WORTH = 1024
"""How many bytes there have to be for each value that is looked at: some four times as many as can be looked through in
the time that takes, or looking in vain would cost as much as it saves."""

_REMEMBERED = 256
"""How many orders are remembered for a union, so that data that looks different each time does not fill memory,"""
_MOST = 64
"""and how many members a value, and what is looked into, may have for which one is,"""
_LONGEST = 1024
"""and how many characters their names."""
_FINITE = frozenset({str, int, bool, NoneType})
_OTHER = object()
"""What a member says that no type has it say."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The default of a member whose value is fixed: written by constructors, required when decoding."""

    value: Any
    optional: bool
    name: str | None


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: its name on the wire, its type, and whether it must be there."""

    wire: str
    hint: Any
    required: bool


@dataclass(frozen=True)
class Shape:
    """The members of an object type, and whether it takes no others."""

    members: tuple[Member, ...]
    closed: bool = False

    @cached_property
    def ordered(self) -> list[Member]:
        """The members in the order of their names on the wire."""
        return sorted(self.members, key=lambda member: member.wire)

    @cached_property
    def literals(self) -> dict[str, tuple[Any, ...]]:
        """The members that take only certain values, with these."""
        return {m.wire: get_args(m.hint) for m in self.members if get_origin(m.hint) is Literal}


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Whether a parsed JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Whether a parsed JSON value is an array."""
    return isinstance(value, list)


def leaves(hint: Any) -> list[Any]:
    """The members of a union type, unions and aliases among them spread."""
    if get_origin(hint) is Annotated:
        return leaves(get_args(hint)[0]) if get_origin(get_args(hint)[0]) in (Union, UnionType) else [hint]
    if (spread := getattr(hint, "__union__", None)) is not None:  # an untagged union of structs
        return leaves(spread())
    if (alias := getattr(hint, "__value__", None)) is not None:  # a TypeAliasType
        return leaves(alias)
    if get_origin(hint) in (Union, UnionType):
        return [leaf for member in get_args(hint) for leaf in leaves(member)]
    return [NoneType if hint is None else hint]


def present(hint: Any, absent: object) -> Any:
    """The type of an optional member that is there: its hint without the marker for absence."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    return Union[tuple(option for option in get_args(hint) if option is not absent)]  # noqa: UP007  # of a tuple


class Options(Generic[T]):
    """The object types of a union, for finding the one that a value was meant to be."""

    def __init__(self, kinds: list[T], shape_of: Callable[[Any], Shape | None]) -> None:
        self._shapes = [(kind, shape) for kind in kinds if (shape := shape_of(kind)) is not None]
        telling: dict[str, set[Any]] = {}
        for _, shape in self._shapes:
            for wire, allowed in shape.literals.items():
                telling.setdefault(wire, set()).update(allowed)
        self._telling = [*telling.items()]
        self._needs = {id(shape): _needs(shape, shape_of) for _, shape in self._shapes}
        self._inside = _differing([*self._needs.values()])
        self._orders: dict[tuple[Any, ...], list[T]] = {}

    def best_first(self, value: Mapping[str, Any]) -> list[T]:
        """The types in the order in which to try them, without those of which it is plain that they cannot fit.

        Which members are there, what those say that may be fixed, and which members are in those that tell types apart
        by that, is all that the order depends on: values alike in that are common, and so it is remembered.
        """
        seen: list[Any] = [*value, None]
        try:
            for wire, allowed in self._telling:
                found = value.get(wire)
                seen.append(found if found is None or found in allowed else _OTHER)
        except TypeError:  # a list where a name should be
            return self._order(value)
        for wire in self._inside:
            if wire in value and is_object(inner := value[wire]):
                seen += (None, wire, *inner)
        look = tuple(seen)
        order = self._orders.get(look)
        if order is None:
            order = self._order(value)
            if len(look) <= _MOST and sum(len(name) for name in look if isinstance(name, str)) <= _LONGEST:
                if len(self._orders) >= _REMEMBERED:
                    self._orders.clear()
                self._orders[look] = order
        return order

    def _order(self, value: Mapping[str, Any]) -> list[T]:
        ordered = sorted(self._shapes, key=lambda option: fit(value, option[1]))
        possible = [kind for kind, shape in ordered if not self._contradicts(value, shape)]
        return possible or [kind for kind, _ in ordered]

    def _contradicts(self, value: Mapping[str, Any], shape: Shape) -> bool:
        """Whether a member has a value that a type does not take, or lacks what it needs. Null says nothing."""
        for wire, allowed in shape.literals.items():
            if (found := value.get(wire)) is not None and found not in allowed:
                return True
        needs = self._needs[id(shape)]
        inside = {wire: inner for wire in self._inside if is_object(inner := value.get(wire))}
        return any(not needs[wire] <= inner.keys() for wire, inner in inside.items() if wire in needs)


def _needs(shape: Shape, shape_of: Callable[[Any], Shape | None]) -> dict[str, frozenset[str]]:
    """The members that are objects, with the members that these have to have."""
    return {
        member.wire: frozenset(each.wire for each in inner.members if each.required)
        for member in shape.members
        if (inner := shape_of(member.hint)) is not None
    }


def _differing(needs: list[dict[str, frozenset[str]]]) -> list[str]:
    """The members that have to have other members in one type than in another."""
    wires = sorted({wire for found in needs for wire in found})
    return [wire for wire in wires if len({found[wire] for found in needs if wire in found}) > 1]


def is_finite(value: Any, size: int, parts_of: Callable[[Any], Collection[Any] | None]) -> bool:
    """Whether a value surely has no number that JSON cannot say. False where that is not to be had for little.

    Its text has `size` bytes: of large texts most is in few strings. `parts_of` says what is in an object; None for
    what it does not know.
    """
    left = size // _WORTH
    waiting: list[Any] = [value]
    while waiting:
        found = waiting.pop()
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
        if parts is None or len(parts) > left:
            return False
        left -= len(parts)
        waiting += parts
    return True


def fit(value: Mapping[str, Any], shape: Shape) -> tuple[int, int, int]:
    """How well an object fits a type, best first: most members present, fewest missing, most required."""
    present = sum(member.wire in value for member in shape.members)
    missing = sum(member.required and member.wire not in value for member in shape.members)
    return -present, missing, -sum(member.required for member in shape.members)
