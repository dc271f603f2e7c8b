"""Records: classes with named members, which are dataclasses, TypedDicts, named tuples, Structs and attrs classes.

msgspec decodes all of them. This module reads their members in one way, so that a Struct can take the place of a record
that has members which msgspec rejects, and enforces the tags of Structs.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from enum import Enum
from functools import cache, partial
from types import NoneType
from typing import Any, Final, NamedTuple, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET
from msgspec.structs import force_setattr

from mcpspec.support.annotations import evaluate, evaluated_members
from typedmcp.jsonschema.values import is_pydantic

__all__ = [
    "RecordField", "constructor_of", "field_with_default", "fields_of", "fill_defaults", "has_dataclass", "is_record",
    "is_tag_guard", "is_typeddict", "mirror_struct", "parameters_of", "require_tag", "resolve_alias",
    "strip_qualifiers", "substitute", "tag_of",
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


def has_dataclass(hint: Any, seen: frozenset[Any] = frozenset()) -> bool:
    """Return whether a type is a dataclass, or has one in its arguments or members."""
    kind: Any = hint  # as a type checker sees it after the next line, it would be of an unknown type
    if not isinstance(hint, type):
        return any(has_dataclass(part, seen) for part in get_args(hint))
    if dataclasses.is_dataclass(hint) or hint in seen:
        return hint not in seen
    members = [member.hint for member in fields_of(kind)] if is_record(kind) else []
    return any(has_dataclass(part, seen | {kind}) for part in members)


def fill_defaults(value: Any) -> None:
    """Give the dataclasses in a value that msgspec has made the defaults that it leaves to their classes.

    msgspec encodes only what an object has itself, so these members would be missing in JSON.
    """
    if isinstance(value, Mapping):
        parts: list[Any] = [*value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = [*cast("Sequence[Any]", value)]
    elif isinstance(value, msgspec.Struct):
        parts = [getattr(value, name) for name in value.__struct_fields__]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type) and hasattr(value, "__dict__"):
        own: dict[str, Any] = value.__dict__
        for field in dataclasses.fields(value):
            if field.name not in own and hasattr(value, field.name):
                own[field.name] = getattr(value, field.name)
        parts = [*own.values()]
    else:
        return
    for part in parts:
        fill_defaults(part)


_QUALIFIERS: Final = ("Required", "NotRequired", "ReadOnly", "Final")
_UNUSED_TEXT: Final = "\0"
_UNUSED_NUMBER: Final = -(2**62)
"""Tags that match no data."""
_TAG_GUARD: Final = "_TagGuard"


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
    # `__required_keys__` is wrong for a class whose annotations are strings.
    qualifier = getattr(get_origin(hint), "_name", "")
    is_qualified = qualifier in ("Required", "NotRequired")
    is_required = qualifier == "Required" if is_qualified else name in kind.__required_keys__
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


# Tags


def tag_of(kind: object) -> tuple[str | None, Any]:
    """Return the name and value of a Struct's tag; None and None for types without a tag."""
    config = getattr(get_origin(kind) or kind, "__struct_config__", None)
    return (None, None) if config is None or config.tag_field is None else (config.tag_field, config.tag)


def require_tag(kind: Any) -> Any:
    """Return a union that makes msgspec require the tag of a Struct: it checks tags only where it has to choose."""
    name, tag = tag_of(kind)
    if name is None or is_tag_guard(kind):
        return kind
    config = (get_origin(kind) or kind).__struct_config__
    return Union[kind, _tag_guard(name, config.array_like, isinstance(tag, int))]  # noqa: UP007  # `kind` may have no `|`


@cache
def _tag_guard(tag_field: str, array_like: bool, is_number: bool) -> Any:
    """Return a Struct whose tag matches no data, as the second member of the union of `require_tag`."""
    tag: Any = _UNUSED_NUMBER if is_number else _UNUSED_TEXT
    return msgspec.defstruct(_TAG_GUARD, [], tag_field=tag_field, tag=tag, array_like=array_like)


def is_tag_guard(kind: Any) -> bool:
    """Return whether a type is in a union only because of `require_tag`."""
    return tag_of(kind)[1] in (_UNUSED_TEXT, _UNUSED_NUMBER) and kind.__name__ == _TAG_GUARD


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


_IMMUTABLE: Final = (NoneType, str, int, float, bool, bytes, frozenset, Enum)
_MUTABLE: Final = (list, dict, set, bytearray, deque)


def field_with_default(value: object) -> Callable[..., Any]:
    """Return `msgspec.field` with a default, without the name of the field."""
    if isinstance(value, _IMMUTABLE):
        return partial(msgspec.field, default=value)
    if _is_mutable(value):
        return partial(msgspec.field, default_factory=_copier(value))
    return partial(msgspec.field, default_factory=lambda: value)


def _copier(value: Any) -> Callable[[], Any]:
    """Return a function that copies a value: the value's own `copy` if that is deep enough, as it is much faster."""
    kind = cast(Any, type(value))
    items = value.values() if kind is dict else value
    if kind in (list, dict, set, bytearray) and not any(map(_is_mutable, items)):
        return value.copy if value else kind  # type: ignore[no-any-return]
    return lambda: _copy(value)


def _is_mutable(value: Any) -> bool:
    """Return whether a value is, or contains, a container or a record that can be changed."""
    kind = cast(Any, type(value))
    if issubclass(kind, tuple):
        return any(map(_is_mutable, value))
    if is_record(kind) or is_pydantic(kind):
        return not _is_frozen(kind) or any(_is_mutable(item) for _, item in _attributes(value))
    return issubclass(kind, _MUTABLE)


def _is_frozen(kind: object) -> bool:
    config = getattr(kind, "__dataclass_params__", None) or getattr(kind, "__struct_config__", None)
    return getattr(config, "frozen", False)


def _attributes(record: object) -> list[tuple[str, Any]]:
    """Return the attributes of a record, in slots or not."""
    names: dict[str, None] = dict.fromkeys(getattr(record, "__dict__", ()))
    names |= dict.fromkeys(getattr(record, "__struct_fields__", ()))
    names |= dict.fromkeys(getattr(record, "__dataclass_fields__", ()))
    names |= {field.name: None for field in getattr(record, "__attrs_attrs__", ())}
    return [(name, getattr(record, name)) for name in names if hasattr(record, name)]


def _copy(value: Any) -> Any:
    """Copy a value with the containers and records in it; all other objects in it stay the same."""
    if not _is_mutable(value):
        return value
    kind = cast(Any, type(value))
    if hasattr(kind, "_make"):
        return kind._make(map(_copy, value))
    if issubclass(kind, tuple):
        return cast(Any, kind)(map(_copy, value))
    made: Any = copy.copy(value)
    if issubclass(kind, dict):
        made.update({key: _copy(item) for key, item in value.items()})
    elif issubclass(kind, list | deque):
        made.clear()
        made.extend([*map(_copy, value)])
    elif not issubclass(kind, set | bytearray):  # whose items are immutable
        put: Any = force_setattr if issubclass(kind, msgspec.Struct) else object.__setattr__  # it may be frozen
        for name, item in _attributes(value):
            put(made, name, _copy(item))
    return made
