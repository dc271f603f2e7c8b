"""Secrets that must not appear in error messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["hide_values"]

_HIDDEN: Final = "…"
_SHORTEST_SECRET: Final = 4
"""Characters from which on a value is hidden. Shorter ones are no secrets, and would be found everywhere."""


def hide_values(text: str, values: Iterable[str]) -> str:
    """Return a text without the values of variables, such as tokens, that were inserted into a configuration."""
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, _HIDDEN)
    return text
