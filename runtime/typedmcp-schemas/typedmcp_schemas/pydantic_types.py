"""Types that Pydantic decodes and encodes: its models, and types annotated with its validators."""

from __future__ import annotations

import sys
from typing import Annotated, Any, get_args, get_origin

import msgspec

from typedmcp_schemas.constraints import read_metadata
from typedmcp_schemas.custom_types import CustomType, SchemaOf, custom_type, type_name
from typedmcp_schemas.definitions import JsonSchema
from typedmcp_schemas.error_text import format_path_part
from typedmcp_schemas.json_types import is_object
from typedmcp_schemas.keywords import LIST_KEYWORDS, SCHEMA_KEYWORDS
from typedmcp_schemas.reasons import describe_key
from typedmcp_schemas.records import parts_of
from typedmcp_schemas.values import UnsupportedTypeError, ValueConversionError, is_pydantic

__all__ = ["pydantic_input", "pydantic_output"]


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
            return _without_titles(adapter.json_schema(), type_name(hint))
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
        schema = _without_titles(adapter.json_schema(mode="serialization"), type_name(hint))
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


def _title_of(name: str) -> str:
    return name.title().replace("_", " ").strip()


def _unsupported(hint: object, error: Exception) -> UnsupportedTypeError:
    return UnsupportedTypeError(f"{type_name(hint)}: {str(error).splitlines()[0]}")


def _conversion_error(error: Any) -> ValueConversionError:
    """Convert Pydantic's `ValidationError`: its first error, with the place."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place, reason = first["loc"], first["msg"]
    if place[-1:] == ("[key]",):
        place, reason = place[:-2], describe_key(place[-2], reason)
    return ValueConversionError(reason, "".join(map(format_path_part, place)))


def _contains_pydantic(hint: object) -> bool:
    """Return whether Pydantic has to encode anything in a type."""
    for part in parts_of(hint):
        if is_pydantic(get_origin(part) or part):
            return True
        if get_origin(part) is Annotated and read_metadata(get_args(part)[1:]).needs_pydantic:
            return True
    return False
