"""Types that Pydantic decodes and encodes: its models, and types annotated with its validators."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec

from typedmcp_schemas.constraints import read_metadata
from typedmcp_schemas.custom_types import CustomType, SchemaOf, custom_type, type_name
from typedmcp_schemas.definitions import JsonSchema, reference_name
from typedmcp_schemas.error_text import format_path_part
from typedmcp_schemas.json_types import is_array, is_object
from typedmcp_schemas.keywords import LIST_KEYWORDS, SCHEMA_KEYWORDS
from typedmcp_schemas.reasons import describe_key
from typedmcp_schemas.records import parts_of
from typedmcp_schemas.values import LibraryError, UnsupportedTypeError, ValueConversionError, is_pydantic

__all__ = ["pydantic_input", "pydantic_output"]

_MAX_ERRORS: Final = 100
"""Errors of a value that are kept."""
_PLAIN: Final = (NoneType, bool, int, float, str)
"""Classes of defaults that JSON has."""
_VERBOSE: Final = r"^Input should be (?:a valid )?([^,]+)(,.*)?$"


def pydantic_input(hint: Any) -> CustomType:
    """Return a type that Pydantic decodes. Raises `UnsupportedTypeError` for a type that it does not know."""
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError

    try:
        adapter: Any = TypeAdapter(hint)
    except (PydanticUserError, NameError) as error:
        raise _unsupported(hint, error) from error

    def decode(value: object) -> Any:
        try:
            # As JSON, since strict validation accepts a string as a date only in JSON. Strict, so that one rule holds
            # for all classes: Pydantic's own rules take true for 1.
            return adapter.validate_json(msgspec.json.encode(value), strict=True)
        except ValidationError as error:
            raise _conversion_error(error) from None

    def describe(_: SchemaOf) -> JsonSchema:
        try:
            described = adapter.json_schema(schema_generator=_schema_generators()[0])
            return _with_tags(_without_titles(described, type_name(hint)))
        except PydanticUserError as error:
            raise _unsupported(hint, error) from error

    return custom_type(type_name(hint), decode, describe)


def pydantic_output(hint: Any) -> CustomType | None:
    """Return a type that Pydantic encodes: its `decode` takes a value and returns plain JSON.

    None if nothing in the type is Pydantic's, or if Pydantic does not know it.
    """
    if "pydantic" not in sys.modules or not _contains_pydantic(hint):
        return None
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError
    from pydantic_core import PydanticSerializationError

    try:
        adapter: Any = TypeAdapter(hint)
        described = adapter.json_schema(mode="serialization", schema_generator=_schema_generators()[1])
        schema = _without_titles(described, type_name(hint))
    except (PydanticUserError, NameError):
        return None

    def encode(value: object) -> Any:
        try:
            made = adapter.validate_python(value, from_attributes=True)
            return adapter.dump_python(made, mode="json", by_alias=True, warnings="error")
        except ValidationError as error:
            raise _conversion_error(error) from error
        except PydanticSerializationError as error:
            raise ValueConversionError(str(error).splitlines()[-1].strip()) from error

    return custom_type(type_name(hint), encode, lambda _: {**schema})


@cache
def _schema_generators() -> tuple[Any, Any]:
    """Return the classes that make schemas of arguments and of results.

    They leave out defaults that JSON cannot say, such as secrets, and for results the format of times that need not
    have a zone.
    """
    from pydantic.json_schema import GenerateJsonSchema
    from pydantic_core import SchemaValidator

    class ArgumentSchemas(GenerateJsonSchema):
        def default_schema(self, schema: Any) -> JsonSchema:
            made = super().default_schema(schema)
            value = schema.get("default")
            if "default" in made and type(value) not in _PLAIN:
                with suppress(Exception):  # a type that refers to others
                    read = SchemaValidator(schema["schema"]).validate_json(msgspec.json.encode(made["default"]))
                    if read != value:
                        del made["default"]
            return made

    class ResultSchemas(ArgumentSchemas):
        def datetime_schema(self, schema: Any) -> JsonSchema:
            return super().datetime_schema(schema) if schema.get("tz_constraint") == "aware" else {"type": "string"}

        def time_schema(self, schema: Any) -> JsonSchema:
            return super().time_schema(schema) if schema.get("tz_constraint") == "aware" else {"type": "string"}

    return ArgumentSchemas, ResultSchemas


def _without_titles(schema: Any, name: str = "") -> JsonSchema:
    """Return a schema without the titles that Pydantic makes of the names of classes and fields."""
    made: JsonSchema = {
        key: value for key, value in schema.items() if key != "title" or value not in (name, _title_of(name))
    }
    for key in ("properties", "$defs"):
        if key in made:
            made[key] = {each: _without_titles(inner, each) for each, inner in made[key].items()}
    for key, value in made.items():
        if key in SCHEMA_KEYWORDS and is_object(value):
            made[key] = _without_titles(value)
        elif key in LIST_KEYWORDS:
            made[key] = [_without_titles(inner) for inner in value]
    return made


def _with_tags(schema: JsonSchema) -> JsonSchema:
    """Require the tags of unions, also those with defaults: Pydantic does, and does not say so in its schema."""
    uses: dict[str, list[tuple[JsonSchema, list[str]]]] = {}
    _collect_uses(schema, [], uses)
    for name, found in uses.items():
        common = [tag for tag in found[0][1] if all(tag in tags for _, tags in found)]
        if name in schema.get("$defs", {}):
            _require(schema["$defs"][name], common)
            for reference, tags in found:  # of a model that is used without the union, too
                _require(reference, [tag for tag in tags if tag not in common])
    return schema


def _collect_uses(node: Any, tags: list[str], uses: dict[str, list[tuple[JsonSchema, list[str]]]]) -> None:
    """Find all references to definitions, each with the tags of the unions that it is an option of."""
    if is_array(node):
        for item in node:
            _collect_uses(item, [], uses)
    if not is_object(node):
        return
    if "$ref" in node:
        uses.setdefault(reference_name(node), []).append((node, tags))
    own = node.get("discriminator", {}).get("propertyName")
    for key, value in node.items():
        if key == "oneOf" and own is not None:
            for option in value:
                _collect_uses(option, [*tags, own], uses)
        elif key != "discriminator":
            _collect_uses(value, [], uses)


def _require(schema: JsonSchema, names: Sequence[str]) -> None:
    if missing := [name for name in names if name not in schema.get("required", ())]:
        schema["required"] = [*missing, *schema.get("required", ())]


def _title_of(name: str) -> str:
    return name.title().replace("_", " ").strip()


def _unsupported(hint: object, error: Exception) -> UnsupportedTypeError:
    return UnsupportedTypeError(f"{type_name(hint)}: {str(error).splitlines()[0]}")


def _conversion_error(error: Any) -> ValueConversionError:
    """Convert Pydantic's `ValidationError`: its first error, with the place, and all errors."""
    found = [*map(_read_error, error.errors(include_url=False, include_input=False)[:_MAX_ERRORS])]
    made = ValueConversionError(found[0].reason, "".join(map(format_path_part, found[0].place)))
    made.others = found
    return made


def _read_error(error: Any) -> LibraryError:
    place, kind = error["loc"], error["type"]
    reason = re.sub(_VERBOSE, r"expected \1", error["msg"].removeprefix("Value error, "))
    if kind == "string_pattern_mismatch":
        reason = f"expected string matching regex {error['ctx']['pattern']!r}"  # as msgspec says it
    if place[-1:] == ("[key]",):
        place, reason = place[:-2], describe_key(place[-2], reason)
    return LibraryError(place, kind, reason)


def _contains_pydantic(hint: object) -> bool:
    """Return whether Pydantic has to encode anything in a type."""
    for part in parts_of(hint):
        if is_pydantic(get_origin(part) or part):
            return True
        if get_origin(part) is Annotated and read_metadata(get_args(part)[1:]).needs_pydantic:
            return True
    return False
