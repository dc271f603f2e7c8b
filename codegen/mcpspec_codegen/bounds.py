"""Apply the bounds beside constants: a list of constants says all that the bounds would."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from mcpspec_codegen.nodes import BOUNDS, Schema, constants

__all__ = ["apply_bounds"]


def apply_bounds(node: Schema) -> Schema:
    """Return a schema with those of its constants that its bounds admit, and without the bounds.

    The bounds stay if they admit none of the constants, and beside constants that are lists or objects.
    """
    listed, bounds = constants(node), node.keys() & BOUNDS
    if not bounds or listed is None or any(isinstance(value, list | dict) for value in listed):
        return node
    kept = [value for value in listed if all(_admits(bound, node[bound], value) for bound in bounds)]
    if not kept:
        return node
    rest = {key: value for key, value in node.items() if key not in bounds}
    return rest if "const" in node else {**rest, "enum": kept}


def _admits(bound: str, limit: Any, value: Any) -> bool:
    """Return whether a bound admits a scalar. It limits values of one type, and admits all others."""
    if isinstance(value, str):
        return bound not in _OF_TEXTS or _OF_TEXTS[bound](value, limit)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return not is_number or bound not in _OF_NUMBERS or _OF_NUMBERS[bound](value, limit)


_OF_TEXTS: dict[str, Callable[[str, Any], bool]] = {
    "minLength": lambda text, least: len(text) >= least,
    "maxLength": lambda text, most: len(text) <= most,
    "pattern": lambda text, pattern: re.search(pattern, text) is not None,
}
_OF_NUMBERS: dict[str, Callable[[float, Any], bool]] = {
    "minimum": lambda number, least: number >= least,
    "maximum": lambda number, most: number <= most,
    "exclusiveMinimum": lambda number, below: number > below,
    "exclusiveMaximum": lambda number, above: number < above,
    "multipleOf": lambda number, factor: number % factor == 0,
}
