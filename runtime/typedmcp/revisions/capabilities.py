"""Conversion of capabilities between the dialect and the revision of a peer."""

from __future__ import annotations

from typing import Any

from mcpspec.support.structs import from_builtins
from typedmcp.errors import DecodeError
from typedmcp.revisions.features import methods_of, structs_of

__all__ = ["client_capabilities", "upgrade_capabilities"]


def client_capabilities(revision: str, *, sampling: bool, elicitation: bool, roots: bool) -> dict[str, Any]:
    """Build the capabilities that a client declares on a revision, as plain JSON."""
    declared: dict[str, Any] = {}
    if sampling:
        declared["sampling"] = {}
    if elicitation:
        has_modes = hasattr(structs_of(revision), "ElicitRequestURLParams")
        declared["elicitation"] = {"form": {}, "url": {}} if has_modes else {}
    if roots:
        is_notified = "notifications/roots/list_changed" in methods_of(revision).CLIENT_NOTIFICATIONS
        declared["roots"] = {"listChanged": True} if is_notified else {}
    return declared


def upgrade_capabilities(plain: dict[str, Any], kind: Any) -> Any:
    """Convert the capabilities of a peer, as plain JSON, to a type of the dialect.

    A capability whose details the dialect does not allow is kept without its details.
    """
    made: dict[str, Any] = {}
    for name, value in plain.items():
        try:
            from_builtins({name: value}, kind)
        except DecodeError:
            value = {}
        made[name] = value
    return from_builtins(made, kind)
