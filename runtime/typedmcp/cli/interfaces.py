"""A revision as tables of name and text: its types, their members, its methods and error codes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from inspect import isfunction
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from mcpspec import revision
from mcpspec._support import structs as support
from mcpspec._support.errors import DecodeError
from mcpspec._support.methods import Method
from mcpspec._support.objects import leaves
from mcpspec._support.structs import OpenObject
from mcpspec._support.words import KINDS

__all__ = ["Interface", "interface"]

_NAMES: dict[Any, str] = {**KINDS, Any: "any"}
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than", "min_length": "length at least",
           "max_length": "length at most", "pattern": "pattern"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Interface:
    """Everything of a revision that may change, one table for each kind."""

    types: dict[str, str]
    members: dict[str, str]
    methods: dict[str, str]
    codes: dict[str, str]


def interface(version: str) -> Interface:
    """The tables of a revision."""
    module = revision(version)
    names = {name: value for name in module.structs.__all__ if not _is_helper(value := getattr(module.structs, name))}
    objects = {name: kind for name, kind in names.items() if _is_object(name, kind)}
    # In the place of each alias stands a class of its name, so that members are told by the names that they use.
    markers = {name: type(name, (), {}) for name in names.keys() - objects.keys()}
    space: dict[str, Any] = {**vars(support), **vars(module.structs), **markers}
    members = {name: _members(kind, space) for name, kind in objects.items()}
    return Interface(
        types={name: _object(kind) if name in objects else _text(kind) for name, kind in names.items()},
        members={f"{name}.{member}": text for name, found in members.items() for member, text in found.items()},
        methods={name: _method(record) for name, record in module.methods.METHODS.items()},
        codes={
            name: str(value)
            for name in module.methods.__all__
            if isinstance(value := getattr(module.methods, name), int)
        },
    )


def _is_helper(value: Any) -> bool:
    return isfunction(value) or value is UNSET or value is UnsetType or value is DecodeError


def _is_object(name: str, kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct | OpenObject) and kind.__name__ == name


def _object(kind: Any) -> str:
    if issubclass(kind, OpenObject):
        return "open object"
    return "closed object" if kind.__struct_config__.forbid_unknown_fields else "object"


def _members(kind: Any, space: dict[str, Any]) -> dict[str, str]:
    """The members of an object by their names on the wire."""
    hints = get_type_hints(kind, globalns=space, include_extras=True)
    if issubclass(kind, OpenObject):
        wires = {name: (found.wire, found.required) for name, found in kind.__attributes__.items()}
    else:
        wires = {field.name: (field.encode_name, field.required) for field in msgspec.structs.fields(kind)}
        if kind.__struct_config__.tag_field is not None:
            tag = kind.__struct_config__.tag_field
            wires[tag] = tag, True
    return {wire: _text(hints[name]) + ("" if required else ", optional") for name, (wire, required) in wires.items()}


def _text(hint: Any) -> str:
    """A type in words, without the marker for absence."""
    if hint in _NAMES:
        return _NAMES[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is ClassVar:
        return _text(arguments[0])
    if origin is Annotated:
        return f"{_text(arguments[0])}{_bounds(arguments[1:])}"
    if origin is Literal:
        return " | ".join(json.dumps(value) for value in arguments)
    if origin is list:
        return f"list of {_grouped(arguments[0])}"
    if origin is dict:
        return f"map of {_grouped(arguments[1])}" if arguments[1] is not Any else "object"
    if origin in (Union, UnionType) or hasattr(hint, "__union__"):
        return _union(list(arguments) or leaves(hint))
    return str(getattr(hint, "__name__", hint))


def _grouped(hint: Any) -> str:
    text = _text(hint)
    return f"({text})" if " | " in text else text


def _union(options: list[Any]) -> str:
    texts = [_text(option) for option in options if option is not UnsetType]
    # What JSON calls a number is a float or an int in Python.
    kept = [text for text in texts if text.replace("integer", "number", 1) not in texts or not text.startswith("int")]
    return " | ".join(dict.fromkeys(kept))


def _bounds(found: tuple[Any, ...]) -> str:
    said = [
        f"{words} {value}"
        for meta in found
        for name, words in _BOUNDS.items()
        if (value := getattr(meta, name, None)) is not None
    ]
    return f" ({', '.join(said)})" if said else ""


def _method(record: Method[Any, Any]) -> str:
    sender = {"client": "the client's", "server": "the server's", "both": "either's"}[record.direction]
    kind = {"input": "question", "request": "request", "notification": "notification"}[record.kind]
    params = "no params" if record.params is NoneType else _text(record.params)
    optional = "" if record.params_required or record.params is NoneType else ", optional"
    result = "" if record.kind == "notification" else f" -> {_text(record.result)}"
    return f"{sender} {kind}, {params}{optional}{result}"
