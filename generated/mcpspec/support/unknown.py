"""Find the members of a message that its type does not declare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mcpspec.support.errors import DecodeError
from mcpspec.support.structs import decode
from mcpspec.support.walk import format_path, walk_objects

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["unknown_members"]


def unknown_members(buf: bytes | bytearray | memoryview | str, type: TypeForm[Any]) -> list[str]:
    """Return the paths of the members that a type of `structs` does not declare, so that decoding drops them.

    A path is like one of `DecodeError`, such as `tools[0].color`. The members of open objects, such as `_meta` and JSON
    Schemas, are kept, and so they are not listed. Raises `DecodeError` if the text does not fit the type.
    """
    decode(buf, type)
    paths: list[str] = []
    try:
        for found in walk_objects(msgspec.json.decode(buf), type):
            declared = {member.wire for member in found.shape.members}
            undeclared = () if found.is_open else (name for name in found.value if name not in declared)
            paths += (format_path((*found.path, name)) for name in undeclared)
    except RecursionError as error:
        raise DecodeError("", "nested too deeply") from error
    return paths
