"""Arguments that do not fit a function: all faults in one text, and repairs.

Used only after the exact conversion has failed, so that correct arguments cost nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mcpspec.support.error_text import clip, format_path_part
from typedmcp.integers import to_integers
from typedmcp.jsonschema.adapt import schema_of
from typedmcp.jsonschema.examine import Examined, TooMuchWorkError, WorkBudget, examine
from typedmcp.jsonschema.explain import explain
from typedmcp.jsonschema.values import ValueConversionError, convert

__all__ = ["NOT_EXAMINED", "ArgumentError", "examine_argument", "join_faults", "join_repairs"]

_MAX_FAULTS: Final = 20
_MAX_FAULT_CHARACTERS: Final = 1000
_MAX_REPAIRS: Final = 10
_FAULT_STEPS: Final = 20
"""Steps that the conversions of an argument that does not fit are worth."""
NOT_EXAMINED: Final = "further arguments were not examined"
"""The fault of calls whose arguments would need too much work."""


class ArgumentError(ValueError):
    """The arguments do not fit the function. The text has a line for each fault, with the name of the argument."""


def join_faults(faults: Sequence[str]) -> str:
    """Return all faults of a call in one text of bounded length, one on each line."""
    found = [fault for fault in faults if fault != NOT_EXAMINED]
    lines = [clip(fault, _MAX_FAULT_CHARACTERS) for fault in found[:_MAX_FAULTS]]
    if len(found) > _MAX_FAULTS:
        lines.append(f"and {len(found) - _MAX_FAULTS} more")
    return "\n".join([*lines, NOT_EXAMINED] if len(found) < len(faults) else lines)


def join_repairs(repairs: Sequence[str]) -> str:
    """Return all repairs of a call on one line, with the number of those that are left out."""
    more = f"; and {len(repairs) - _MAX_REPAIRS} more" if len(repairs) > _MAX_REPAIRS else ""
    return "; ".join(repairs[:_MAX_REPAIRS]) + more


def _keep(value: Any) -> Any:
    return value


def examine_argument(value: object, hint: object, name: str, budget: WorkBudget, *, is_strict: bool) -> Examined:
    """Return an argument, repaired if it does not fit its type, with its faults. Raises `TooMuchWorkError`."""
    budget.spend(1)
    place = format_path_part(name)
    fault: Exception = ValueConversionError()
    for prepare in (_keep, to_integers):
        try:
            given = prepare(value)
            convert(given, hint)
        except (ValueConversionError, RecursionError) as error:
            fault = error
        else:
            return Examined(given)
    budget.spend(_FAULT_STEPS)
    try:
        found = examine(value, schema_of(hint), place, is_strict=is_strict, budget=budget)
    except TooMuchWorkError:
        return Examined(value, [explain(fault, place)])
    if found.repairs:
        try:
            convert(found.value, hint)
        except (ValueConversionError, RecursionError) as error:
            fault = error
        else:
            return found._replace(faults=())
    return found if found.faults else Examined(value, [explain(fault, place)])
