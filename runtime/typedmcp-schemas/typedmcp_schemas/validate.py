"""Validation against JSON Schemas that are given, not made from Python types.

Needs the extra `jsonschema`, which is jsonschema-rs. It knows JSON Schema 2020-12, which is the default, 2019-09, and
drafts 7, 6 and 4. `format` is checked where the draft says so.

Schemas are not trusted, since a client gets them from servers: references are not fetched, and a schema or a value that
could keep the validator busy for long is rejected. See `typedmcp_schemas.schema_cost` and
`typedmcp_schemas.pattern_cost`.
https://modelcontextprotocol.io/specification/2026-07-28/basic#schema-validation
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from math import inf
from typing import Any, Final

import msgspec

from typedmcp_schemas.definitions import JsonSchema
from typedmcp_schemas.error_text import clip, escape_unprintable, format_value
from typedmcp_schemas.examination import ValueFault, is_known
from typedmcp_schemas.lookahead import expand_lookahead
from typedmcp_schemas.pattern_cost import PatternMeter, find_patterns, pattern_options
from typedmcp_schemas.schema_cost import (
    META_SCHEMAS,
    ExternalReferenceError,
    SchemaCost,
    SchemaPath,
    SchemaRejectedError,
    UnsupportedDialectError,
    estimate_cost,
    format_path,
)

__all__ = [
    "ENCODING_ERRORS",
    "ExternalReferenceError",
    "SchemaRejectedError",
    "SchemaValidator",
    "UnsupportedDialectError",
    "can_validate",
    "compile_schema",
]  # fmt: skip

ENCODING_ERRORS = (ValueError, TypeError, OverflowError, RecursionError)
"""The exceptions for values that have no JSON form."""

_MAX_SCHEMA_BYTES: Final = 256 << 10
_MAX_SCHEMAS_PER_VALUE: Final = 10_000
"""Schemas that may apply to one value and the path below it."""
_MAX_PATTERN_STEPS: Final = 10_000
"""Steps that a pattern of a trusted schema may take on one string, if it has to backtrack."""
_PATTERN_HINT: Final = " (lookaround, backreferences and very large patterns are not supported)"

_COSTLY_SCHEMAS: Final = 100
"""With more schemas than this for one value, the size of values is limited."""
_MAX_WORK_BYTES: Final = 256 << 20
"""The limit then: bytes of the value, times schemas."""
_MAX_EXPLAINED_BYTES: Final = 64 << 10
"""Bytes of a value for which failed alternatives are explained: the validator keeps the value for each of them."""
_MAX_EXPLANATION_BYTES: Final = 4 << 20
"""The maximum number of bytes that the validator may keep for that."""

_MAX_FAULTS: Final = 20
"""Errors of one value that are read."""
_MAX_UNFOLDED: Final = 10
"""Unions within each other whose alternatives are looked at."""
_EXAMINED: Final = frozenset({
    "additionalProperties", "anyOf", "const", "enum", "exclusiveMaximum", "exclusiveMinimum", "maxItems", "maxLength",
    "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "oneOf", "propertyNames",
    "required", "type",
})  # fmt: skip
"""Keywords of faults that `examine` finds as well."""
_SHOWN_CHARACTERS: Final = 300
_DIALECTS: Final = frozenset(
    f"{scheme}:{META_SCHEMAS}{name}/schema"
    for scheme in ("http", "https")
    for name in ("/2020-12", "/2019-09", "-07", "-06", "-04")
)


@cache
def can_validate() -> bool:
    """Return whether values can be validated, that is, whether jsonschema-rs is installed."""
    return find_spec("jsonschema_rs") is not None


@dataclass(frozen=True, slots=True)
class SchemaValidator:
    """A compiled schema."""

    validator: Any
    max_explained_bytes: float
    """Bytes of a value up to which its errors are explained, which takes longer than finding that there are some."""
    max_bytes: float = inf
    """Bytes of a value up to which it is checked at all."""
    meter: PatternMeter | None = None
    """Measures the patterns of an untrusted schema that has some."""

    def find_error(self, value: object, name: str, otherwise: str = "does not fit its schema") -> str | None:
        """Return the first error of a value: `name.degrees: "warm" is not of type "number"`; None if it fits.

        `name` is the name of the value in the text. `otherwise` is the reason if finding the error would take too long.
        """
        try:
            if self.max_bytes < inf and len(msgspec.json.encode(value)) > self.max_bytes:
                return _with_place(name, f"has more than {self.max_bytes:.0f} bytes, too many for a schema so complex")
            if self.meter is not None and self.meter.is_too_slow(value):
                return _with_place(name, "the patterns of its schema take too long on it")
            if self.validator.is_valid(value):
                return None
            if self.max_explained_bytes == inf or len(msgspec.json.encode(value)) <= self.max_explained_bytes:
                self.validator.validate(value)
        except ENCODING_ERRORS as error:
            if hasattr(error, "instance_path"):  # otherwise the value is nested too deeply, or is not JSON
                path, reason = _read_error(error)
                return _with_place(format_path(name, path), reason)
        return _with_place(name, otherwise)

    def find_faults(self, value: object, known: Sequence[ValueFault]) -> list[ValueFault]:
        """Return the faults of a value that does not fit: those that `examine` has found, and those that it cannot."""
        faults = [*known]
        if self.max_explained_bytes < inf and len(msgspec.json.encode(value)) > self.max_explained_bytes:
            return faults
        for error in islice(self.validator.iter_errors(value), _MAX_FAULTS):
            for each in _unfold(error, 0):
                path, reason = _read_error(each)
                if each.kind.name == "required":  # also of `dependentRequired`
                    path, reason = (*path, each.kind.property), "required, but missing"
                fault = ValueFault.at(format_path("", path), reason)
                if fault not in faults and not (each.kind.name in _EXAMINED and is_known(fault.place, known)):
                    faults.append(fault)
        return faults


def _unfold(error: Any, depth: int) -> list[Any]:
    """Return the errors of the alternative that a value is closest to, if there is only one, or else the error."""
    options: list[list[Any]] = getattr(error.kind, "context", None) or []
    ranks = [(-min(len(each.instance_path) for each in option), len(option)) for option in options]
    if not ranks or ranks.count(min(ranks)) > 1 or depth == _MAX_UNFOLDED:
        return [error]
    return [inner for each in options[ranks.index(min(ranks))] for inner in _unfold(each, depth + 1)]


def compile_schema(schema: Mapping[str, Any] | bytes, *, is_trusted: bool = False) -> SchemaValidator:
    """Compile a schema, given as a mapping or as JSON text. The patterns of a trusted schema may have lookaround.

    Raises `SchemaRejectedError` for a schema that cannot be used, and if jsonschema-rs is not installed.
    """
    if not can_validate():
        raise SchemaRejectedError((), "jsonschema-rs is not installed: pip install 'typedmcp-schemas[jsonschema]'")
    library = import_module("jsonschema_rs")
    try:
        text = schema if isinstance(schema, bytes) else msgspec.json.encode(schema)
        parsed = _parse_schema(text) if is_trusted else expand_lookahead(_parse_schema(text))
        cost = estimate_cost(parsed)
        if cost.schemas > _MAX_SCHEMAS_PER_VALUE:
            raise SchemaRejectedError((), "too complex: too many of its parts apply to the same value")
        patterns = set[str]() if is_trusted else find_patterns(parsed)
        meter = PatternMeter.make(patterns, cost.patterns) if patterns else None
        options = library.FancyRegexOptions(backtrack_limit=_MAX_PATTERN_STEPS) if is_trusted else pattern_options()
        validator = library.validator_for(parsed, offline=True, pattern_options=options)
    except RecursionError:
        raise SchemaRejectedError((), "nested too deeply") from None
    except SchemaRejectedError:
        raise
    except library.ReferencingError as error:  # in a part that no value is checked against
        raise ExternalReferenceError(*_read_error(error)) from error
    except (ValueError, TypeError) as error:
        path, reason = _read_error(error)
        raise SchemaRejectedError(path, reason + _PATTERN_HINT * reason.endswith('not a "regex"')) from error
    max_bytes = _MAX_WORK_BYTES // cost.schemas if cost.schemas > _COSTLY_SCHEMAS else inf
    return SchemaValidator(validator, _max_explained_bytes(text, cost), max_bytes, meter)


def _max_explained_bytes(schema: bytes, cost: SchemaCost) -> float:
    """Return the maximum size of values whose errors are explained, for which the validator tries every option."""
    if cost.cycles > 1:
        return 0
    has_alternatives = b'"anyOf"' in schema or b'"oneOf"' in schema
    return min(_MAX_EXPLAINED_BYTES, _MAX_EXPLANATION_BYTES // cost.schemas) if has_alternatives else inf


def _parse_schema(text: bytes) -> JsonSchema:
    if len(text) > _MAX_SCHEMA_BYTES:
        raise SchemaRejectedError((), f"too large: {len(text)} bytes; the limit is {_MAX_SCHEMA_BYTES}")
    schema: JsonSchema = msgspec.json.decode(text)
    dialect = str(schema.get("$schema", ""))
    if dialect and dialect.removesuffix("#") not in _DIALECTS:
        raise UnsupportedDialectError(("$schema",), f"{format_value(dialect)} is not a supported dialect")
    return schema


def _read_error(error: Exception) -> tuple[SchemaPath, str]:
    """Return the place and the reason of a validator's error, on one short line."""
    text = str(getattr(error, "message", error))
    return tuple(getattr(error, "instance_path", ())), escape_unprintable(clip(text, _SHOWN_CHARACTERS))


def _with_place(place: str, text: str) -> str:
    place = place.removeprefix(".")
    return f"{place}: {text}" if place else text
