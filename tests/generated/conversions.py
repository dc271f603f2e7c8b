"""Checks of a value that is converted to another revision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mcpspec
from mcpspec.support.conversion import Converted
from mcpspec.support.converters import IMPLIED
from mcpspec.support.errors import ConversionError
from mcpspec.support.objects import find_differences, is_object

__all__ = ["check_converted", "convert", "structs_of"]

_PREFIX = "io.modelcontextprotocol/"
_META: dict[str, Any] = {f"{_PREFIX}clientCapabilities": {}}


def structs_of(version: str) -> Any:
    return mcpspec.revision(version).exact.structs


def check_converted(
    value: dict[str, Any], name: str, source: str, target: str, accepts: Callable[[str, Any], bool]
) -> bool:
    """Convert a value of a definition: what it becomes is valid, and converted back it lacks only what was lost.

    `accepts` tells whether a value is one of a definition of the target. Return False if it cannot be converted.
    """
    types = structs_of(source)
    exact = types.from_builtins(value, getattr(types, name))
    made = convert(exact, value, target)
    if isinstance(made, ConversionError):
        return False
    sent = structs_of(target).to_builtins(made.value)
    assert accepts(type(made.value).__name__, sent), f"{name} from {source} to {target} is invalid: {value}, {sent}"
    unnamed = _unnamed_losses(made, exact, value, source)
    assert not unnamed, f"{name} from {source} to {target} and back lacks {unnamed}: {value}, {made}"
    return True


def convert(value: Any, plain: dict[str, Any], to: str) -> Converted[Any] | ConversionError:
    """Convert a value, with members for `_meta` if it is a request that needs them. Return an error as it is."""
    try:
        return mcpspec.convert(value, to)
    except ConversionError as error:
        if "_meta" not in error.path:
            return error
    try:
        return mcpspec.convert(value, to, meta=_meta_for(plain, to))
    except ConversionError as error:
        return error


def _meta_for(value: dict[str, Any], target: str) -> dict[str, Any] | None:
    """Return the members that the target may require in the `_meta` of a request: those of the value, or new ones."""
    params: Any = value.get("params", value)
    own: Any = params.get("_meta") if is_object(params) else None
    known = {key: member for key, member in own.items() if key.startswith(_PREFIX)} if is_object(own) else {}
    return {**_META, f"{_PREFIX}protocolVersion": target, **known}


def _unnamed_losses(made: Converted[Any], exact: Any, plain: dict[str, Any], source: str) -> list[str]:
    """Convert a value back, and return the paths of what it lacks although neither conversion has named them.

    A member of a result that says what clients assume is not lost.
    """
    back = convert(made.value, plain, source)
    if isinstance(back, ConversionError):
        return [] if _is_named(back.path, made.lost) else [str(back)]
    lacking = find_differences(plain, structs_of(source).to_builtins(back.value), "")
    dropped_when_decoded = find_differences(plain, structs_of(source).to_builtins(exact), "")
    implied = [wire for wire, assumed in IMPLIED.items() if plain.get(wire) == assumed]
    named = [*made.lost, *back.lost, *implied, *(path.removeprefix(".") for path in dropped_when_decoded)]
    return [path for path in lacking if not _is_named(path.removeprefix("."), named)]


def _is_named(path: str, lost: list[str]) -> bool:
    """Return whether a path, or a place that contains it or that it contains, is named."""
    return any(path.startswith(each) or each.startswith(path) for each in lost)
