"""What both backends know about an object type: its members, and how well a value fits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["Constant", "Member", "Shape", "best_first", "fit", "is_array", "is_object", "leaves", "present"]

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class Shape:
    """The members of an object type, and whether it takes no others."""

    members: tuple[Member, ...]
    closed: bool = False

    @property
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


def best_first(value: Mapping[str, Any], candidates: list[T], shape: Callable[[T], Shape]) -> list[T]:
    """Object types in the order in which to try them."""
    return sorted(candidates, key=lambda candidate: fit(value, shape(candidate)))


def fit(value: Mapping[str, Any], shape: Shape) -> tuple[int, int, int]:
    """How well an object fits a type, best first: most members present, fewest missing, most required."""
    present = sum(member.wire in value for member in shape.members)
    missing = sum(member.required and member.wire not in value for member in shape.members)
    return -present, missing, -sum(member.required for member in shape.members)
