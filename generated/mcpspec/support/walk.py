"""Walk parsed JSON together with its type."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import NoneType
from typing import Annotated, Any, NamedTuple, TypeAlias, get_args, get_origin

from mcpspec.support.error_text import format_path_part
from mcpspec.support.objects import Shape, UnionOptions, is_array, is_object, spread_union
from mcpspec.support.structs import OpenObject, fits, shape_of

__all__ = ["FoundObject", "find_misplaced_nulls", "format_path", "walk_objects"]

Path: TypeAlias = tuple[str | int, ...]


class FoundObject(NamedTuple):
    """An object in parsed JSON whose members a type declares."""

    path: Path
    value: dict[str, Any]
    shape: Shape
    is_open: bool
    """True if the type keeps undeclared members."""


def walk_objects(value: Any, hint: Any, path: Path = ()) -> Iterator[FoundObject]:
    """Yield the objects in a value of a type of structs, outermost first. Nothing is declared below `Any`.

    A value that fits no type of a union is taken for the one that is most like it.
    """
    options = _options(hint)
    if is_array(value):
        item = next((get_args(option)[0] for option in options if get_origin(option) is list), Any)
        for i, each in enumerate(value if item is not Any else ()):
            yield from walk_objects(each, item, (*path, i))
    elif is_object(value):
        yield from _walk_object(value, options, path)


def _walk_object(value: dict[str, Any], options: list[Any], path: Path) -> Iterator[FoundObject]:
    kinds = [option for option in options if shape_of(option) is not None]
    # An only option needs no check, which would take its time again at each level.
    ranked = kinds if len(kinds) == 1 else _union_options(tuple(kinds)).rank(value)
    kind = next((kind for kind in ranked if len(options) == 1 or fits(value, kind)), None)
    if kind is None and len(options) == len(kinds):
        kind = next(iter(ranked), None)
    if (shape := shape_of(kind)) is None:
        hint = next((get_args(option)[1] for option in options if get_origin(option) is dict), Any)
        if hint is Any:
            return
        declared = dict.fromkeys(value, hint)
    else:
        yield FoundObject(path, value, shape, isinstance(kind, type) and issubclass(kind, OpenObject))
        declared = shape.hints
    for name, each in value.items():
        if name in declared and (is_object(each) or is_array(each)):
            yield from walk_objects(each, declared[name], (*path, name))


@cache
def _options(hint: Any) -> list[Any]:
    options = [_strip_bounds(option) for option in spread_union(hint) if option is not NoneType]
    return [leaf for option in options for leaf in (_options(option) if hasattr(option, "__union__") else [option])]


@cache
def _union_options(kinds: tuple[Any, ...]) -> UnionOptions[Any]:
    return UnionOptions([*kinds], shape_of)


def find_misplaced_nulls(value: Any, hint: Any) -> Iterator[tuple[FoundObject, str]]:
    """Yield the members that are `null` where the protocol allows only absence, as the object and the member's name."""
    for found in walk_objects(value, hint):
        for each in found.shape.members:
            if not each.required and each.hint is not Any and found.value.get(each.wire, found) is None:
                yield found, each.wire


def _strip_bounds(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def format_path(path: Path) -> str:
    """Format a path as in a `DecodeError`, such as `tools[0].color`."""
    return "".join(map(format_path_part, path)).removeprefix(".")
