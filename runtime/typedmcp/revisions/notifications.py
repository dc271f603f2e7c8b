"""Conversion of server notifications between the dialect and older revisions."""

from __future__ import annotations

from functools import cache
from typing import Any

from mcpspec.support.converters import Converter, DroppedFields
from typedmcp import dialect
from typedmcp.revisions.conversions import downgrader
from typedmcp.revisions.features import DIALECT, methods_of

__all__ = ["downgrade_notification"]


@cache
def _converter(method: str, revision: str) -> Converter | None:
    target: Any = methods_of(revision).METHODS.get(method)
    if method not in dialect.methods.METHODS:  # of a package that extends the protocol
        return None
    if target is None:
        return lambda value, lost: lost.append(method)  # noqa: ARG005  # the value has no place
    found: Converter | None = downgrader(revision).method_between(dialect.methods.METHODS[method].params, target.params)
    return found


def downgrade_notification(method: str, params: Any, revision: str, dropped: DroppedFields) -> Any:
    """Convert the parameters of a notification to a revision, or return None if the revision lacks the notification.

    Append to `dropped` what the revision lacks.
    """
    convert = None if revision == DIALECT else _converter(method, revision)
    return params if convert is None else convert(params, lost=dropped)
