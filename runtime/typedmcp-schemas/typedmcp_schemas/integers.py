"""Integers that JSON has with a fraction of zero, such as `1.0`.

They are integers for JSON Schema, and some languages write all numbers so. Decoders of Python do not take them for
`int`, so values that do not fit are read again with them as integers. https://json-schema.org/draft/2020-12/json-schema-validation#section-6.1.1
"""

from __future__ import annotations

from typing import Any, Final

from typedmcp_schemas.json_types import is_array, is_object

__all__ = ["to_integer", "to_integers"]

_MAX_EXACT: Final = 1 << 53
"""The largest integer that a float has without loss, and so have all smaller ones."""


def to_integer(value: Any) -> Any:
    """Return the integer that a float equals without loss; return any other value as it is."""
    return int(value) if type(value) is float and abs(value) <= _MAX_EXACT and value.is_integer() else value


def to_integers(value: Any) -> Any:
    """Return parsed JSON in which integers take the place of all floats that equal one."""
    if is_object(value):
        return {name: to_integers(member) for name, member in value.items()}
    return [to_integers(item) for item in value] if is_array(value) else to_integer(value)
