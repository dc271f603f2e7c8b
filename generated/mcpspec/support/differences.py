"""Differences between two JSON values."""

from __future__ import annotations

from typing import Any

from mcpspec.support.objects import is_array, is_object

__all__ = ["find_differences"]


def find_differences(before: Any, after: Any, path: str) -> list[str]:
    """Return the paths of the values that are missing in another value, or have changed. Additions do not count."""
    if before == after:  # of most parts of a value, and in one step
        return []
    if is_object(before) and is_object(after):
        return [
            lost
            for key, value in before.items()
            for lost in (find_differences(value, after[key], f"{path}.{key}") if key in after else [f"{path}.{key}"])
        ]
    if is_array(before) and is_array(after) and len(before) == len(after):
        return [lost for i, item in enumerate(before) for lost in find_differences(item, after[i], f"{path}[{i}]")]
    return [path]
