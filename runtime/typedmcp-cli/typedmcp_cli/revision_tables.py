"""Tables of the definitions of a revision: types, members, methods and error codes, each described in text."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from inspect import isfunction
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from mcpspec import revision
from typedmcp.dialect.methods import Method
from typedmcp.errors import DecodeError

__all__ = ["RevisionTables", "read_tables"]

_NAMES: dict[Any, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null", list: "array", dict: "object",
    Any: "any",
}  # fmt: skip
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than", "min_length": "length at least",
           "max_length": "length at most", "pattern": "pattern"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RevisionTables:
    """The definitions of a revision, as tables from names to descriptions."""

    types: dict[str, str]
    members: dict[str, str]
    """By `Type.member`."""
    methods: dict[str, str]
    codes: dict[str, str]


def read_tables(version: str) -> RevisionTables:
    """Read the tables of a revision off its exact types."""
    module = revision(version)
    types = module.exact.structs
    names = {name: value for name in types.__all__ if not _is_helper(value := getattr(types, name))}
    objects = {name: kind for name, kind in names.items() if _is_object(name, kind)}
    # A class stands for each alias, so that members are described by the aliases that they use.
    markers = {name: type(name, (), {}) for name in names.keys() - objects.keys()}
    namespace: dict[str, Any] = {**vars(types), **markers}
    members = {name: _describe_members(kind, namespace) for name, kind in objects.items()}
    return RevisionTables(
        types={name: _describe_object(kind) if name in objects else _describe(kind) for name, kind in names.items()},
        members={f"{name}.{member}": text for name, found in members.items() for member, text in found.items()},
        methods={name: _describe_method(record) for name, record in module.methods.METHODS.items()},
        codes={
            name: str(value)
            for name in module.methods.__all__
            if isinstance(value := getattr(module.methods, name), int)
        },
    )


def _is_helper(value: object) -> bool:
    return isfunction(value) or value is UNSET or value is UnsetType or value is DecodeError


def _is_object(name: str, kind: object) -> bool:
    return isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or _is_open(kind)) and kind.__name__ == name


def _is_open(kind: Any) -> bool:
    return hasattr(kind, "__attributes__")


def _describe_object(kind: Any) -> str:
    if _is_open(kind):
        return "open object"
    return "closed object" if kind.__struct_config__.forbid_unknown_fields else "object"


def _describe_members(kind: Any, namespace: dict[str, Any]) -> dict[str, str]:
    """Describe the members of an object, by their names in JSON."""
    bases = {name: value for base in kind.__mro__ for name, value in vars(sys.modules[base.__module__]).items()}
    hints = get_type_hints(kind, globalns=bases | namespace, include_extras=True)
    if _is_open(kind):
        members = {name: (found.wire, found.required) for name, found in kind.__attributes__.items()}
    else:
        members = {field.name: (field.encode_name, field.required) for field in msgspec.structs.fields(kind)}
        if kind.__struct_config__.tag_field is not None:
            tag = kind.__struct_config__.tag_field
            members[tag] = tag, True
    return {
        json_name: _describe(hints[name]) + ("" if is_required else ", optional")
        for name, (json_name, is_required) in members.items()
    }


def _describe(hint: Any) -> str:
    """Describe a type, without the marker for absence."""
    if hint in _NAMES:
        return _NAMES[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is ClassVar:
        return _describe(arguments[0])
    if origin is Annotated:
        return f"{_describe(arguments[0])}{_describe_bounds(arguments[1:])}"
    if origin is Literal:
        return " | ".join(json.dumps(value) for value in arguments)
    if origin is list:
        return f"list of {_describe_grouped(arguments[0])}"
    if origin is dict:
        return f"map of {_describe_grouped(arguments[1])}" if arguments[1] is not Any else "object"
    if origin in (Union, UnionType) or hasattr(hint, "__union__"):
        return _describe_union(list(arguments) or _spread(hint))
    return str(getattr(hint, "__name__", hint))


def _spread(hint: Any) -> list[Any]:
    """List the members of a union, and of the unions in it."""
    spread = hint.__union__() if hasattr(hint, "__union__") else hint
    if get_origin(spread) in (Union, UnionType):
        return [leaf for member in get_args(spread) for leaf in _spread(member)]
    return [spread]


def _describe_grouped(hint: Any) -> str:
    text = _describe(hint)
    return f"({text})" if " | " in text else text


def _describe_union(options: list[Any]) -> str:
    texts = [_describe(option) for option in options if option is not UnsetType]
    # A JSON number is a float or an int in Python.
    kept = [text for text in texts if text.replace("integer", "number", 1) not in texts or not text.startswith("int")]
    return " | ".join(dict.fromkeys(kept))


def _describe_bounds(annotations: tuple[Any, ...]) -> str:
    texts = [
        f"{words} {value}"
        for annotation in annotations
        for name, words in _BOUNDS.items()
        if (value := getattr(annotation, name, None)) is not None
    ]
    return f" ({', '.join(texts)})" if texts else ""


def _describe_method(record: Method[Any, Any]) -> str:
    sender = {"client": "client", "server": "server", "both": "client or server"}[record.sender]
    kind = {"input": "input request", "request": "request", "notification": "notification"}[record.kind]
    params = "no params" if record.params is NoneType else _describe(record.params)
    optional = "" if record.params_required or record.params is NoneType else ", optional"
    result = "" if record.kind == "notification" else f" -> {_describe(record.result)}"
    return f"{sender} {kind}, {params}{optional}{result}"
