"""Records: classes with named members, which are dataclasses, TypedDicts, named tuples, Structs and attrs classes.

msgspec decodes all of them. This module reads their members in one way, so that a Struct can take the place of a record
that has members which msgspec rejects.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from enum import Enum
from functools import partial
from types import NoneType
from typing import Annotated, Any, Final, Literal, NamedTuple, NewType, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET

from typedmcp_schemas.annotations import evaluate, evaluated_members
from typedmcp_schemas.custom_types import CustomType
from typedmcp_schemas.values import is_pydantic

__all__ = [
    "RecordField", "constructor_of", "field_with_default", "fields_of", "fill_defaults", "has_dataclass", "is_record",
    "is_typeddict", "mirror_struct", "parameters_of", "parts_of", "resolve_alias", "strip_qualifiers", "substitute",
]  # fmt: skip


def is_record(kind: object) -> bool:
    """Return whether a class has named members: dataclass, TypedDict, named tuple, Struct or attrs class."""
    bases: tuple[Any, ...] = getattr(kind, "__mro__", ())
    return (
        msgspec.Struct in bases
        or dataclasses.is_dataclass(kind)
        or is_typeddict(kind)
        or hasattr(kind, "__attrs_attrs__")
        or (tuple in bases and hasattr(kind, "_fields"))
    )


def is_typeddict(kind: object) -> bool:
    """Return whether a class is a TypedDict, of `typing` or of `typing_extensions`."""
    return hasattr(kind, "__required_keys__")


def parts_of(hint: object) -> Iterator[Any]:
    """Yield a type and all types within it: its arguments, the members of records, what aliases stand for."""
    waiting, seen = [hint], list[Any]()
    while waiting:
        part = strip_qualifiers(waiting.pop())
        if part in seen:
            continue
        seen.append(part)
        yield part
        kind: Any = get_origin(part) or part
        if kind is Literal:
            continue
        waiting += get_args(part)[: 1 if kind is Annotated else None]
        if isinstance(kind, CustomType):
            waiting += kind.options
        if type(kind).__name__ == "TypeAliasType":
            waiting.append(resolve_alias(part))
        elif isinstance(part, NewType):
            waiting.append(part.__supertype__)
        elif isinstance(kind, type) and is_record(kind):
            waiting += [field.hint for field in fields_of(part)]


def has_dataclass(hint: object) -> bool:
    """Return whether a type is a dataclass, or has one within it."""
    return any(dataclasses.is_dataclass(get_origin(part) or part) for part in parts_of(hint))


def fill_defaults(value: Any) -> None:
    """Give the dataclasses in a value that msgspec has made the defaults that it leaves to their classes.

    msgspec encodes only what an object has itself, so these members would be missing in JSON.
    """
    if isinstance(value, Mapping):
        parts: list[Any] = [*value.values()]
    elif isinstance(value, list | tuple | set | frozenset | deque):
        parts = [*cast("Sequence[Any]", value)]
    else:
        names = _names_in(value)
        parts = [getattr(value, name) for name in names if hasattr(value, name)]
        own: dict[str, Any] = getattr(value, "__dict__", {})
        if dataclasses.is_dataclass(value):
            own.update({name: getattr(value, name) for name in names if name not in own and hasattr(value, name)})
    for part in parts:
        fill_defaults(part)


def _names_in(value: Any) -> Sequence[str]:
    """Return the names of the members of a record, which is neither a tuple nor a TypedDict; empty for other values."""
    kind = cast(Any, type(value))
    if issubclass(kind, msgspec.Struct):
        names: tuple[str, ...] = kind.__struct_fields__
        return names
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return [field.name for field in getattr(kind, "__attrs_attrs__", ())]


_QUALIFIERS: Final = ("Required", "NotRequired", "ReadOnly", "Final")


class RecordField(NamedTuple):
    """A member of a record."""

    name: str
    """Its name as an argument of the constructor."""
    wire: str
    """Its name in JSON."""
    hint: Any
    make: Callable[..., Any] = msgspec.field
    """Makes the field of a Struct, with the default, from `name=`."""


# Members


def fields_of(hint: object) -> list[RecordField]:
    """Return the members of a record. Raises `NameError` if an annotation refers to an unknown name."""
    kind: Any = get_origin(hint) or hint
    variables = dict(zip(getattr(kind, "__parameters__", ()), get_args(hint), strict=False))
    return [
        field._replace(hint=substitute(strip_qualifiers(field.hint), variables)) for field in _declared_fields(kind)
    ]


def _declared_fields(kind: Any) -> list[RecordField]:
    if issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        return [RecordField(f.name, f.encode_name, f.type, _field_maker(f, NODEFAULT)) for f in fields]
    hints = evaluated_members(kind, {kind.__name__: kind, **parameters_of(kind)})
    if is_typeddict(kind):
        return [RecordField(name, name, hints[name], _key_maker(kind, name, hints[name])) for name in hints]
    if dataclasses.is_dataclass(kind):
        members = [f for f in dataclasses.fields(kind) if f.init]
        return [RecordField(f.name, f.name, hints[f.name], _field_maker(f, MISSING)) for f in members]
    if hasattr(kind, "__attrs_attrs__"):
        attributes = [f for f in kind.__attrs_attrs__ if f.init]
        return [RecordField(f.alias, f.name, hints[f.name], _attribute_maker(f)) for f in attributes]
    makers = {name: field_with_default(default) for name, default in kind._field_defaults.items()}
    return [RecordField(name, name, hints.get(name, Any), makers.get(name, msgspec.field)) for name in kind._fields]


def _key_maker(kind: Any, name: str, hint: Any) -> Callable[..., Any]:
    """Return `msgspec.field` for a key of a TypedDict, which is left out where it is not required."""
    # `__required_keys__` is wrong for a class whose annotations are strings, and for a qualifier within another one.
    qualifiers = [*_qualifiers_of(hint)]
    is_required = "Required" in qualifiers or ("NotRequired" not in qualifiers and name in kind.__required_keys__)
    return msgspec.field if is_required else partial(msgspec.field, default=UNSET)


def _field_maker(field: Any, missing: object) -> Callable[..., Any]:
    if field.default is not missing:
        return field_with_default(field.default)
    if field.default_factory is not missing:
        return partial(msgspec.field, default_factory=field.default_factory)
    return msgspec.field


def _attribute_maker(field: Any) -> Callable[..., Any]:
    from attrs import NOTHING, Factory

    if field.default is NOTHING:
        return msgspec.field
    if isinstance(field.default, Factory):  # type: ignore[arg-type]  # a class, whatever its stub says
        return partial(msgspec.field, default=UNSET)  # the class calls it, since it may take the object itself
    return field_with_default(field.default)


# Types with qualifiers and parameters


def _qualifiers_of(hint: object) -> Iterator[str]:
    """Yield the names of the qualifiers around a type, also those within `Annotated`."""
    while (name := getattr(get_origin(hint), "_name", None)) in _QUALIFIERS or get_origin(hint) is Annotated:
        yield str(name)
        hint = get_args(hint)[0]


def strip_qualifiers(hint: object) -> Any:
    """Return a type without `Required[…]`, `NotRequired[…]`, `ReadOnly[…]` and `Final[…]` around it."""
    while getattr(get_origin(hint), "_name", None) in _QUALIFIERS:
        hint = get_args(hint)[0]
    return hint


def substitute(hint: Any, variables: Mapping[Any, Any]) -> Any:
    """Replace the type variables in a type."""
    if isinstance(hint, TypeVar):
        return variables.get(hint, hint)
    parameters = () if get_origin(hint) is None else getattr(hint, "__parameters__", ())
    return hint[tuple(variables.get(parameter, parameter) for parameter in parameters)] if parameters else hint


def parameters_of(owner: object) -> dict[str, Any]:
    """Return the type variables that a class or a function declares in brackets, `class Box[T]`, by name."""
    owners: Iterator[Any] = iter(getattr(owner, "__mro__", (owner,)))
    declared: list[Any] = [getattr(each, "__type_params__", ()) for each in owners if each is not type]
    return {variable.__name__: variable for variables in declared for variable in variables}


def resolve_alias(hint: object) -> Any:
    """Return the type that an alias, with or without arguments, stands for. Raises `NameError`."""
    alias: Any = get_origin(hint) or hint
    known: dict[str, Any] = getattr(sys.modules.get(alias.__module__), "__dict__", {})
    value = evaluate({"value": alias.__value__}, known)["value"]  # which may be a string
    return substitute(value, dict(zip(alias.__type_params__, get_args(hint), strict=False)))


# Mirrors


def mirror_struct(hint: object, name: str, fields: Sequence[RecordField]) -> type[msgspec.Struct]:
    """Return a Struct with the JSON form of a record, whose fields have adapted types."""
    kind: Any = get_origin(hint) or hint
    options: dict[str, Any] = {"array_like": issubclass(kind, tuple), "forbid_unknown_fields": issubclass(kind, tuple)}
    if issubclass(kind, msgspec.Struct):
        config = kind.__struct_config__
        options = {key: getattr(config, key) for key in ("array_like", "forbid_unknown_fields", "tag", "tag_field")}
    members = [(f"f{number}", field.hint, field.make(name=field.wire)) for number, field in enumerate(fields)]
    text = str(vars(kind).get("__doc__") or "")
    is_generated = text.startswith(f"{kind.__name__}(")  # by `dataclass`: the signature
    namespace = {} if is_generated else {"__doc__": text}
    return msgspec.defstruct(name, members, namespace=namespace, kw_only=not options["array_like"], **options)


def constructor_of(hint: object, fields: Sequence[RecordField]) -> Callable[[Any], Any]:
    """Return a function that builds a record from its mirror."""
    kind: Any = get_origin(hint) or hint
    names = [field.name for field in fields]

    def construct(mirror: msgspec.Struct) -> Any:
        values = zip(names, msgspec.structs.astuple(mirror), strict=True)
        return kind(**{name: value for name, value in values if value is not UNSET})

    return construct


_IN_SCHEMAS: Final = (NoneType, str, int, float, bool, bytes, frozenset, Enum)
"""Classes of defaults that msgspec can put into schemas."""
_MUTABLE: Final = (list, dict, set, bytearray, deque)


def field_with_default(value: Any) -> Callable[..., Any]:
    """Return `msgspec.field` with a default, without the name of the field. Each call gets its own copy."""
    if not _is_mutable(value):
        if isinstance(value, _IN_SCHEMAS):
            return partial(msgspec.field, default=value)
        return partial(msgspec.field, default_factory=lambda: value)
    kind = cast(Any, type(value))
    if kind in (list, dict, set, bytearray) and not any(map(_is_mutable, value.values() if kind is dict else value)):
        return partial(msgspec.field, default_factory=value.copy if value else kind)  # much the fastest
    return partial(msgspec.field, default_factory=lambda: _copy(value))


def _is_mutable(value: Any) -> bool:
    """Return whether a value is, or contains, a container or a record that can be changed."""
    kind = cast(Any, type(value))
    if not issubclass(kind, tuple):
        if not (is_record(kind) or is_pydantic(kind)):
            return issubclass(kind, _MUTABLE)
        config = getattr(kind, "__dataclass_params__", None) or getattr(kind, "__struct_config__", None)
        if not getattr(config, "frozen", False):
            return True
    try:
        hash(value)
    except TypeError:  # something within it can be changed
        return True
    return False


def _copy(value: Any) -> Any:
    """Copy a value with the containers and records in it; other objects in containers stay the same."""
    kind = cast(Any, type(value))
    if not _is_mutable(value):
        return value
    if kind is tuple:
        return tuple(map(_copy, value))
    if not issubclass(kind, dict | list | deque):
        return copy.deepcopy(value)
    made: Any = copy.copy(value)
    if issubclass(kind, dict):
        made.update({key: _copy(item) for key, item in value.items()})
    else:
        made.clear()
        made.extend([*map(_copy, value)])
    return made
