"""Python names for what the schema names."""

from __future__ import annotations

import keyword
import re

from pydantic import BaseModel

__all__ = ["attribute_name", "constant_name", "pascal", "snake"]

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_MODEL_NAMES = frozenset(name for name in dir(BaseModel) if not name.startswith("_")) | {"mro"}
"""Attributes of `pydantic.BaseModel`, and of classes, that a field must not hide."""

_TYPE_NAMES = frozenset({"bool", "dict", "float", "int", "list", "str"})
"""Names that the annotations after a field use."""

_DICT_NAMES = frozenset(name for name in dir(dict) if not name.startswith("_"))
"""Methods that a member of an open object (a `dict`) must not hide."""


def snake(text: str) -> str:
    """`CallToolRequest`, `callTool` → `call_tool_request`, `call_tool`."""
    return re.sub(r"\W+", "_", _CAMEL.sub("_", text)).strip("_").lower()


def pascal(text: str) -> str:
    """`inputSchema`, `_meta`, `notifications/progress` → `InputSchema`, `Meta`, `NotificationsProgress`."""
    parts = [part for part in re.split(r"[\W_]+", text) if part]
    return "".join(part[0].upper() + part[1:] for part in parts)


def constant_name(text: str) -> str:
    """`tools/call`, `logging/setLevel` → `TOOLS_CALL`, `LOGGING_SET_LEVEL`."""
    return snake(text).upper()


def attribute_name(wire: str, *, in_dict: bool = False) -> str:
    """`mimeType`, `_meta`, `x.y/clientInfo`, `class` → `mime_type`, `meta`, `client_info`, `class_`."""
    name = snake(wire.rpartition("/")[2])
    taken = keyword.iskeyword(name) or name in _MODEL_NAMES | _TYPE_NAMES or (in_dict and name in _DICT_NAMES)
    return name + "_" if taken else name
