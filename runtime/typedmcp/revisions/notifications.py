"""Conversion of server notifications between the dialect and older revisions."""

from __future__ import annotations

from functools import cache
from typing import Any

from typedmcp import dialect
from typedmcp.revisions.convert import Converter, DroppedFields
from typedmcp.revisions.features import DIALECT, methods_of
from typedmcp.revisions.rules import downgrader

__all__ = ["downgrade_notification"]


@cache
def _converter(method: str, revision: str) -> Converter | None:
    target: Any = methods_of(revision).METHODS.get(method)
    if target is None:
        return None
    return downgrader(revision).between(dialect.methods.METHODS[method].params, target.params)


def downgrade_notification(method: str, params: Any, revision: str, dropped: DroppedFields) -> Any:
    """Convert the parameters of a notification to a revision. Append the members that it lacks to `dropped`."""
    convert = None if revision == DIALECT else _converter(method, revision)
    return params if convert is None else convert(params, dropped)
