"""JSON's `null` in optional members.

Where the protocol allows only absence, a member that a peer sent as null is read as absent, and reported. Where it
allows any value, plain types have `NULL` for null, and None for absence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcpspec.support.null import NULL
from mcpspec.support.walk import find_misplaced_nulls, format_path
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import RequestId

__all__ = ["from_null", "nulls_diagnostic", "remove_nulls", "to_null"]


def remove_nulls(params: dict[str, Any], kind: Any, root: str = "params") -> list[str]:
    """Remove the members of parsed parameters or results that are null instead of absent, and return their paths."""
    nulls = [*find_misplaced_nulls(params, kind)]
    for found, wire in nulls:
        del found.value[wire]
    return [format_path((root, *found.path, wire)) for found, wire in nulls]


def nulls_diagnostic(paths: Iterable[str], method: str, id: RequestId | None) -> Diagnostic:
    """Return the diagnostic for members that `remove_nulls` has removed."""
    text = f"{', '.join(paths)}: null was read as absent"
    return Diagnostic(DiagnosticKind.TOLERATED, text, method, id, [*paths])


def to_null(value: Any) -> Any:
    """Return the plain type's form of a JSON value that is present: `NULL` for None."""
    return NULL if value is None else value


def from_null(value: Any) -> Any:
    """Return the JSON value of a plain type's member that is present: None for `NULL`."""
    return None if value is NULL else value
