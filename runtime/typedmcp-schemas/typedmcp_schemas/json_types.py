"""The two containers of parsed JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["is_array", "is_object"]


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Return whether a parsed JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Return whether a parsed JSON value is an array."""
    return isinstance(value, list)
