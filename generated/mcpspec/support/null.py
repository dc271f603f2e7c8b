"""JSON's `null` as a value, in everyday types, where it differs from the absence of a member."""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["NULL", "Null"]


class Null(Enum):
    """The type of `NULL`."""

    NULL = None

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NULL"


NULL: Final = Null.NULL
"""A member that is present and `null`, such as `CallToolResult(content=[], structured_content=NULL)`. It is falsy.

Everyday types have `None` for an absent member. Only members whose type allows any JSON value can be `NULL`; both
libraries encode it as `null`, and decode it as `NULL`.
"""
