"""Arguments that do not fit a function: texts for their faults and repairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from typedmcp_schemas.error_text import clip
from typedmcp_schemas.examination import NOT_EXAMINED

__all__ = ["MAX_FAULTS", "ArgumentError", "join_faults", "join_repairs"]

MAX_FAULTS: Final = 20
"""Faults of a call that are shown."""
_MAX_FAULT_CHARACTERS: Final = 1000
_MAX_REPAIRS: Final = 10


class ArgumentError(ValueError):
    """The arguments do not fit the function. The text has a line for each fault, with the name of the argument."""


def join_faults(faults: Sequence[str]) -> str:
    """Return all faults of a call in one text of bounded length, one on each line; empty if none is known."""
    found = [fault for fault in faults if fault != NOT_EXAMINED]
    if not found:
        return ""
    lines = [clip(fault, _MAX_FAULT_CHARACTERS) for fault in found[:MAX_FAULTS]]
    if len(found) > MAX_FAULTS:
        lines.append(f"and {len(found) - MAX_FAULTS} more")
    return "\n".join([*lines, NOT_EXAMINED] if len(found) < len(faults) else lines)


def join_repairs(repairs: Sequence[str]) -> str:
    """Return all repairs of a call on one line, with the number of those that are left out."""
    more = f"; and {len(repairs) - _MAX_REPAIRS} more" if len(repairs) > _MAX_REPAIRS else ""
    return "; ".join(repairs[:_MAX_REPAIRS]) + more
