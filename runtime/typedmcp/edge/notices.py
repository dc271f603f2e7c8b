"""Notifications to the client, as its revision has them."""

from __future__ import annotations

from functools import cache
from typing import Any

from typedmcp import dialect
from typedmcp.edge.convert import Converter, Lost
from typedmcp.edge.revisions import DIALECT, methods
from typedmcp.edge.rules import down

__all__ = ["older_notice"]


@cache
def _converter(method: str, revision: str) -> Converter | None:
    target: Any = methods(revision).METHODS.get(method)
    if target is None:
        return None
    return down(revision).between(dialect.methods.METHODS[method].params, target.params)


def older_notice(method: str, params: Any, revision: str, lost: Lost) -> Any:
    """The parameters of a notification, as a revision has them; what it lacks is named in `lost`."""
    convert = None if revision == DIALECT else _converter(method, revision)
    return params if convert is None else convert(params, lost)
