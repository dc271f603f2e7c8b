"""Explanations of conversion errors, with the place: `days["next week"]: expected integer, got string`.

The schema says what does not fit, in the same words for all classes and libraries. Only what no schema says, such as
the checks of a class, is in the words of the library.
"""

from __future__ import annotations

from msgspec import UNSET

from typedmcp_schemas.adapt import schema_of
from typedmcp_schemas.examination import NOT_EXAMINED, examine
from typedmcp_schemas.reasons import describe_error, shorten
from typedmcp_schemas.values import ValueConversionError

__all__ = ["explain"]


def explain(error: BaseException, place: str = "") -> str:
    """Return the place and the reason of a conversion error: `forecast.days: expected integer, got string`.

    `place` is the name of the whole value.
    """
    if isinstance(error, ValueConversionError) and error.hint is not UNSET:
        try:
            faults = examine(error.value, schema_of(error.hint), place, is_strict=True).faults
        except (TypeError, NameError, RecursionError):  # the type has no schema
            faults = ()
        if faults and faults[0] != NOT_EXAMINED:
            return shorten(faults[0])
    return describe_error(error, place)
