"""Repairs of results that break a rule of the protocol which Structs do not check.

https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching#time-to-live-ttl-field
https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion#complete-result
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from mcpspec.support.objects import is_array

__all__ = ["MAX_COMPLETIONS", "FindRepair", "Repair", "repair_finder"]

MAX_COMPLETIONS: Final = 100
"""Suggestions in one result of `completion/complete`."""


class Repair(NamedTuple):
    """A repair of one result."""

    text: str
    """The fault, and the value that is sent instead."""
    apply: Callable[[], None]


FindRepair: TypeAlias = Callable[[Any], Repair | None]
"""Returns the repair that a result of a method needs, or None for a result that is right."""


def _find_ttl_repair(result: Any) -> Repair | None:
    ttl = getattr(result, "ttl_ms", 0)
    if not isinstance(ttl, int | float) or ttl >= 0:
        return None
    return Repair(f"ttlMs must be at least 0, not {ttl}; 0 was sent", partial(setattr, result, "ttl_ms", 0))


def _find_completion_repair(result: Any) -> Repair | None:
    completion: Any = getattr(result, "completion", None)
    values: object = getattr(completion, "values", None)
    if not is_array(values) or len(values) <= MAX_COMPLETIONS:
        return None

    def cut() -> None:
        completion.values = values[:MAX_COMPLETIONS]
        completion.has_more = True
        if not isinstance(completion.total, int):
            completion.total = len(values)

    text = f"completion.values: {len(values)} suggestions; the first {MAX_COMPLETIONS} were sent"
    return Repair(text, cut)


def repair_finder(results: Iterable[type]) -> FindRepair | None:
    """Return the function that finds repairs for a method with these result types; None if none can be needed."""
    members = {name for kind in results for name in getattr(kind, "__struct_fields__", ())}
    if "ttl_ms" in members:
        return _find_ttl_repair
    return _find_completion_repair if "completion" in members else None
