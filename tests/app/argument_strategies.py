"""Arguments for a schema: valid ones, and mutations of them that may be valid or not."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from ipaddress import IPv4Address
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema  # pyright: ignore[reportUnknownVariableType]
from jsonschema import Draft202012Validator, FormatChecker

from mcpspec.support.objects import is_array, is_object

__all__ = ["mutations", "valid_arguments", "validator"]

Json: TypeAlias = dict[str, Any]

_MAX_REFERENCES: Final = 2
"""References to optional members that are followed."""

_MAX_ITEMS: Final = 3
"""Items in one container."""
_FORMAT_PREFIX: Final = "our-"
"""A prefix for formats, as hypothesis has other strategies under the same names."""

_DATES = st.dates().map(date.isoformat)
_TIMES = st.times().map(time.isoformat)
_DATETIMES = st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)
_DURATIONS = st.timedeltas(timedelta(0), timedelta(999)).map(lambda span: f"P{span.days}DT{span.seconds}S")
_FORMATS: Final[dict[str, tuple[st.SearchStrategy[str], Callable[[str], object]]]] = {
    "date": (_DATES, date.fromisoformat),
    "date-time": (_DATETIMES, lambda text: re.fullmatch(r".+T.+(Z|[+-]\d\d:\d\d)", text) or int(text)),
    "time": (_TIMES, time.fromisoformat),
    "duration": (_DURATIONS, lambda text: re.fullmatch(r"P\d+DT\d+[SH]", text) or int(text)),
    "uuid": (st.uuids().map(str), UUID),
    "decimal": (st.decimals(allow_nan=False, allow_infinity=False).map(str), Decimal),
    "path": (st.text(), str),
    "regex": (st.sampled_from(["", "a+", "^[a-z]$"]), re.compile),
    "ipv4": (st.ip_addresses(v=4).map(str), IPv4Address),
    "uri": (st.sampled_from(["http://a.org/", "https://b.org/c?d=e"]), lambda text: text.index("://")),
    "base64": (st.binary().map(lambda data: b64encode(data).decode()), lambda text: b64decode(text, validate=True)),
}
"""Formats, which JSON Schema does not check: a strategy, and a function that raises for invalid text."""


def _fits_format(read: Callable[[str], object], value: object) -> bool:
    if isinstance(value, str):
        read(value)
    return True


_checker = FormatChecker(formats=())
for _name, (_, _read) in _FORMATS.items():
    _checker.checks(_FORMAT_PREFIX + _name, raises=(ValueError, ArithmeticError, re.error))(
        partial(_fits_format, _read)
    )


def validator(schema: Json) -> Callable[[Json], bool]:
    """Return a function that checks arguments against a schema, with formats."""
    made: Any = Draft202012Validator(_with_custom_formats(schema), format_checker=_checker)
    return lambda arguments: made.is_valid(arguments)


def _with_custom_formats(schema: Any) -> Any:
    if is_array(schema):
        return [_with_custom_formats(item) for item in schema]
    if not is_object(schema):
        return schema
    made = {key: _with_custom_formats(value) for key, value in schema.items()}
    name = schema.get("contentEncoding") or schema.get("format")
    return {**made, "format": _FORMAT_PREFIX + name} if isinstance(name, str) and name in _FORMATS else made


def valid_arguments(schema: Json) -> st.SearchStrategy[Json]:
    """Return a strategy for valid arguments."""
    formats = {_FORMAT_PREFIX + name: strategy for name, (strategy, _) in _FORMATS.items()}
    narrow = _narrow(_with_custom_formats(schema), schema.get("$defs", {}), _MAX_REFERENCES)
    made = cast("st.SearchStrategy[Json]", from_schema(narrow, custom_formats=formats))
    return made.filter(validator(schema))


def _narrow(schema: Any, definitions: Json, depth: int) -> Any:
    """Return a narrower schema without references, in the older draft that hypothesis-jsonschema knows."""
    if is_array(schema):
        return [_narrow(item, definitions, depth) for item in schema]
    if not is_object(schema):
        return schema
    if "$ref" in schema:
        inner = _with_custom_formats(definitions[schema["$ref"].removeprefix("#/$defs/")])
        return _narrow(inner, definitions, depth - 1)
    most = max(_MAX_ITEMS, schema.get("minItems", 0), len(schema.get("required", ())))
    made: Json = {"maxItems": most, "maxProperties": most, **schema}
    if depth < 0:
        required = made.get("required", ())
        made["properties"] = {name: item for name, item in made.get("properties", {}).items() if name in required}
        made["anyOf"] = [option for option in made.get("anyOf", ()) if "$ref" not in str(option)]
        made["maxItems"] = made.get("minItems", 0)
        made = {key: value for key, value in made.items() if value not in ([], {})}
    if "prefixItems" in made:
        made["additionalItems"], made["items"] = made.get("items", True), made.pop("prefixItems")
    if "properties" in made:
        made.setdefault("additionalProperties", False)
    kept = made.keys() - {"$defs", "default", "discriminator", "examples", "properties"}
    narrow = {key: _narrow(made[key], definitions, depth) for key in sorted(kept)}
    if "properties" in made:
        narrow["properties"] = {name: _narrow(item, definitions, depth) for name, item in made["properties"].items()}
    return narrow


_REPLACEMENTS: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    7,
    -1,
    1.5,
    "",
    "text",
    "-1.5",
    [],
    {},
    [None],
    [["text"]],
    {"text": None},
)
"""Values that replace others."""
_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_LENGTHS: Final = ("minLength", "maxLength", "minItems", "maxItems")


def mutations(arguments: Json, schema: Json) -> Iterator[Json]:
    """Yield arguments with one mutation: another value, a missing one, or an additional one."""
    others = [*_REPLACEMENTS, *_edges(schema)]
    for name in arguments:
        yield {key: value for key, value in arguments.items() if key != name}
        for value in (*others, *_inner_mutations(arguments[name], others)):
            yield {**arguments, name: value}
    yield {**arguments, "unknown": None}


def _inner_mutations(value: Any, others: list[Any]) -> Iterator[Any]:
    """Yield a value with one mutation inside."""
    if is_object(value):
        yield {**value, "unknown": None}
        for name, item in value.items():
            yield {key: kept for key, kept in value.items() if key != name}
            for other in (*others, *_inner_mutations(item, others)):
                yield {**value, name: other}
    if is_array(value):
        yield [*value, *value, *value]
        for index, item in enumerate(value):
            yield value[:index] + value[index + 1 :]
            for other in (*others, *_inner_mutations(item, others)):
                yield [*value[:index], other, *value[index + 1 :]]


def _edges(schema: Any) -> Iterator[Any]:
    """Yield values at the limits in a schema, and just beyond."""
    for item in schema if is_array(schema) else schema.values() if is_object(schema) else ():
        yield from _edges(item)
    for key, limit in schema.items() if is_object(schema) else ():
        if key in _NUMBERS and not is_object(limit):
            yield from (limit - 1, limit, limit + 1, limit + 0.5)
        if key in _LENGTHS and not is_object(limit):
            yield from ("a" * (limit + 1), "a" * max(limit - 1, 0), [1] * (limit + 1), ["a"] * max(limit - 1, 0))
