"""Find and keep the members of a message that its type of `structs` does not declare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import msgspec

from mcpspec.support import everyday_structs, structs
from mcpspec.support.objects import is_array, is_object
from mcpspec.support.walk import format_path

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["Kept", "decode_keeping", "unknown_members"]

T = TypeVar("T")
Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """A value of a type of `structs`, and the members that its types do not declare."""

    value: T
    undeclared: list[tuple[msgspec.Struct, dict[str, Any]]]
    """Each Struct in the value that has undeclared members, with these. They stay with the Struct if it is moved or
    changed, and are lost if it is replaced. Append to the list to add members to other Structs."""

    def to_builtins(self) -> Any:
        """Convert the value to parsed JSON, with the undeclared members at their places."""
        made = structs.to_builtins(self.value)
        undeclared = {id(owner): members for owner, members in self.undeclared}
        for _, owner, members in _find_structs(self.value, made):
            for name, member in undeclared.get(id(owner), {}).items():
                members.setdefault(name, member)
        return made

    def encode(self) -> bytes:
        """Encode the value as JSON text, with the undeclared members at their places."""
        return structs.encode(self.to_builtins())


def decode_keeping(buf: bytes | bytearray | memoryview | str, type: TypeForm[T]) -> Kept[T]:
    """Decode JSON text as a type of `structs`, and keep the members that the type does not declare.

    A gateway changes `value` and passes on `encode()`. Raises `DecodeError` if the text does not fit the type.
    """
    value = _decode(buf, type)
    found = _find_undeclared(value, msgspec.json.decode(buf))
    return Kept(value, [(owner, members) for _, owner, members in found])


def unknown_members(buf: bytes | bytearray | memoryview | str, type: TypeForm[Any]) -> list[str]:
    """Return the paths of the members that a type of `structs` does not declare, and decoding drops.

    A path is like one of `DecodeError`, such as `tools[0].color`. The members of open objects, such as `_meta` and JSON
    Schemas, are kept, and so they are not listed. Raises `DecodeError` if the text does not fit the type.
    """
    found = _find_undeclared(_decode(buf, type), msgspec.json.decode(buf))
    return [format_path((*path, name)) for path, _, members in found for name in members]


def _decode(buf: bytes | bytearray | memoryview | str, kind: TypeForm[T]) -> T:
    return everyday_structs.decode(buf, kind) if everyday_structs.is_everyday(kind) else structs.decode(buf, kind)


def _find_undeclared(value: Any, raw: Any) -> Iterator[tuple[Path, msgspec.Struct, dict[str, Any]]]:
    """Yield the Structs that have undeclared members, with their paths, given a value and the parsed JSON of it."""
    for path, owner, members in _find_structs(value, raw):
        tag = owner.__struct_config__.tag_field
        declared = structs.attributes_of(owner.__class__)
        undeclared = {name: member for name, member in members.items() if name not in declared and name != tag}
        if undeclared:
            yield path, owner, undeclared


def _find_structs(value: Any, raw: Any) -> Iterator[tuple[Path, msgspec.Struct, dict[str, Any]]]:
    """Yield the Structs in a value, outermost first, with their paths and their parsed JSON."""
    pending: list[tuple[Path, Any, Any]] = [((), value, raw)]
    while pending:
        path, value, raw = pending.pop()
        parts: list[tuple[str | int, Any, Any]] = []
        if isinstance(value, msgspec.Struct):
            yield path, value, raw
            declared = structs.attributes_of(value.__class__).items()
            parts = [(wire, getattr(value, name), raw[wire]) for wire, name in declared if wire in raw]
        elif is_object(value):
            parts = [(key, each, raw[key]) for key, each in value.items() if key in raw]
        elif is_array(value):
            parts = [(i, each, raw[i]) for i, each in enumerate(value)]
        pending += [((*path, key), each, part) for key, each, part in reversed(parts)]
