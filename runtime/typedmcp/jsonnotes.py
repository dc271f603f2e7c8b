"""Notes on types, as in `Annotated[int, Field(ge=1), "How many"]`: what they demand of a value, and say about it.

They may be msgspec's `Meta`, Pydantic's `Field`, `annotated_types`, `Doc`, or a text, which says what a value means.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from mcpspec._support.objects import is_object

__all__ = ["Notes", "applies", "keywords", "misfit", "read"]

_CONSTRAINTS: Final = {
    "ge": "ge", "gt": "gt", "le": "le", "lt": "lt", "multiple_of": "multiple_of", "min_length": "min_length",
    "max_length": "max_length", "pattern": "pattern", "regex": "pattern", "tz": "tz",
}  # fmt: skip
"""What constraints are called by `annotated_types` and Pydantic, and by msgspec."""

_ABOUT: Final = {
    "title": "title", "description": "description", "documentation": "description", "examples": "examples",
    "extra_json_schema": "extra_json_schema", "json_schema_extra": "extra_json_schema",
}  # fmt: skip
"""The same for what only a schema shows."""

_NUMERIC: Final = frozenset({"ge", "gt", "le", "lt", "multiple_of"})
_ORDERED: Final = (int, float, Decimal, date, time, timedelta)
_CHECKS: Final[Mapping[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "ge": (operator.ge, ">= {}"),
    "gt": (operator.gt, "> {}"),
    "le": (operator.le, "<= {}"),
    "lt": (operator.lt, "< {}"),
    "multiple_of": (lambda value, factor: not value % factor, "that's a multiple of {}"),
    "min_length": (lambda value, least: len(value) >= least, "of length >= {}"),
    "max_length": (lambda value, most: len(value) <= most, "of length <= {}"),
}
"""Constraints on what msgspec puts none on, in its words."""

_KEYWORDS: Final = {
    "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "multiple_of": "multipleOf",
}  # fmt: skip
_LENGTHS: Final = {"string": "Length", "array": "Items", "object": "Properties"}


@dataclass(slots=True)
class Notes:
    """What the notes on a type say, each thing by the name that `Meta` has for it."""

    constraints: dict[str, Any] = field(default_factory=dict[str, Any])
    about: dict[str, Any] = field(default_factory=dict[str, Any])
    predicates: list[Callable[[Any], Any]] = field(default_factory=list[Callable[[Any], Any]])
    """Functions that say whether a value will do."""
    by_pydantic: bool = False
    """Whether there are some that nobody but Pydantic understands."""

    @property
    def demands(self) -> bool:
        """Whether anything is demanded of a value."""
        return bool(self.constraints or self.predicates or self.by_pydantic)


def read(notes: Iterable[Any]) -> Notes:
    """Read notes; of two that say the same, the later one counts."""
    made = Notes()
    for note in notes:
        if isinstance(note, str):
            made.about["description"] = note
            continue
        _read_about(note, made.about)
        for part in _parts(note):
            _read_constraints(part, made)
    return made


def _read_about(note: Any, about: dict[str, Any]) -> None:
    for theirs, ours in _ABOUT.items():
        value = getattr(note, theirs, None)
        if value is None or callable(value):
            continue
        about[ours] = {**about.get(ours, {}), **value} if is_object(value) else value


def _parts(note: Any) -> Iterator[Any]:
    """A note, and those that are in it."""
    yield note
    yield from getattr(note, "metadata", ())
    if hasattr(note, "__is_annotated_types_grouped_metadata__"):
        yield from note


def _read_constraints(part: Any, into: Notes) -> None:
    for theirs, ours in _CONSTRAINTS.items():
        value = getattr(part, theirs, None)
        if value is not None and not callable(value):
            into.constraints[ours] = getattr(value, "pattern", value)
    if type(part).__name__ == "Predicate":
        into.predicates.append(part.func)
    into.by_pydantic = into.by_pydantic or _is_pydantic_only(part)


def _is_pydantic_only(part: Any) -> bool:
    if hasattr(part, "__get_pydantic_core_schema__"):
        return True
    if not type(part).__module__.startswith("pydantic"):
        return False
    if type(part).__name__ == "FieldInfo":
        return getattr(part, "discriminator", None) is not None
    said = {name for name, value in getattr(part, "__dict__", {}).items() if value is not None}
    return not said <= _CONSTRAINTS.keys()


def applies(constraint: str, kind: Any) -> bool:
    """Whether a constraint can be put on values of a class."""
    if not isinstance(kind, type) or issubclass(kind, bool | Enum):
        return False
    if constraint in _NUMERIC:
        return issubclass(kind, _ORDERED)
    if constraint == "tz":
        return issubclass(kind, datetime | time)
    return issubclass(kind, str if constraint == "pattern" else Sized | Iterable | Container)


def misfit(value: Any, constraints: Mapping[str, Any]) -> str | None:
    """What a value lacks, such as `>= 1`; None for one that has all that is demanded of it."""
    for name, bound in constraints.items():
        holds, words = _CHECKS[name]
        try:
            if holds(value, bound):
                continue
        except ArithmeticError:  # of a decimal that is no number, or is too large to be divided
            pass
        return words.format(bound)
    return None


def keywords(constraints: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """Constraints, as the schema of a type says them; those on dates it cannot."""
    made: dict[str, Any] = {}
    for name, bound in constraints.items():
        if name in _KEYWORDS:
            if isinstance(bound, int | float | Decimal):
                made[_KEYWORDS[name]] = float(bound) if isinstance(bound, Decimal) else bound
        elif unit := _LENGTHS.get(str(kind)):
            made[name.removesuffix("_length") + unit] = bound
    return made
