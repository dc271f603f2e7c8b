"""The error that the compiler raises for bad input."""

from __future__ import annotations

__all__ = ["SchemaError"]


class SchemaError(Exception):
    """Input that cannot be compiled.

    `file` and `pointer` (a JSON pointer, RFC 6901) give the place, `reason` gives the cause.
    """

    def __init__(self, file: str, pointer: str, reason: str) -> None:
        self.file = file
        self.pointer = pointer
        self.reason = reason
        super().__init__(f"{file}#{pointer}: {reason}")
