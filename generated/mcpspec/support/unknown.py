"""Find the members of a message that its type does not declare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_origin

import msgspec

from mcpspec.support.error_text import format_path_part
from mcpspec.support.errors import DecodeError
from mcpspec.support.objects import UnionOptions, is_array, is_object, spread_union
from mcpspec.support.structs import OpenObject, decode, fits, shape_of

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["unknown_members"]

_Path: TypeAlias = tuple[str | int, ...]


def unknown_members(buf: bytes | bytearray | memoryview | str, type: TypeForm[Any]) -> list[str]:
    """Return the paths of the members that a type of `structs` does not declare, so that decoding drops them.

    A path is like one of `DecodeError`, such as `tools[0].color`. The members of open objects, such as `_meta` and JSON
    Schemas, are kept, and so they are not listed. Raises `DecodeError` if the text does not fit the type.
    """
    decode(buf, type)
    try:
        paths = [*_walk(msgspec.json.decode(buf), type, ())]
    except RecursionError as error:
        raise DecodeError("", "nested too deeply") from error
    return ["".join(map(format_path_part, path)).removeprefix(".") for path in paths]


def _walk(value: Any, hint: Any, path: _Path) -> Iterator[_Path]:
    options = [_strip_bounds(option) for option in spread_union(hint)]
    if is_array(value):
        item = next((get_args(option)[0] for option in options if get_origin(option) is list), Any)
        for i, each in enumerate(value if item is not Any else ()):  # nothing is declared below `Any`
            yield from _walk(each, item, (*path, i))
    elif is_object(value):
        yield from _walk_object(value, options, path)


def _walk_object(value: dict[str, Any], options: list[Any], path: _Path) -> Iterator[_Path]:
    kinds = [option for option in options if shape_of(option) is not None]
    # The whole value fits, so that an only option needs no check, which would take its time again at each level.
    is_only = len(options) == 1
    ranked = UnionOptions(kinds, shape_of).rank(value)
    kind = next((kind for kind in ranked if is_only or fits(value, kind)), None)
    if (shape := shape_of(kind)) is None:
        hint = next((get_args(option)[1] for option in options if get_origin(option) is dict), Any)
        if hint is Any:
            return
        declared = dict.fromkeys(value, hint)
    else:
        declared = {member.wire: member.hint for member in shape.members}
    is_open = isinstance(kind, type) and issubclass(kind, OpenObject)
    for name, each in value.items():
        if name in declared:
            yield from _walk(each, declared[name], (*path, name))
        elif not is_open:
            yield (*path, name)


def _strip_bounds(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint
