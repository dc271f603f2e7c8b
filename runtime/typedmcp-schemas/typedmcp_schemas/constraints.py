"""Metadata of types, as in `Annotated[int, Field(ge=1), "the number of days"]`: constraints and annotations.

Metadata may be msgspec's `Meta`, Pydantic's `Field`, `annotated_types`, `Doc`, or a string, which is a description.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sized
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import msgspec

from typedmcp_schemas.json_types import is_object

__all__ = ["TypeMetadata", "find_violation", "is_applicable", "read_metadata", "schema_keywords"]

_CONSTRAINTS: Final = {
    "ge": "ge", "gt": "gt", "le": "le", "lt": "lt", "multiple_of": "multiple_of", "min_length": "min_length",
    "max_length": "max_length", "pattern": "pattern", "regex": "pattern", "tz": "tz",
}  # fmt: skip
"""Constraints: the attribute in `annotated_types`, Pydantic and msgspec, and its name in `Meta`."""

_ANNOTATIONS: Final = {
    "title": "title", "description": "description", "documentation": "description", "examples": "examples",
    "extra_json_schema": "extra_json_schema", "json_schema_extra": "extra_json_schema",
}  # fmt: skip
"""The same for annotations, which appear only in the schema."""

_NUMERIC: Final = frozenset({"ge", "gt", "le", "lt", "multiple_of"})
_ORDERED: Final = (int, float, Decimal, date, time, timedelta)
_CHECKS: Final[Mapping[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "ge": (operator.ge, ">= {}"),
    "gt": (operator.gt, "> {}"),
    "le": (operator.le, "<= {}"),
    "lt": (operator.lt, "< {}"),
    "multiple_of": (lambda value, factor: not value % factor, "that's a multiple of {}"),
    "min_length": (lambda value, bound: len(value) >= bound, "of length >= {}"),
    "max_length": (lambda value, bound: len(value) <= bound, "of length <= {}"),
}
"""Checks for types that msgspec cannot constrain, worded like msgspec's own messages."""

_KEYWORDS: Final = {
    "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "multiple_of": "multipleOf",
}  # fmt: skip
_LENGTH_SUFFIXES: Final = {"string": "Length", "array": "Items", "object": "Properties"}


class TypeMetadata(msgspec.Struct):
    """The metadata of one type, under the names that `Meta` uses."""

    constraints: dict[str, Any] = {}
    annotations: dict[str, Any] = {}
    """Title, description, examples and further members of the schema."""
    predicates: list[Callable[[Any], Any]] = []
    """Functions that return whether a value is accepted."""
    needs_pydantic: bool = False
    """True if there is metadata that only Pydantic understands, such as a validator."""

    @property
    def is_restrictive(self) -> bool:
        """Return whether the metadata restricts values."""
        return bool(self.constraints or self.predicates or self.needs_pydantic)


def read_metadata(metadata: Iterable[object]) -> TypeMetadata:
    """Read the metadata of a type. A later item overrides an earlier one of the same kind."""
    made = TypeMetadata()
    for item in metadata:
        if isinstance(item, str):
            made.annotations["description"] = item
            continue
        _read_annotations(item, made.annotations)
        for part in _flatten(item):
            _read_constraints(part, made)
    return made


def _read_annotations(item: object, annotations: dict[str, Any]) -> None:
    for attribute, name in _ANNOTATIONS.items():
        value = getattr(item, attribute, None)
        if value is None or callable(value):
            continue
        annotations[name] = {**annotations.get(name, {}), **value} if is_object(value) else value


def _flatten(item: Any) -> Iterator[Any]:
    """Yield an item, and the items within it."""
    yield item
    yield from getattr(item, "metadata", ())
    if hasattr(item, "__is_annotated_types_grouped_metadata__"):
        yield from item


def _read_constraints(item: Any, into: TypeMetadata) -> None:
    for attribute, name in _CONSTRAINTS.items():
        value = getattr(item, attribute, None)
        if value is not None and not callable(value):
            into.constraints[name] = getattr(value, "pattern", value)
    if type(item).__name__ == "Predicate":
        into.predicates.append(item.func)
    into.needs_pydantic = into.needs_pydantic or _is_pydantic_only(item)


def _is_pydantic_only(item: object) -> bool:
    if hasattr(item, "__get_pydantic_core_schema__"):
        return True
    if not type(item).__module__.startswith("pydantic"):
        return False
    if type(item).__name__ == "FieldInfo":
        return getattr(item, "discriminator", None) is not None
    names = {name for name, value in getattr(item, "__dict__", {}).items() if value is not None}
    return not names <= _CONSTRAINTS.keys()


def is_applicable(constraint: str, kind: object) -> bool:
    """Return whether a constraint can restrict values of a class."""
    if not isinstance(kind, type) or issubclass(kind, bool | Enum):
        return False
    if constraint in _NUMERIC:
        return issubclass(kind, _ORDERED)
    if constraint == "tz":
        return issubclass(kind, datetime | time)
    return issubclass(kind, str if constraint == "pattern" else Sized | Iterable | Container)


def find_violation(value: Any, constraints: Mapping[str, Any]) -> str | None:
    """Return the first constraint that a value violates, such as `>= 1`, or None."""
    for name, bound in constraints.items():
        holds, words = _CHECKS[name]
        try:
            if holds(value, bound):
                continue
        except ArithmeticError:  # of a decimal that is not a number, or too large to be divided
            pass
        return words.format(bound)
    return None


def schema_keywords(constraints: Mapping[str, Any], kind: object) -> dict[str, Any]:
    """Return constraints as keywords for a schema with the type `kind`. JSON Schema has no keywords for dates."""
    made: dict[str, Any] = {}
    for name, bound in constraints.items():
        if name in _KEYWORDS:
            if isinstance(bound, int | float | Decimal):
                made[_KEYWORDS[name]] = float(bound) if isinstance(bound, Decimal) else bound
        elif suffix := _LENGTH_SUFFIXES.get(str(kind)):
            made[name.removesuffix("_length") + suffix] = bound
    return made
