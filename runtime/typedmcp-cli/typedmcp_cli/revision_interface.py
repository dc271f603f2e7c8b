"""The interface of a revision, read off its exact types: types as JSON Schema, methods and error codes."""

from __future__ import annotations

import sys
from inspect import isfunction
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from mcpspec import revision
from typedmcp.dialect.methods import Method
from typedmcp.errors import DecodeError
from typedmcp_cli.comparison.interfaces import InterfaceShape, MethodShape, Node

__all__ = ["read_revision"]

_NAMES: dict[Any, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null", list: "array", dict: "object",
}  # fmt: skip


def read_revision(version: str) -> InterfaceShape:
    """Read the interface of a revision. Raises `LookupError` for an unknown one."""
    module = revision(version)
    types = module.exact.structs
    names = {name: value for name in types.__all__ if not _is_helper(value := getattr(types, name))}
    objects = {name: kind for name, kind in names.items() if _is_object(name, kind)}
    # A class stands for each alias, so that members are described by the aliases that they use.
    markers = {name: type(name, (), {}) for name in names.keys() - objects.keys()}
    namespace: dict[str, Any] = {**vars(types), **markers}
    return InterfaceShape(
        types={name: _read_object(kind, namespace) if name in objects else _read(kind) for name, kind in names.items()},
        methods={name: _read_method(record.exact, names) for name, record in module.methods.METHODS.items()},
        codes={
            name: value for name in module.methods.__all__ if isinstance(value := getattr(module.methods, name), int)
        },
    )


def _is_helper(value: object) -> bool:
    return isfunction(value) or value is UNSET or value is UnsetType or value is DecodeError


def _is_object(name: str, kind: object) -> bool:
    return isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or _is_open(kind)) and kind.__name__ == name


def _is_open(kind: Any) -> bool:
    return hasattr(kind, "__attributes__")


def _read_object(kind: Any, namespace: dict[str, Any]) -> Node:
    """Return an object as JSON Schema, with its members by their names in JSON."""
    bases = {name: value for base in kind.__mro__ for name, value in vars(sys.modules[base.__module__]).items()}
    hints = get_type_hints(kind, globalns=bases | namespace, include_extras=True)
    if _is_open(kind):
        members = {name: (found.wire, found.required) for name, found in kind.__attributes__.items()}
    else:
        members = {field.name: (field.encode_name, field.required) for field in msgspec.structs.fields(kind)}
        if kind.__struct_config__.tag_field is not None:
            tag = kind.__struct_config__.tag_field
            members[tag] = tag, True
    others: dict[str, Any] = {"additionalProperties": {}} if _is_open(kind) else {}
    if not others and kind.__struct_config__.forbid_unknown_fields:
        others = {"additionalProperties": False}
    return {
        "type": "object",
        "properties": {json_name: _read(hints[name]) for name, (json_name, _) in members.items()},
        "required": [json_name for json_name, is_required in members.values() if is_required],
        **others,
    }


def _read(hint: Any) -> Node:
    """Return a type as JSON Schema, without the marker for absence."""
    if hint in _NAMES:
        return {"type": _NAMES[hint]}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is ClassVar:
        return _read(arguments[0])
    if origin is Annotated:
        kind = _read(arguments[0])
        return {**kind, **_read_bounds(arguments[1:], kind.get("type"))}
    if origin is Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": [*arguments]}
    if origin is list:
        return {"type": "array", "items": _read(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _read(arguments[1])}
    if origin in (Union, UnionType) or hasattr(hint, "__union__"):
        return _read_union(list(arguments) or _spread(hint))
    return {} if hint is Any else {"$ref": f"#/$defs/{hint.__name__}"}


def _spread(hint: Any) -> list[Any]:
    """List the members of a union, and of the unions in it."""
    spread = hint.__union__() if hasattr(hint, "__union__") else hint
    if get_origin(spread) in (Union, UnionType):
        return [leaf for member in get_args(spread) for leaf in _spread(member)]
    return [spread]


def _read_union(options: list[Any]) -> Node:
    nodes = [_read(option) for option in options if option is not UnsetType]
    # A JSON number is a float or an int in Python.
    numbers = [{**node, "type": "integer"} for node in nodes if node.get("type") == "number"]
    kept = [node for node in nodes if node not in numbers]
    return kept[0] if len(kept) == 1 else {"anyOf": kept}


def _read_bounds(annotations: tuple[Any, ...], kind: str | None) -> dict[str, Any]:
    length = {"array": "Items", "object": "Properties"}.get(str(kind), "Length")
    keys = {
        "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "pattern": "pattern",
        "multiple_of": "multipleOf", "min_length": f"min{length}", "max_length": f"max{length}",
    }  # fmt: skip
    return {
        keyword: value
        for annotation in annotations
        for name, keyword in keys.items()
        if (value := getattr(annotation, name, None)) is not None
    }


def _read_method(record: Method[Any, Any], names: dict[str, Any]) -> MethodShape:
    message, params, result = (
        next((name for name, value in names.items() if value is kind or value == kind), None)
        for kind in (record.message, record.params, record.result)
    )
    return MethodShape(record.sender, record.kind, message or "", params, record.params_required, result)
