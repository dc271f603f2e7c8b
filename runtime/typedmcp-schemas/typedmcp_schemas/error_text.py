"""Format values and paths for error messages, in one notation for all errors about values."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from types import NoneType
from typing import Any, Final

__all__ = ["KINDS", "clip", "describe_mismatch", "escape_unprintable", "format_path_part", "format_value"]

KINDS: Final[dict[Any, str]] = {
    str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null", list: "array", tuple: "array",
    set: "array", frozenset: "array", dict: "object",
}  # fmt: skip
"""JSON's names for Python's classes."""
_MAX_CHARACTERS: Final = 60
"""Longest text for a value or a name."""
_MAX_NAMES: Final = 20
"""Longest list of expected types or values."""


def describe_mismatch(names: Sequence[str], value: Any) -> str:
    """Describe a value that is none of the expected ones: `expected string or null, got 1`."""
    if len(names) > _MAX_NAMES:
        names = [*names[:_MAX_NAMES], f"{len(names) - _MAX_NAMES} others"]
    listed = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]
    return f"expected {listed}, got {format_value(value)}"


def format_value(value: Any) -> str:
    """Format a value in one short line: as JSON, or as the name of its type."""
    import json  # here, since a program without errors does not need it

    value = value.value if isinstance(value, Enum) else value
    if isinstance(value, list | tuple | dict):
        return KINDS[dict if isinstance(value, dict) else list]
    try:
        text = json.dumps(value[:_MAX_CHARACTERS] if isinstance(value, str) else value, ensure_ascii=False)
    except TypeError:
        return type(value).__name__
    except ValueError:  # Python does not write integers of thousands of digits
        return "an integer of very many digits"
    return clip(escape_unprintable(text), _MAX_CHARACTERS)


def format_path_part(key: str | int) -> str:
    """Format a member of an object or an array in a path: `.days`, `[0]`, or `["next week"]`."""
    if isinstance(key, int):
        return f"[{key}]"
    is_name = len(key) <= _MAX_CHARACTERS and key.isascii() and key.replace("$", "_").isidentifier()
    return f".{key}" if is_name else f"[{format_value(key)}]"


def clip(text: str, length: int) -> str:
    """Shorten a text to `length` characters, the last of which is then `…`."""
    return text if len(text) <= length else text[: length - 1] + "…"


def escape_unprintable(text: str, kept: str = "") -> str:
    r"""Escape line breaks and control characters, such as `\u000a`, except those in `kept`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else f"\\u{ord(c):04x}" for c in text)
