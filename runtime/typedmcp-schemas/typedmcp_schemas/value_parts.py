"""The parts of a Python value with their paths: what is awaitable in it, and what has no JSON form."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, cast

import msgspec

from typedmcp_schemas.error_text import format_value
from typedmcp_schemas.values import enc_hook

__all__ = ["find_awaitable", "find_without_json"]

_MAX_ITEMS: Final = 1000
_MAX_DEPTH: Final = 10
"""Limits of the search in a value that cannot be sent."""
_encode: Final = msgspec.json.Encoder(enc_hook=enc_hook).encode


def find_awaitable(value: object) -> tuple[str, object] | None:
    """Return the path, such as `[0].name`, and the first awaitable in a value. None if there is none."""
    for number, (path, item) in enumerate(_items(value, "", 0)):
        if inspect.isawaitable(item) or inspect.isasyncgen(item):
            return path, item
        if number == _MAX_ITEMS:
            break
    return None


def find_without_json(value: object) -> tuple[str, object]:
    """Return the path, empty for the value itself, and the innermost part of a value that has no JSON form."""
    path = ""
    for _ in range(_MAX_DEPTH):
        broken = next((each for each in _members(value, path) if not _has_json_form(each[1])), None)
        if broken is None:
            break
        path, value = broken
    return path, value


def _items(value: object, path: str, depth: int) -> Iterator[tuple[str, object]]:
    """Yield a value and what it contains, with paths."""
    yield path, value
    if depth < _MAX_DEPTH:
        for place, item in _members(value, path):
            yield from _items(item, place, depth + 1)


def _members(value: object, path: str) -> list[tuple[str, object]]:
    """Return what a container or a record contains, with paths."""
    if isinstance(value, Mapping):
        return [(f"{path}[{format_value(key)}]", item) for key, item in cast("Mapping[Any, object]", value).items()]
    if isinstance(value, list | tuple):
        return [(f"{path}[{number}]", item) for number, item in enumerate(cast("list[object]", value))]
    names = list[str]()
    if is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in fields(value)]
    elif isinstance(value, msgspec.Struct):
        names = [*value.__struct_fields__]
    return [(f"{path}.{name}", getattr(value, name, None)) for name in names]


def _has_json_form(value: object) -> bool:
    try:
        _encode(value)
    except Exception:
        return False
    return True
