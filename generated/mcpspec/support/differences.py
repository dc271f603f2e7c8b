"""Differences between two JSON values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcpspec.support.objects import is_array, is_object

__all__ = ["find_differences"]


def find_differences(before: Any, after: Any, path: str) -> list[str]:
    """Return the paths of the values that are missing in another value, or have changed. Additions do not count."""
    return [] if before == after else [*_differences(before, after, path)]


def _differences(before: Any, after: Any, path: str) -> Iterator[str]:
    """Yield the paths of the differences between two values that are not equal. Equal parts cost one comparison."""
    if is_object(before) and is_object(after):
        for key, value in before.items():
            if key not in after:
                yield f"{path}.{key}"
            elif value != after[key]:
                yield from _differences(value, after[key], f"{path}.{key}")
    elif is_array(before) and is_array(after) and len(before) == len(after):
        for i, value in enumerate(before):
            if value != after[i]:
                yield from _differences(value, after[i], f"{path}[{i}]")
    else:
        yield path
