"""How errors tell of values and of places in them, wherever a value does not fit: one notation for all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from types import NoneType
from typing import Any, Final

__all__ = ["KINDS", "clipped", "expected", "path_part", "printable", "shown"]

KINDS: Final[dict[Any, str]] = {
    str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null", list: "array", tuple: "array",
    set: "array", frozenset: "array", dict: "object",
}  # fmt: skip
"""What JSON calls values of Python's classes."""
_SHOWN: Final = 60
"""Characters of a value, or of a name, that are shown,"""
_CHOICES: Final = 20
"""and names of what was expected."""


def expected(names: Sequence[str], value: Any) -> str:
    """That a value is none of those that are called so."""
    if len(names) > _CHOICES:
        names = [*names[:_CHOICES], f"{len(names) - _CHOICES} others"]
    listed = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]
    return f"expected {listed}, got {shown(value)}"


def shown(value: Any) -> str:
    """A value as JSON, or as what it is, in one short line."""
    value = value.value if isinstance(value, Enum) else value
    if isinstance(value, list | tuple | dict):
        return KINDS[dict if isinstance(value, dict) else list]
    try:
        text = json.dumps(value[:_SHOWN] if isinstance(value, str) else value, ensure_ascii=False)
    except TypeError:
        return type(value).__name__
    except ValueError:  # Python does not write integers of thousands of digits
        return "an integer of very many digits"
    return clipped(printable(text), _SHOWN)


def path_part(key: str | int) -> str:
    """A member of an object or an array in a path: `.days`, `[0]`, or `["next week"]`."""
    if isinstance(key, int):
        return f"[{key}]"
    is_name = len(key) <= _SHOWN and key.isascii() and key.replace("$", "_").isidentifier()
    return f".{key}" if is_name else f"[{shown(key)}]"


def clipped(text: str, most: int) -> str:
    """The beginning of a text."""
    return text if len(text) <= most else text[: most - 1] + "…"


def printable(text: str, kept: str = "") -> str:
    r"""Text without what breaks a line, or what a terminal would obey: `\u000a`. Characters that are `kept` stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else f"\\u{ord(c):04x}" for c in text)
