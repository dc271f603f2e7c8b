"""Encodings of lists that are the same for every client: of tools, resources, templates or prompts."""

from __future__ import annotations

from operator import is_
from typing import Any, Final

import msgspec

from mcpspec.support.converters import DroppedFields
from typedmcp.protocol.codec import MethodCodec, encode_message

__all__ = ["EncodedList"]

_MAX_BYTES: Final = 8 << 20
"""Bytes of the encodings of one list that are kept."""


class EncodedList:
    """The encodings of one list, by the codec of the revision. They are made again when the list changes.

    A list is the same as before if its items are the same objects. Whoever returns it must not change them in place.
    """

    __slots__ = ("_bytes", "_encodings", "_members")

    def __init__(self) -> None:
        self._members: tuple[Any, ...] = ()
        self._encodings: dict[MethodCodec, tuple[bytes, DroppedFields]] = {}
        self._bytes = 0

    def encode(self, result: msgspec.Struct, codec: MethodCodec) -> tuple[bytes, DroppedFields]:
        """Return a list in the revision of a codec, encoded in one line, and the members that the revision lacks.

        Raises `KeyError` for a codec that has not compiled its conversion, and the errors of `encode_message`.
        """
        members = msgspec.structs.astuple(result)
        if len(members) != len(self._members) or not all(map(_is_same, members, self._members)):
            self._members = tuple([each.copy() if isinstance(each, list) else each for each in members])
            self._encodings.clear()
            self._bytes = 0
        if (found := self._encodings.get(codec)) is None:
            dropped: DroppedFields = []
            convert = codec.downgrades[type(result)]
            text = encode_message(result if convert is None else convert(result, dropped))
            found = text, dropped
            if self._bytes + len(text) <= _MAX_BYTES:
                self._encodings[codec] = found
                self._bytes += len(text)
        return found


def _is_same(member: Any, other: Any) -> bool:
    """Return whether two members are the same. Equality is not enough: 1 equals True, and is encoded differently."""
    if member is other:
        return True
    if member.__class__ is list and other.__class__ is list:
        return len(member) == len(other) and all(map(is_, member, other))
    return member.__class__ is other.__class__ and member.__class__ in (int, str) and member == other
