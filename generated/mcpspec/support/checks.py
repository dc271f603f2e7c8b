"""Check what a schema says of a value and no type of msgspec or Pydantic can, such as `uniqueItems`.

A check is a part of a JSON Schema. It is applied to parsed JSON that fits its type already, so that types without a
check cost nothing. A `$ref` in it names a type of the module that has the check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from mcpspec.support.error_text import clip, describe_mismatch, format_path_part, format_value
from mcpspec.support.objects import is_array, is_object

__all__ = ["CheckFault", "Fits", "check_value", "find_check_fault"]

Schema: TypeAlias = Mapping[str, Any]
Fits: TypeAlias = Callable[[Any, Any], bool]
"""Returns whether parsed JSON fits a type."""
Path: TypeAlias = tuple[str | int, ...]


class CheckFault(NamedTuple):
    """The place and the cause of a fault."""

    path: Path
    reason: str


class _At(NamedTuple):
    """A value, the place where it is, and what is needed to check it."""

    value: Any
    path: Path
    module: str
    fits: Fits

    def below(self, key: str | int) -> _At:
        return self._replace(value=self.value[key], path=(*self.path, key))

    def passes(self, schema: Schema | bool) -> bool:
        return _find(self, schema) is None

    def fault(self, reason: str) -> CheckFault:
        return CheckFault(self.path, reason)


_Test: TypeAlias = Callable[[_At, Any, Schema], "CheckFault | None"]
"""Tests a value by the value of a keyword, and by the keywords beside it."""


def find_check_fault(value: Any, schema: Schema, module: str, fits: Fits) -> CheckFault | None:
    """Return the first fault of parsed JSON by a check, whose references are types of a module."""
    return _find(_At(value, (), module, fits), schema)


def check_value(value: Any, schema: Schema, module: str, fits: Fits) -> None:
    """Raise `ValueError` for parsed JSON that a check rejects."""
    if (fault := find_check_fault(value, schema, module, fits)) is not None:
        place = "".join(map(format_path_part, fault.path)).removeprefix(".")
        raise ValueError(f"{place}: {fault.reason}" if place else fault.reason)


def _find(at: _At, schema: Schema | bool) -> CheckFault | None:
    if isinstance(schema, bool):
        return None if schema else at.fault("not allowed here")
    tests = _TESTS[_kind(at.value)]
    for keyword, limit in schema.items():
        if (test := tests.get(keyword)) is not None and (fault := test(at, limit, schema)) is not None:
            return fault
    return None


def _kind(value: Any) -> str:
    """Return the JSON type of a value. A number is an integer if it has no fraction, as JSON Schema says."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return _KINDS.get(value.__class__, "object" if is_object(value) else "array")


_KINDS = {str: "string", bool: "boolean", int: "integer", type(None): "null", list: "array", dict: "object"}


@cache
def _type_of(module: str, ref: str) -> Any:
    return getattr(import_module(module), ref.rpartition("/")[2])


def _frozen(value: Any) -> Any:
    """Return what equal JSON values have in common, and only those: `1` equals `1.0`, and not `true`."""
    if is_object(value):
        return "object", frozenset((key, _frozen(each)) for key, each in value.items())
    if is_array(value):
        return "array", tuple(map(_frozen, value))
    return (value,) if isinstance(value, bool) else value


def _text(schema: Any) -> str:
    return clip(json.dumps(schema), _MAX_CHARACTERS)


_MAX_CHARACTERS = 60
"""Longest text of a schema in an error."""


# Of any value


def _test_type(at: _At, types: str | Collection[str], _: Schema) -> CheckFault | None:
    names = [types] if isinstance(types, str) else [*types]
    kind = _kind(at.value)
    fits = kind in names or (kind == "integer" and "number" in names)
    return None if fits else at.fault(describe_mismatch(names, at.value))


def _test_enum(at: _At, values: Collection[Any], _: Schema) -> CheckFault | None:
    found = _frozen(at.value)
    if any(_frozen(value) == found for value in values):
        return None
    return at.fault(describe_mismatch([json.dumps(value) for value in values], at.value))


def _test_ref(at: _At, ref: str, _: Schema) -> CheckFault | None:
    fits = at.fits(at.value, _type_of(at.module, ref))
    return None if fits else at.fault(f"expected a value of {ref.rpartition('/')[2]}")


def _test_all(at: _At, schemas: Collection[Any], _: Schema) -> CheckFault | None:
    return next((fault for schema in schemas if (fault := _find(at, schema)) is not None), None)


def _test_any(at: _At, schemas: Collection[Any], _: Schema) -> CheckFault | None:
    faults = [_find(at, schema) for schema in schemas]
    return None if None in faults else max(filter(None, faults), key=lambda fault: len(fault.path))


def _test_one(at: _At, schemas: Collection[Any], _: Schema) -> CheckFault | None:
    count = sum(map(at.passes, schemas))
    return None if count == 1 else at.fault(f"expected to fit one of {len(schemas)} schemas, fits {count}")


def _test_not(at: _At, schema: Any, _: Schema) -> CheckFault | None:
    return at.fault(f"expected not to fit {_text(schema)}") if at.passes(schema) else None


def _test_if(at: _At, schema: Any, beside: Schema) -> CheckFault | None:
    return _find(at, beside.get("then" if at.passes(schema) else "else", True))


# Of numbers, strings, arrays and objects


def _test_multiple(at: _At, of: float, _: Schema) -> CheckFault | None:
    is_multiple = Fraction(str(at.value)) % Fraction(str(of)) == 0  # as written: 0.3 is a multiple of 0.1
    return None if is_multiple else at.fault(f"expected a multiple of {of:g}, got {format_value(at.value)}")


def _test_pattern(at: _At, pattern: str, _: Schema) -> CheckFault | None:
    fits = re.search(pattern, at.value)
    return None if fits else at.fault(f"expected a text that matches {pattern}, got {format_value(at.value)}")


def _test_unique(at: _At, is_unique: bool, _: Schema) -> CheckFault | None:
    if not is_unique or len({_frozen(item) for item in at.value}) == len(at.value):
        return None
    seen: set[Any] = set()
    for index, item in enumerate(at.value):
        if (found := _frozen(item)) in seen:
            return at.below(index).fault("expected items that differ, got one again")
        seen.add(found)
    return None


def _test_contains(at: _At, schema: Any, beside: Schema) -> CheckFault | None:
    count = sum(at.below(index).passes(schema) for index in range(len(at.value)))
    least, most = beside.get("minContains", 1), beside.get("maxContains", len(at.value))
    if least <= count <= most:
        return None
    bound = f"at least {least}" if count < least else f"at most {most}"
    return at.fault(f"expected {bound} items that fit {_text(schema)}, got {count}")


def _test_prefix(at: _At, schemas: Collection[Any], _: Schema) -> CheckFault | None:
    pairs = zip(range(len(at.value)), schemas, strict=False)
    return next((fault for index, schema in pairs if (fault := _find(at.below(index), schema)) is not None), None)


def _test_items(at: _At, schema: Any, beside: Schema) -> CheckFault | None:
    indexes = range(len(beside.get("prefixItems", ())), len(at.value))
    return next((fault for index in indexes if (fault := _find(at.below(index), schema)) is not None), None)


def _test_required(at: _At, names: Collection[str], _: Schema) -> CheckFault | None:
    missing = next((name for name in names if name not in at.value), None)
    return None if missing is None else CheckFault((*at.path, missing), "required, but missing")


def _test_dependent(at: _At, names: Mapping[str, Collection[str]], _: Schema) -> CheckFault | None:
    for name, others in names.items():
        for other in others:
            if name in at.value and other not in at.value:
                return CheckFault((*at.path, other), f"required beside {name}, but missing")
    return None


def _test_dependent_schemas(at: _At, schemas: Mapping[str, Any], _: Schema) -> CheckFault | None:
    return _test_all(at, [schema for name, schema in schemas.items() if name in at.value], {})


def _test_properties(at: _At, schemas: Mapping[str, Any], _: Schema) -> CheckFault | None:
    known = ((name, schema) for name, schema in schemas.items() if name in at.value)
    return next((fault for name, schema in known if (fault := _find(at.below(name), schema)) is not None), None)


def _test_patterns(at: _At, schemas: Mapping[str, Any], _: Schema) -> CheckFault | None:
    for pattern, schema in schemas.items():
        for name in at.value:
            if re.search(pattern, name) and (fault := _find(at.below(name), schema)) is not None:
                return fault
    return None


def _test_others(at: _At, schema: Any, beside: Schema) -> CheckFault | None:
    known: Schema = beside.get("properties", {})
    patterns: Schema = beside.get("patternProperties", {})
    for name in at.value:
        is_other = name not in known and not any(re.search(pattern, name) for pattern in patterns)
        if is_other and (fault := _find(at.below(name), schema)) is not None:
            return fault
    return None


def _test_names(at: _At, schema: Any, _: Schema) -> CheckFault | None:
    for name in at.value:
        if (fault := _find(at._replace(value=name, path=(*at.path, name)), schema)) is not None:
            return fault._replace(reason=f"not allowed as a name: {fault.reason}")
    return None


def _bound(fails: Callable[[Any, Any], bool], text: str, size: Callable[[Any], Any], unit: str = "") -> _Test:
    def test(at: _At, limit: Any, _: Schema) -> CheckFault | None:
        found = size(at.value)
        return at.fault(f"expected {text} {limit:g}{unit}, got {found:g}") if fails(found, limit) else None

    return test


def _lengths(noun: str, unit: str) -> dict[str, _Test]:
    return {
        f"min{noun}": _bound(lambda size, limit: size < limit, "at least", len, unit),
        f"max{noun}": _bound(lambda size, limit: size > limit, "at most", len, unit),
    }


_ANY: dict[str, _Test] = {
    "type": _test_type,
    "const": lambda at, value, beside: _test_enum(at, [value], beside),
    "enum": _test_enum,
    "$ref": _test_ref,
    "allOf": _test_all,
    "anyOf": _test_any,
    "oneOf": _test_one,
    "not": _test_not,
    "if": _test_if,
}
_NUMBERS: dict[str, _Test] = {
    "multipleOf": _test_multiple,
    "minimum": _bound(lambda value, limit: value < limit, "at least", lambda value: value),
    "maximum": _bound(lambda value, limit: value > limit, "at most", lambda value: value),
    "exclusiveMinimum": _bound(lambda value, limit: value <= limit, "more than", lambda value: value),
    "exclusiveMaximum": _bound(lambda value, limit: value >= limit, "less than", lambda value: value),
}
_ARRAYS: dict[str, _Test] = {
    "prefixItems": _test_prefix,
    "items": _test_items,
    "contains": _test_contains,
    "uniqueItems": _test_unique,
    **_lengths("Items", " items"),
}
_OBJECTS: dict[str, _Test] = {
    "required": _test_required,
    "properties": _test_properties,
    "patternProperties": _test_patterns,
    "additionalProperties": _test_others,
    "propertyNames": _test_names,
    "dependentRequired": _test_dependent,
    "dependentSchemas": _test_dependent_schemas,
    **_lengths("Properties", " members"),
}
_TESTS: dict[str, dict[str, _Test]] = {
    "null": _ANY,
    "boolean": _ANY,
    "integer": _ANY | _NUMBERS,
    "number": _ANY | _NUMBERS,
    "string": {**_ANY, "pattern": _test_pattern, **_lengths("Length", " characters")},
    "array": _ANY | _ARRAYS,
    "object": _ANY | _OBJECTS,
}
"""The tests of each JSON type, by keyword. Other keywords do not limit values of the type."""
