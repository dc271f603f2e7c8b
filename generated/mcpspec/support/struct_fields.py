"""Fields of Pydantic models with a type of `structs`: validation, serialization, and a JSON Schema with definitions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Union, get_args, get_origin

import msgspec
from pydantic import Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema
from typing_extensions import TypedDict

from mcpspec.support import everyday_structs, structs
from mcpspec.support.attribute_docs import attribute_docs, class_doc
from mcpspec.support.errors import DecodeError
from mcpspec.support.objects import Member, spread_union
from mcpspec.support.structs import OpenObject, shape_of, to_builtins

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

__all__ = ["field_schema"]


def field_schema(kind: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
    """Return Pydantic's schema of a Struct, an open object, or a union without a tag."""
    # Everyday types read null as absence.
    from_builtins = everyday_structs.from_builtins if everyday_structs.is_everyday(kind) else structs.from_builtins
    return core_schema.no_info_wrap_validator_function(
        partial(_validate, kind, from_builtins),
        handler.generate_schema(_described(kind)),  # for the JSON Schema
        serialization=core_schema.plain_serializer_function_ser_schema(to_builtins),
    )


def _validate(kind: Any, from_builtins: Callable[[Any, Any], Any], value: Any, _: Any) -> Any:
    if isinstance(value, msgspec.Struct | OpenObject) and isinstance(value, kind):
        return value
    try:
        return from_builtins(value, kind)
    except DecodeError as error:
        path = tuple(_parts(error.path))
        fault = PydanticCustomError("mcp_type", "{reason}", {"reason": error.reason})
        details = InitErrorDetails(type=fault, loc=path, input=_value_at(value, path))
        raise ValidationError.from_exception_data(kind.__name__, [details]) from error


_PART = re.compile(r'\[(?P<index>\d+)\]|\[(?P<text>"(?:[^"\\]|\\.)*")\]|\.?(?P<name>[^.\[]+)')


def _parts(path: str) -> Iterator[int | str]:
    """Split the path of an error, such as `tools[0].name`, into its parts."""
    for match in _PART.finditer(path):
        if match["index"]:
            yield int(match["index"])
        else:
            yield match["name"] or json.loads(match["text"])


def _value_at(value: Any, path: tuple[int | str, ...]) -> Any:
    """Return the part of a value at a path, or the innermost part that has it if it is missing."""
    for part in path:
        try:
            value = value[part]
        except (LookupError, TypeError):
            break
    return value


@cache
def _described(kind: Any) -> Any:
    """Return a type that Pydantic knows, with the same members, docstrings and bounds."""
    shape = shape_of(kind)
    if shape is None:
        return Union[tuple(spread_union(kind))]  # noqa: UP007  # of a tuple
    docs = _docs_by_wire(kind)
    members = {member.wire: _described_member(member, docs.get(member.wire)) for member in shape.members}
    make: Any = TypedDict  # type checkers know only such classes that are written out
    made = make(kind.__name__, members)
    made.__pydantic_config__ = {"extra": "forbid" if shape.closed else "allow", "title": kind.__name__}
    made.__doc__ = class_doc(kind)
    made.__module__ = kind.__module__
    return made


def _docs_by_wire(kind: Any) -> dict[str, str]:
    """Return the docstrings of the members of a Struct or an open object, by their names on the wire."""
    if issubclass(kind, OpenObject):
        wires = {name: declared.wire for name, declared in kind.__attributes__.items()}
    else:
        wires = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
    return {wires.get(name, name): doc for name, doc in attribute_docs(kind).items()}


def _described_member(member: Member, doc: str | None) -> Any:
    described: Any = Annotated[_with_fields(member.hint), Field(description=doc)]
    return described if member.required else NotRequired[described]


_CONTAINERS = (list, dict)
_BOUNDS = ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern")


def _with_fields(hint: Any) -> Any:
    """Replace the bounds in a type, which are those of msgspec, with Pydantic's."""
    origin: Any = get_origin(hint)
    parts = get_args(hint)
    if origin is Annotated:
        base, *marks = parts
        bounds = [
            {name: limit for name in _BOUNDS if (limit := getattr(mark, name, None)) is not None} for mark in marks
        ]
        return Annotated[(_with_fields(base), *(Field(**each) for each in bounds))]
    if origin in (Union, UnionType):
        return Union[tuple(map(_with_fields, parts))]  # noqa: UP007  # of a tuple
    if origin in _CONTAINERS:
        return GenericAlias(origin, tuple(map(_with_fields, parts)))
    return hint
