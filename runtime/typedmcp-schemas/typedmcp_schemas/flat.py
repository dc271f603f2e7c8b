"""Fields of flat objects, as forms have them: texts, numbers, booleans and lists of texts, with choices and bounds.

A `FlatField` is made of the schema of a type. `find_field_fault` compares a value with a field, without a validator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Final

from typedmcp_schemas.definitions import JsonSchema, reference_name
from typedmcp_schemas.error_text import describe_mismatch, format_value
from typedmcp_schemas.json_types import is_array, is_object

__all__ = ["FlatField", "find_field_fault"]

_KEPT_KEYWORDS: Final = (
    "title", "description", "default", "type", "enum", "minimum", "maximum", "minLength", "maxLength", "minItems",
    "maxItems",
)  # fmt: skip
"""Keywords that mean the same in forms as in schemas."""
_EXCLUSIVE_BOUNDS: Final = (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1))


class FlatField:
    """The schema of one field, without references, and without null, since optional fields may be omitted."""

    def __init__(self, schema: JsonSchema, definitions: Mapping[str, Any]) -> None:
        self.is_optional: bool = False
        self._choices: dict[str, Any] = {}
        """Values by the text that forms show for them."""
        self.schema: JsonSchema = self._simplify(schema, definitions)
        if "items" in self.schema:
            self.schema["items"] = self._simplify(self.schema["items"], definitions)
        default = self.schema.pop("default", None)
        if default is not None:
            texts = [str(item) for item in default] if is_array(default) else str(default)
            self.schema["default"] = texts if self._choices else default

    def value_of(self, answer: object) -> Any:
        """Return the value that a chosen string stands for."""
        return self._choices.get(answer, answer) if isinstance(answer, str) else answer

    def _simplify(self, schema: JsonSchema, definitions: Mapping[str, Any]) -> JsonSchema:
        """Rewrite a schema with the keywords that forms allow."""
        annotations: JsonSchema = {key: schema[key] for key in ("title", "description", "default") if key in schema}
        if name := reference_name(schema):
            inner = {**definitions[name]}
            inner.pop("title", None)  # the name of a class
            return {**self._simplify(inner, definitions), **annotations}
        options: Any = schema.get("anyOf", ())
        others = [option for option in options if option != {"type": "null"}]
        self.is_optional = self.is_optional or len(others) < len(options)
        if len(others) == 1:
            return {**self._simplify(others[0], definitions), **annotations}
        made = {key: value for key, value in schema.items() if key in _KEPT_KEYWORDS}
        for exclusive, inclusive, step in _EXCLUSIVE_BOUNDS:
            if exclusive in schema:
                made[inclusive] = schema[exclusive] + (step if made.get("type") == "integer" else 0)
        if schema.get("format") in _FORMATS:
            made["format"] = schema["format"]
        if is_array(made.get("type")):  # a number that may also be text
            made["type"] = "number"
        if is_object(schema.get("items")):
            made["items"] = schema["items"]
        return self._with_choices(made) if is_array(made.get("enum")) else made

    def _with_choices(self, schema: JsonSchema) -> JsonSchema:
        self.is_optional = self.is_optional or None in schema["enum"]
        self._choices = {str(value): value for value in schema["enum"] if value is not None}
        return {**schema, "type": "string", "enum": [*self._choices]}


def find_field_fault(field: Mapping[str, Any], value: object) -> str | None:
    """Return what is wrong with the value of one field; None if it fits the field's schema."""
    kind = field.get("type", "string")
    if kind == "array":
        return _find_list_fault(field, value)
    has_kind = _KINDS.get(kind)
    if has_kind is not None and not has_kind(value):
        return describe_mismatch([str(kind)], value)
    if isinstance(value, str):
        return (
            _find_choice_fault(field, value)
            or _find_bound_fault(len(value), field, "Length", " characters")
            or _find_format_fault(field, value)
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _find_bound_fault(value, field, "imum", "")
    return None


def _find_list_fault(field: Mapping[str, Any], value: object) -> str | None:
    if not is_array(value):
        return describe_mismatch(["array"], value)
    items: Any = field.get("items")
    for item in value:
        if not isinstance(item, str):
            return describe_mismatch(["string"], item)
        if is_object(items) and (fault := _find_choice_fault(items, item)) is not None:
            return fault
    return _find_bound_fault(len(value), field, "Items", " values")


def _find_choice_fault(field: Mapping[str, Any], value: str) -> str | None:
    options: Any = field.get("oneOf", field.get("anyOf"))
    choices: Any = [option.get("const") for option in options] if is_array(options) else field.get("enum")
    if not is_array(choices) or value in choices:
        return None
    return describe_mismatch([format_value(choice) for choice in choices], value)


def _find_bound_fault(size: float, field: Mapping[str, Any], bound: str, unit: str) -> str | None:
    """Check `minItems` and `maxItems`, `minLength` and `maxLength`, or `minimum` and `maximum`."""
    least, most = field.get(f"min{bound}"), field.get(f"max{bound}")
    if least is not None and size < least:
        return f"expected at least {least}{unit}"
    if most is not None and size > most:
        return f"expected at most {most}{unit}"
    return None


def _find_format_fault(field: Mapping[str, Any], value: str) -> str | None:
    has_format = _FORMATS.get(field.get("format", ""))
    if has_format is None or has_format(value):
        return None
    return f"expected a text of the format {field['format']}, got {format_value(value)}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    """Return whether JSON Schema counts a value as an integer: 1.0 is one."""
    return _is_number(value) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")

_KINDS: Final[Mapping[str, Callable[[object], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": _is_number,
}
_FORMATS: Final[Mapping[str, Callable[[str], object]]] = {
    "date": lambda text: _DATE.fullmatch(text) is not None and _parses(date.fromisoformat, text),
    # Browsers give no offset in forms, so it may be missing.
    "date-time": lambda text: _DATE_TIME.match(text) is not None and _parses(datetime.fromisoformat, text),
    "email": _EMAIL.fullmatch,
    "uri": _URI.fullmatch,
}
