"""The error that the compiler raises for bad input, and the pointers that name its place."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["Pointer", "SchemaError", "pointer_text", "split_pointer"]

Pointer: TypeAlias = tuple[str | int, ...]


def pointer_text(pointer: Pointer) -> str:
    """Return a pointer as text (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in pointer)


def split_pointer(text: str) -> list[str]:
    """Return the parts of a pointer."""
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


class SchemaError(Exception):
    """Input that cannot be compiled.

    `file` and `pointer` (a JSON pointer, RFC 6901) give the place, `reason` gives the cause.
    """

    def __init__(self, file: str, pointer: str, reason: str) -> None:
        self.file = file
        self.pointer = pointer
        self.reason = reason
        super().__init__(f"{file}#{pointer}: {reason}")
