"""Classes with named members: dataclasses, TypedDicts, named tuples, Structs, attrs classes. What they have, alike."""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from enum import Enum
from functools import cache, partial
from types import NoneType
from typing import Any, Final, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET
from msgspec.structs import force_setattr

__all__ = [
    "Field",
    "defaulted",
    "enforced",
    "fields_of",
    "filled",
    "is_never",
    "is_record",
    "maker_of",
    "meaning",
    "mirror_of",
    "parameters_of",
    "tag_of",
    "unqualified",
]

_FIXED: Final = (NoneType, str, int, float, bool, bytes, frozenset, Enum)
"""Types of defaults that nobody can change by using them."""
_CHANGEABLE: Final = (list, dict, set, bytearray, deque)
_QUALIFIERS: Final = ("Required", "NotRequired", "ReadOnly", "Final")
_NO_TEXT: Final = "\0"
_NO_NUMBER: Final = -(2**62)
"""Tags that nothing has."""


class Field(NamedTuple):
    """A member of a record."""

    name: str
    """What its constructor calls it,"""
    wire: str
    """and what JSON does."""
    hint: Any
    make: Callable[..., Any] = msgspec.field
    """Gives what Structs have for it, with its default, by the name it is given."""


def is_record(kind: Any) -> bool:
    """Whether a class is one."""
    made_of: tuple[Any, ...] = getattr(kind, "__mro__", ())
    return (
        msgspec.Struct in made_of
        or dataclasses.is_dataclass(kind)
        or _is_typeddict(kind)
        or hasattr(kind, "__attrs_attrs__")
        or (tuple in made_of and hasattr(kind, "_fields"))
    )


def _is_typeddict(kind: Any) -> bool:
    return hasattr(kind, "__required_keys__")  # as those of `typing_extensions` have as well


def defaulted(value: Any) -> Callable[..., Any]:
    """`msgspec.field` with a default. Each call has its own, for it may be another's that gets what is put into it."""
    if isinstance(value, _FIXED):
        return partial(msgspec.field, default=value)
    if _is_changeable(value):
        return partial(msgspec.field, default_factory=_copier(value))
    return partial(msgspec.field, default_factory=lambda: value)


def _copier(value: Any) -> Callable[[], Any]:
    """What makes copies of a value: where it can, what Python has for that, which takes a fraction of the time."""
    kind = cast(Any, type(value))
    if kind in (list, dict, set, bytearray) and not any(map(_is_changeable, value.values() if kind is dict else value)):
        return value.copy if value else kind  # type: ignore[no-any-return]
    return lambda: _copied(value)


def _is_changeable(value: Any) -> bool:
    """Whether there is anything in a value that using it can change. All other objects are what they are."""
    kind = cast(Any, type(value))
    if issubclass(kind, tuple):
        return any(map(_is_changeable, value))
    if is_record(kind) or hasattr(kind, "__pydantic_validator__"):
        return not _is_frozen(kind) or any(_is_changeable(item) for _, item in _parts(value))
    return issubclass(kind, _CHANGEABLE)


def _is_frozen(kind: Any) -> bool:
    said = getattr(kind, "__dataclass_params__", None) or getattr(kind, "__struct_config__", None)
    return getattr(said, "frozen", False)


def _parts(record: Any) -> list[tuple[str, Any]]:
    """What a record has as attributes, in slots or not."""
    names: dict[str, None] = dict.fromkeys(getattr(record, "__dict__", ()))
    names |= dict.fromkeys(getattr(record, "__struct_fields__", ()))
    names |= dict.fromkeys(getattr(record, "__dataclass_fields__", ()))
    names |= {field.name: None for field in getattr(record, "__attrs_attrs__", ())}
    return [(name, getattr(record, name)) for name in names if hasattr(record, name)]


def _copied(value: Any) -> Any:
    """A value, with containers and records of its own."""
    if not _is_changeable(value):
        return value
    kind = cast(Any, type(value))
    if hasattr(kind, "_make"):
        return kind._make(map(_copied, value))
    if issubclass(kind, tuple):
        return cast(Any, kind)(map(_copied, value))
    made: Any = copy.copy(value)
    if issubclass(kind, dict):
        made.update({key: _copied(item) for key, item in value.items()})
    elif issubclass(kind, list | deque):
        made.clear()
        made.extend([*map(_copied, value)])
    elif not issubclass(kind, set | bytearray):  # whose items do not change
        put: Any = force_setattr if issubclass(kind, msgspec.Struct) else object.__setattr__  # it may be frozen
        for name, item in _parts(value):
            put(made, name, _copied(item))
    return made


def unqualified(hint: Any) -> Any:
    """A type without `Required[…]` and the like around it."""
    while getattr(get_origin(hint), "_name", None) in _QUALIFIERS:
        hint = get_args(hint)[0]
    return hint


def filled(hint: Any, variables: Mapping[Any, Any]) -> Any:
    """A type with its variables filled in."""
    if isinstance(hint, TypeVar):
        return variables.get(hint, hint)
    parameters = () if get_origin(hint) is None else getattr(hint, "__parameters__", ())
    return hint[tuple(variables.get(parameter, parameter) for parameter in parameters)] if parameters else hint


def fields_of(hint: Any) -> list[Field]:
    """The members of a record. Raises `NameError` for one whose annotations name what there is not."""
    kind: Any = get_origin(hint) or hint
    variables = dict(zip(getattr(kind, "__parameters__", ()), get_args(hint), strict=False))
    return [field._replace(hint=filled(unqualified(field.hint), variables)) for field in _fields_of(kind)]


def _fields_of(kind: Any) -> list[Field]:
    if issubclass(kind, msgspec.Struct):
        return [Field(f.name, f.encode_name, f.type, _of(f, NODEFAULT)) for f in msgspec.structs.fields(kind)]
    hints = get_type_hints(kind, localns={kind.__name__: kind, **parameters_of(kind)}, include_extras=True)
    if _is_typeddict(kind):
        return [_of_key(kind, name, hints[name]) for name in hints]
    if dataclasses.is_dataclass(kind):
        return [Field(f.name, f.name, hints[f.name], _of(f, MISSING)) for f in dataclasses.fields(kind) if f.init]
    if hasattr(kind, "__attrs_attrs__"):
        return [Field(f.alias, f.name, hints[f.name], _of_attrs(f)) for f in kind.__attrs_attrs__ if f.init]
    defaults = kind._field_defaults
    return [
        Field(name, name, hints.get(name, Any), defaulted(defaults[name]) if name in defaults else msgspec.field)
        for name in kind._fields
    ]


def _of_key(kind: Any, name: str, hint: Any) -> Field:
    said = getattr(get_origin(hint), "_name", "")  # which a class does not know whose annotations are strings
    is_required = name in kind.__required_keys__ if said not in ("Required", "NotRequired") else said == "Required"
    return Field(name, name, hint) if is_required else Field(name, name, hint, partial(msgspec.field, default=UNSET))


def _of(field: Any, missing: Any) -> Callable[..., Any]:
    if field.default is not missing:
        return defaulted(field.default)
    if field.default_factory is not missing:
        return partial(msgspec.field, default_factory=field.default_factory)
    return msgspec.field


def _of_attrs(field: Any) -> Callable[..., Any]:
    from attrs import NOTHING, Factory

    if field.default is NOTHING:
        return msgspec.field
    if isinstance(field.default, Factory):  # type: ignore[arg-type]  # a class, whatever its stub says
        return partial(msgspec.field, default=UNSET)  # it may want the object itself
    return defaulted(field.default)


def parameters_of(holder: Any) -> dict[str, Any]:
    """The variables that a class or a function declares in brackets, `class Box[T]`, which its annotations may name."""
    holders: Iterator[Any] = iter(getattr(holder, "__mro__", (holder,)))
    declared: list[Any] = [getattr(one, "__type_params__", ()) for one in holders if one is not type]
    return {made.__name__: made for variables in declared for made in variables}


def tag_of(kind: Any) -> tuple[str | None, Any]:
    """The member that tells a Struct from others, and its value; None for types that have no such member."""
    config = getattr(get_origin(kind) or kind, "__struct_config__", None)
    return (None, None) if config is None or config.tag_field is None else (config.tag_field, config.tag)


def enforced(kind: Any) -> Any:
    """A Struct with its tag enforced, for msgspec asks for a tag only where it has to choose."""
    name, tag = tag_of(kind)
    if name is None or is_never(kind):
        return kind
    config = (get_origin(kind) or kind).__struct_config__
    return Union[kind, _never(name, config.array_like, isinstance(tag, int))]  # noqa: UP007  # `kind` may have no `|`


@cache
def _never(tag_field: str, array_like: bool, of_number: bool) -> Any:
    """A Struct to choose from that no data names."""
    tag: Any = _NO_NUMBER if of_number else _NO_TEXT
    return msgspec.defstruct("_Never", [], tag_field=tag_field, tag=tag, array_like=array_like)


def is_never(kind: Any) -> bool:
    """Whether a type is there only to have `enforced` what stands beside it."""
    return tag_of(kind)[1] in (_NO_TEXT, _NO_NUMBER) and kind.__name__ == "_Never"


def mirror_of(hint: Any, name: str, fields: Sequence[Field]) -> type[msgspec.Struct]:
    """A Struct that is on the wire what a record is, with fields of types that msgspec takes."""
    kind: Any = get_origin(hint) or hint
    options: dict[str, Any] = {"array_like": issubclass(kind, tuple), "forbid_unknown_fields": issubclass(kind, tuple)}
    if issubclass(kind, msgspec.Struct):
        config = kind.__struct_config__
        options = {key: getattr(config, key) for key in ("array_like", "forbid_unknown_fields", "tag", "tag_field")}
    members = [(f"f{number}", field.hint, field.make(name=field.wire)) for number, field in enumerate(fields)]
    text = str(vars(kind).get("__doc__") or "")
    namespace = {} if text.startswith(f"{kind.__name__}(") else {"__doc__": text}
    return msgspec.defstruct(name, members, namespace=namespace, kw_only=not options["array_like"], **options)


def maker_of(hint: Any, fields: Sequence[Field]) -> Callable[[Any], Any]:
    """What makes a record of its mirror."""
    kind: Any = get_origin(hint) or hint
    names = [field.name for field in fields]

    def make(mirror: Any) -> Any:
        values = zip(names, msgspec.structs.astuple(mirror), strict=True)
        return kind(**{name: value for name, value in values if value is not UNSET})

    return make


def meaning(hint: Any) -> Any:
    """What a type alias, with or without arguments, stands for. Raises `NameError`."""
    alias: Any = get_origin(hint) or hint
    holder = type("", (), {"__annotations__": {"value": alias.__value__}, "__module__": alias.__module__})
    value = get_type_hints(holder, include_extras=True)["value"]  # which may be text
    return filled(value, dict(zip(alias.__type_params__, get_args(hint), strict=False)))
