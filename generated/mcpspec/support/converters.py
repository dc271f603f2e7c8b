"""The base of the conversions between two revisions, which `make generate` writes.

A conversion has a method for each type that it changes, called like the type. It takes a value and a list, to which it
appends the names of members that the other revision lacks, such as `Tool.icons`. A type without a method is left as it
is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Final, Protocol, TypeAlias, cast, get_args, get_origin

import msgspec
from msgspec import UNSET
from msgspec.structs import force_setattr

from mcpspec.support.members import declared_members, holds_objects, is_open, is_struct, members_of
from mcpspec.support.null import NULL
from mcpspec.support.objects import spread_union
from mcpspec.support.structs import OpenObject, build_open_object, copier, to_builtins

__all__ = [
    "IMPLIED", "OWN", "RESULT_DEFAULTS", "UNREPORTED", "ByClass", "Conversion", "Converter", "Downgrade",
    "DroppedFields", "Unions", "Upgrade", "converter_for", "is_object", "items", "items_by_class", "leave",
    "load_conversion", "lose_undeclared", "open_converter", "positional", "values", "values_by_class", "with_meta",
]  # fmt: skip

DroppedFields: TypeAlias = list[str]
"""Names of the members that the target revision does not have, such as `Tool.icons`."""


class Converter(Protocol):
    """Converts a value, and adds the names of what the other revision lacks to a list."""

    def __call__(self, value: Any, lost: DroppedFields) -> Any: ...


class _Unreported(list[str]):
    def append(self, name: str) -> None:
        """Forget the name."""

    def extend(self, names: Iterable[str]) -> None:
        """Forget the names."""


UNREPORTED: Final = _Unreported()
"""Stands for a list of lost members that nobody reads."""

OWN: Final[Any] = object()
"""Stands for the `_meta` of the value itself."""


def _constructors(module: Any) -> ModuleType:
    """Return the constructors of a module's structs, as attributes of a module, which finds a made one at once."""
    found = ModuleType(module.__name__)

    def __getattr__(name: str) -> Any:
        if name not in module.__all__:
            raise AttributeError(name)
        kind = getattr(module, name)
        made = found.__dict__[name] = _open_constructor(kind) if is_open(kind) else copier(kind)
        return made

    found.__dict__["__getattr__"] = __getattr__
    return found


def _is_other(kind: type, other: type) -> bool:
    """Return whether a type has another name than one of another revision, which has both names."""
    return kind.__name__ != other.__name__ and hasattr(import_module(other.__module__), kind.__name__)


def _open_constructor(kind: type[OpenObject]) -> Callable[..., Any]:
    """Return a constructor of an open object, which does not check it: its caller checks what may be invalid."""

    def make(**members: Any) -> Any:
        made = kind.__new__(kind)
        for name, value in members.items():
            setattr(made, name, value)
        return made

    return make


class Conversion:
    """The base of conversions in both directions."""

    partial: ClassVar[frozenset[str]] = frozenset()
    """The types whose converted values may be invalid, or may contain values of the source's types."""

    def __init__(self, module: Any, absent: Any) -> None:
        self.module: Any = module
        """The module of the target's types."""
        self.absent: Any = absent
        """The value of an absent member of the target: None in everyday types, UNSET in exact ones."""
        self.types: Any = _constructors(module)
        self.of_class: ByClass = ByClass(self)
        """The methods for the members of unions, by the class of the value."""
        self.added: frozenset[type] = frozenset()
        """Types beyond those of the revision that unions may have."""
        self.one_of: Unions = Unions(self)
        """The same for the members of one union, by the names of its types. Values of other types are rejected."""

    def method(self, name: str) -> Any:
        """Return the method for a type, or None if its values are left as they are."""
        return getattr(self, name, None) if name[:1].isupper() else None

    def keep(self, name: str) -> Converter:  # noqa: ARG002  # it depends on the direction
        """Return the function for values of a type without a method."""
        return leave

    def is_foreign(self, kind: type) -> bool:  # noqa: ARG002
        """Return whether a class belongs to another revision than the values, or is everyday if they are exact."""
        return False

    def as_object(self, name: str | None, value: Any, lost: DroppedFields) -> Any:
        """Convert an open object, such as `_meta`, to a type of the target, or to a dict."""
        raise NotImplementedError

    def as_schema(self, name: str, value: Any, lost: DroppedFields) -> Any:
        """Convert a JSON Schema, whose members all stay, to a type of the target."""
        return self.as_object(name, value, lost)

    def method_between(self, source: Any, target: Any) -> Any:
        """Return the method for the parameters of a method of the protocol: they may be of types with two names."""
        older, newer = self._by_age(source, target)
        names = [f"{older.__name__}_{newer.__name__}"]
        # The older name says more: newer revisions have one for several.
        names += [kind.__name__ for kind, other in ((older, newer), (newer, older)) if not _is_other(kind, other)]
        return next((method for each in names if (method := self.method(each)) is not None), None)

    def _by_age(self, source: type, target: type) -> tuple[type, type]:
        """Return two types: that of the older revision, and that of the modern one."""
        raise NotImplementedError


class ByClass(dict[type[Any], Converter]):
    """The methods of a conversion by the class of a value, found when they are first used.

    With `options`, only values of these types, and of classes that derive from them, have a method.
    """

    def __init__(self, conversion: Conversion, options: str = "") -> None:
        super().__init__()
        self._conversion = conversion
        self._options = options
        self._names = frozenset(options.split(" or ") if options else conversion.module.__all__)

    def __missing__(self, kind: type[Any]) -> Converter:
        conversion = self._conversion
        for base in kind.__mro__ if issubclass(kind, msgspec.Struct | OpenObject) else ():
            name = base.__name__
            is_known = name in self._names or (not self._options and conversion.method(name) is not None)
            if is_known and not (self._options and conversion.is_foreign(base)):
                made = self[kind] = conversion.method(name) or conversion.keep(name)
                return made
        if kind in conversion.added:
            return leave
        name = kind.__name__ if kind.__name__ not in self._names else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"expected {self._options or 'a type of the protocol'}, got {name}")


class Unions(dict[str, ByClass]):
    """The methods for the types of unions, by their names, such as `TextContent or ImageContent`."""

    def __init__(self, conversion: Conversion) -> None:
        super().__init__()
        self._conversion = conversion

    def __missing__(self, options: str) -> ByClass:
        made = self[options] = ByClass(self._conversion, options)
        return made


def items(convert: Converter, values: Sequence[Any], lost: DroppedFields) -> list[Any]:
    """Convert the items of a list."""
    return [convert(each, lost) for each in values]


def items_by_class(of_class: ByClass, values: Sequence[Any], lost: DroppedFields) -> list[Any]:
    """Convert the items of a list by their classes."""
    return [of_class[each.__class__](each, lost) for each in values]


def values(convert: Converter, members: Mapping[str, Any], lost: DroppedFields) -> dict[str, Any]:
    """Convert the values of an object."""
    return {key: convert(each, lost) for key, each in members.items()}


def values_by_class(of_class: ByClass, members: Mapping[str, Any], lost: DroppedFields) -> dict[str, Any]:
    """Convert the values of an object by their classes."""
    return {key: of_class[each.__class__](each, lost) for key, each in members.items()}


def is_object(value: object) -> bool:
    """Return whether a value is of a type of the protocol, and no plain JSON."""
    return isinstance(value, msgspec.Struct | OpenObject)


def leave(value: Any, lost: DroppedFields) -> Any:  # noqa: ARG001  # nothing is lost
    """Return a value that needs no conversion."""
    return value


def lose_undeclared(value: OpenObject, lost: DroppedFields) -> None:
    """Name the members of an open object that its class does not declare, for a type that keeps no others."""
    declared = {each.wire for each in value.__attributes__.values()}
    lost.extend([f"{value.__class__.__name__}.{wire}" for wire in value if wire not in declared])


def positional(method: Any) -> Converter:
    """Return a method of a conversion as a converter. Methods of parameters take a `_meta` before the list."""
    if method.__code__.co_varnames[1:3] != ("value", "meta"):
        return cast("Converter", method)
    return lambda value, lost: method(value, OWN, lost)


class Upgrade(Conversion):
    """The base of conversions from exact types of a revision to types of a modern one, everyday or exact."""

    def __init__(self, module: Any, *, is_exact: bool = False) -> None:
        super().__init__(module, UNSET if is_exact else None)
        self.null: Any = None if is_exact else NULL
        """The value of a member that is null."""

    def _by_age(self, source: type, target: type) -> tuple[type, type]:
        return source, target

    def as_object(self, name: str | None, value: Any, lost: DroppedFields) -> Any:
        kind = dict if name is None else getattr(self.module, name)
        if is_open(kind) or self.absent is UNSET:
            return open_converter(value.__class__, kind)(value, lost)
        plain: dict[str, Any] = to_builtins(value) if _holds_objects(value.__class__) else dict(value)
        return plain

    def as_schema(self, name: str, value: Any, lost: DroppedFields) -> Any:
        is_valid = value.get("$schema", "").__class__ is str  # older revisions do not declare it
        kind = getattr(self.module, name)
        if not is_valid:
            lost.append("$schema")
        if not is_open(kind) or not is_valid:
            plain: dict[str, Any] = dict(value)
            return plain
        return build_open_object(kind, value)


@cache
def _holds_objects(kind: Any) -> bool:
    """Return whether an open object may contain others."""
    return is_open(kind) and any(holds_objects(hint) for hint, _ in declared_members(kind).values())


class Downgrade(Conversion):
    """The base of conversions from types of a modern revision to types of an older one, everyday or exact alike.

    With `copies`, the modern revision's own upgrade to the exact types of the older one, values of equal types and
    objects such as `_meta` become values of the target, too. Encoding does not need it.
    """

    def __init__(self, module: Any, *, is_exact: bool = False, copies: Upgrade | None = None) -> None:
        super().__init__(module, UNSET if is_exact else None)
        self.copies: Any = copies
        self.is_complete: bool = copies is not None
        self._schemas: Mapping[str, Converter] = _Schemas(module)
        modern = type(self).__module__.partition(".conversions.")[0]
        self._source: str = f"{modern}.exact.structs" if is_exact else f"{modern}.structs"

    def _by_age(self, source: type, target: type) -> tuple[type, type]:
        return target, source

    def keep(self, name: str) -> Converter:
        copy: Converter | None = self.copies.method(name) if self.is_complete else None
        return copy or leave

    def is_foreign(self, kind: type) -> bool:
        return kind.__module__.startswith("mcpspec.v") and kind.__module__ != self._source

    def as_object(self, name: str | None, value: Any, lost: DroppedFields) -> Any:
        if not self.is_complete or value is None or value is UNSET:
            return value
        return open_converter(value.__class__, dict if name is None else getattr(self.module, name))(value, lost)

    def as_schema(self, name: str, value: Any, lost: DroppedFields) -> Any:
        if not self.is_complete or value is None or value is UNSET:
            return value
        return self._schemas[name](value, lost)


class _Schemas(dict[str, Converter]):
    """The converters of JSON Schemas to types of a module, by the names of the types, made when first used."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self._module = module

    def __missing__(self, name: str) -> Converter:
        kind = getattr(self._module, name)
        made = self[name] = open_converter(kind, kind)
        return made


RESULT_DEFAULTS: Final[Mapping[str, Any]] = {"result_type": "complete", "ttl_ms": 0, "cache_scope": "private"}
"""Members that modern results require, with the values that clients assume if they are absent."""

IMPLIED: Final[Mapping[str, Any]] = {
    "resultType": RESULT_DEFAULTS["result_type"],
    "ttlMs": RESULT_DEFAULTS["ttl_ms"],
    "cacheScope": RESULT_DEFAULTS["cache_scope"],
}
"""The same members by their names in JSON."""


@cache
def open_converter(source: Any, target: Any) -> Converter:
    """Return a converter that copies an open object, without the members that only its own revision declares.

    A schema keeps all its members. An object that does not fit is returned as plain JSON, and named as lost.
    """
    make: Callable[[Any], Any] = target.__decoder__() if is_open(target) else _copy
    mine = declared_members(source) if is_open(source) else {}
    theirs = declared_members(target) if is_open(target) else _struct_members(target) if is_struct(target) else {}
    is_schema = source.__name__ in _SCHEMAS
    removed = [wire for wire in mine if wire not in theirs and not is_schema]
    implied = {wire: IMPLIED[wire] for wire, (_, required) in theirs.items() if required and wire in IMPLIED}

    def convert(value: Any, lost: DroppedFields) -> Any:
        plain: dict[str, Any] = value if is_schema else {**implied, **to_builtins(value)}
        for wire in removed:
            if wire in plain:
                del plain[wire]
                lost.append(wire)
        try:
            return make(plain)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            lost.append(str(error))
            return plain

    return convert


def _struct_members(kind: type[msgspec.Struct]) -> dict[str, tuple[Any, bool]]:
    """Return the members of a struct as those of an open object, with its tag."""
    members = {each.wire: (each.hint, not each.optional) for each in members_of(kind).values()}
    tag = kind.__struct_config__.tag_field
    return members if tag is None else {tag: (str, True), **members}


def _copy(value: dict[str, Any]) -> dict[str, Any]:
    return {**value}


_SCHEMAS: Final = ("ToolInputSchema", "ToolOutputSchema")


def load_conversion(direction: str, modern: str, older: str) -> Any:
    """Return the class `Upgrade` or `Downgrade` of two packages of revisions, such as `v2026_07_28`, `v2025_11_25`."""
    return getattr(import_module(f"mcpspec.{modern}.conversions.{older}"), direction)


def converter_for(conversion: Upgrade, source: Any, target: Any) -> Converter | None:
    """Return the converter for values of any type hint, or None if they are left as they are."""
    mine, theirs = spread_union(source), spread_union(target)
    if len(mine) > 1:
        parts = {converter_for(conversion, each, each) for each in mine}
        return None if parts == {None} else lambda value, lost: conversion.of_class[value.__class__](value, lost)
    if is_struct(source) or (is_open(source) and is_struct(theirs[0])):
        return conversion.method(source.__name__)  # type: ignore[no-any-return]
    if is_open(source):
        name = theirs[0].__name__ if is_open(theirs[0]) else None
        return lambda value, lost: conversion.as_object(name, value, lost)
    if get_origin(source) in (list, dict) and get_origin(target) is get_origin(source):
        each = converter_for(conversion, get_args(source)[-1], get_args(target)[-1])
        if each is None:
            return None
        if get_origin(source) is list:
            return lambda value, lost: [each(item, lost) for item in value]
        return lambda value, lost: {key: each(item, lost) for key, item in value.items()}
    return None


@cache
def with_meta(kind: type[msgspec.Struct | OpenObject]) -> Callable[[Any, Any], Any]:
    """Return a function `(value, meta) -> value` that copies an object of a class with another `_meta`.

    An object without that member is returned as it is.
    """
    if issubclass(kind, OpenObject):
        return (lambda value, meta: value.__replace__(meta=meta)) if "meta" in kind.__attributes__ else leave
    if "meta" not in kind.__struct_fields__:
        return leave
    return _copy_with_meta


def _copy_with_meta(value: Any, meta: Any) -> Any:
    made = value.__copy__()
    force_setattr(made, "meta", meta)  # the class may be frozen
    return made
