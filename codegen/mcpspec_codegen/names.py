"""Convert names of the schema to Python names."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from unicodedata import normalize

from pydantic import BaseModel

__all__ = ["is_renamed", "name_attribute", "name_attributes", "name_constant", "to_pascal", "to_snake"]

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_MODEL_NAMES = frozenset(name for name in dir(BaseModel) if not name.startswith("_")) | {"mro"}
"""Attributes of `pydantic.BaseModel`, and of classes, that a field must not shadow."""

_TYPE_NAMES = frozenset({"bool", "dict", "float", "int", "list", "str"})
"""Names that the annotations of later fields use."""

_FUNCTION_NAMES = frozenset({"constant", "field", "member"})
"""Functions that the generated classes call in their bodies."""

_TAKEN = _MODEL_NAMES | _TYPE_NAMES | _FUNCTION_NAMES

_DICT_NAMES = frozenset(name for name in dir(dict) if not name.startswith("_"))
"""Methods that a member of an open object (a `dict`) must not shadow."""


def to_snake(text: str) -> str:
    """Convert to snake case: `CallToolRequest`, `callTool` → `call_tool_request`, `call_tool`."""
    words = _CAMEL.sub("_", _as_parsed(text)).lower()  # which may add marks that are no letters
    return _as_parsed(re.sub(r"\W+", "_", words).strip("_"))


def _as_parsed(text: str) -> str:
    """Return a name in the form that Python gives it in source: `ﬁ` is the name `fi`."""
    return normalize("NFKC", text)


def to_pascal(text: str) -> str:
    """Convert to Pascal case: `inputSchema`, `notifications/progress` → `InputSchema`, `NotificationsProgress`."""
    parts = [part for part in re.split(r"[\W_]+", text) if part]
    return "".join(part[0].upper() + part[1:] for part in parts)


def name_constant(text: str) -> str:
    """Name a constant: `tools/call`, `logging/setLevel` → `TOOLS_CALL`, `LOGGING_SET_LEVEL`."""
    return _as_parsed(to_snake(text).upper())


def name_attribute(wire: str, *, in_dict: bool = False) -> str:
    """Name an attribute: `mimeType`, `x/toolName`, `class`, `2d` → `mime_type`, `tool_name`, `class_`, `field_2d`."""
    name = to_snake(wire.rpartition("/")[2])
    name = "field_" + name if name[:1].isdigit() else name
    taken = _TAKEN | _DICT_NAMES if in_dict else _TAKEN
    return name + "_" if keyword.iskeyword(name) or name in taken else name


def name_attributes(wires: Iterable[str], *, in_dict: bool = False) -> dict[str, str]:
    """Name the attributes of a type. `dict` beside `dict_` becomes `dict__`, since the other one keeps its name."""
    named = {wire: name_attribute(wire, in_dict=in_dict) for wire in wires}
    kept = {wire for wire, name in named.items() if wire == name}
    for wire in [wire for wire, name in named.items() if name == wire + "_"]:
        while named[wire] in kept:
            named[wire] += "_"
    return named


_WORDS = re.compile(r"[a-z]+(_[a-z]+)*")


def is_renamed(attribute: str, wire: str) -> bool:
    """Return whether the camel case of an attribute is not its name on the wire, so that a class has to state it.

    Where there are other characters than letters, msgspec and Pydantic differ in their camel case.
    """
    if not _WORDS.fullmatch(attribute):
        return True
    first, *others = attribute.split("_")
    return wire != first + "".join(map(str.capitalize, others))
