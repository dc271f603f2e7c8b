"""Python types to types that msgspec decodes, and to JSON Schema.

msgspec decodes and describes builtins, `Literal`, enums, dates, dataclasses, TypedDicts, named tuples, attrs classes,
Structs and containers of them, in compiled code. This module replaces types that msgspec does not accept with custom
types: unions that it cannot distinguish, recursive aliases, paths, enums of any values, constraints on types that are
not its own, and classes that have such members. Constraints may be msgspec's `Meta`, Pydantic's `Field` or
`annotated_types`.

Pydantic decodes its own classes, and types with its validators. It is less strict than msgspec unless its models say
otherwise: it accepts true for 1, and `"1"` for 1.

Pydantic does not get what msgspec rejects as a whole. It is an extra; it reads neither Structs nor attrs classes, and
before Python 3.12 no `typing.TypedDict`; and it tries all options of a union at each level: with a wrong value of a
recursive union of two dataclasses it is busy for 1.3 s if that has 15 levels, and for 19 s if it has 18. The union here
tries each value once.
"""

from __future__ import annotations

import enum
import re
from collections import OrderedDict, abc, deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, LiteralString, NewType, TypeVar, Union, get_args, get_origin
from uuid import UUID

import msgspec
from msgspec import Meta, UnsetType

from typedmcp_schemas import constraints as constraints_module
from typedmcp_schemas import records
from typedmcp_schemas.custom_types import (
    ANY_SCHEMA,
    CustomType,
    choice_type,
    constrained_type,
    converted_type,
    custom_type,
    define,
    flag_type,
    is_native,
    key_type,
    keyed_dict,
    text_type,
    type_name,
    union_type,
)
from typedmcp_schemas.definitions import REFERENCE, JsonSchema, collect_definitions, resolve_root
from typedmcp_schemas.pydantic_types import pydantic_input
from typedmcp_schemas.records import is_record
from typedmcp_schemas.type_cache import cached_by_type
from typedmcp_schemas.values import UnsupportedTypeError, is_pydantic

__all__ = ["has_custom_types", "has_keyword", "schema_of", "to_msgspec"]

_USABLE: Final = "use a dataclass, TypedDict, Struct or model"
"""The end of an error for a class that has no JSON form."""

_NATIVE_CLASSES: Final[frozenset[Any]] = frozenset({
    str, int, float, bool, NoneType, UnsetType, bytes, bytearray, date, timedelta, Decimal, UUID, list, dict, tuple,
    set, frozenset, abc.Collection, abc.Sequence, abc.MutableSequence, abc.Set, abc.MutableSet, abc.Mapping,
    abc.MutableMapping,
})  # fmt: skip
"""Classes that msgspec decodes and describes by itself."""
_MAPPINGS: Final[frozenset[Any]] = frozenset({dict, abc.Mapping, abc.MutableMapping})
_SETS: Final[frozenset[Any]] = frozenset({set, frozenset, abc.Set, abc.MutableSet})
_HASHABLE: Final[Any] = str | int | float | bool | None
"""The items of a bare `set`. msgspec would try to put lists into it, which raises `TypeError`."""
_FORMATS: Final[Mapping[Any, str]] = {datetime: "date-time", time: "time"}
"""Classes whose format msgspec omits if they have no time zone."""
_CONVERTED_FROM: Final[Mapping[Any, Any]] = {
    abc.Iterable: list, abc.Reversible: list, abc.Container: list, deque: list, OrderedDict: dict,
}  # fmt: skip
"""Containers that msgspec neither fills nor describes, and the container to decode instead."""
_REPLACEMENTS: Final = ((object, Any), (Any, Any), (None, NoneType), (LiteralString, str), (..., ...))
"""Hints that msgspec rejects or cannot describe, with an equivalent. `Any` and `...` are not classes."""


# Types


def to_msgspec(hint: object) -> Any:
    """Return the type that msgspec decodes for a Python type. Raises `UnsupportedTypeError`."""
    if hint.__class__ is type and hint in _NATIVE_CLASSES and hint not in _SETS:
        return hint  # most are
    return _adapt(hint)


@cached_by_type
def _adapt(hint: object) -> Any:
    return _Adapter().adapt(hint)


class _Adapter:
    """Adapts a type and the types within it.

    `for_schema` makes a type with a complete schema; values are not decoded as that type. With `of_results`, times
    without a zone have no format.
    """

    def __init__(self, *, for_schema: bool = False, of_results: bool = False, enclosing: tuple[Any, ...] = ()) -> None:
        self._for_schema, self._of_results = for_schema, of_results
        self._enclosing = enclosing
        """Records around the one that is being checked for members that msgspec rejects."""
        self._unfinished: list[tuple[Any, CustomType]] = []
        """Types that may refer to themselves, with the custom type that takes their place."""
        self._applied: set[str] = set()
        """Names of the constraints that applied to a type."""

    def adapt(self, hint: object, constraints: Mapping[str, Any] | None = None) -> Any:
        """Adapt a type with constraints. Those of a union move to its members, as msgspec requires."""
        hint = records.strip_qualifiers(hint)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self._adapt_annotated(arguments[0], arguments[1:], constraints or {})
        if origin in (Union, UnionType):
            return self._adapt_union(arguments, constraints)
        if type(origin or hint).__name__ == "TypeAliasType":
            return self._adapt_alias(hint, constraints)
        if isinstance(hint, NewType):
            made = self.adapt(hint.__supertype__, constraints)
            return hint if made == hint.__supertype__ else made
        if isinstance(hint, TypeVar):  # msgspec knows bounds, not constraints
            return self.adapt(hint.__bound__ or Union[hint.__constraints__ or (Any,)], constraints)  # noqa: UP007
        return self._constrain(self._adapt_plain(hint, origin), constraints or {}, origin or hint)

    def _adapt_annotated(self, inner: object, metadata: tuple[Any, ...], outer: Mapping[str, Any]) -> Any:
        foreign = constraints_module.read_metadata(item for item in metadata if not isinstance(item, Meta))
        if not (outer or foreign.is_restrictive or (self._for_schema and foreign.annotations)):
            hint: Any = Annotated[(inner, *metadata)]
            if self.adapt(inner) == inner and is_native(hint):
                return hint
        read = constraints_module.read_metadata(metadata)
        if read.needs_pydantic or (read.constraints and is_pydantic(inner)):
            made: Any = pydantic_input(Annotated[(inner, *metadata)])
        else:
            applied, self._applied = self._applied, set()
            made = self.adapt(inner, {**read.constraints, **outer})
            if unused := read.constraints.keys() - self._applied:
                raise UnsupportedTypeError(f"{min(unused)} does not apply to {type_name(inner)}")
            self._applied |= applied
        if read.predicates:
            made = constrained_type(made, {}, read.predicates)
        return Annotated[made, Meta(**read.annotations)] if read.annotations else made

    def _constrain(self, made: Any, constraints: Mapping[str, Any], kind: Any) -> Any:
        applied = {name: value for name, value in constraints.items() if constraints_module.is_applicable(name, kind)}
        if not applied:
            return made
        self._applied |= applied.keys()
        try:
            hint: Any = Annotated[made, Meta(**applied)]
        except TypeError:  # `Meta` takes numbers alone, no dates
            if kind in (int, float, str):
                raise
            return constrained_type(made, applied, [])
        return hint if is_native(hint) else constrained_type(made, applied, [])

    def _adapt_union(self, arguments: tuple[Any, ...], constraints: Mapping[str, Any] | None) -> Any:
        models = [option for option in arguments if is_pydantic(option)]
        options = [self.adapt(option, constraints) for option in arguments if option not in models]
        if models:  # Pydantic chooses among its own classes
            options.insert(arguments.index(models[0]), pydantic_input(Union[tuple(models)]))  # noqa: UP007
        made: Any = Union[tuple(options)]  # noqa: UP007
        return made if is_native(made) and not _are_mixed(options) else union_type(options, _property_names)

    def _adapt_alias(self, hint: object, constraints: Mapping[str, Any] | None) -> Any:
        if (custom := self._find_unfinished(hint)) is not None:
            return custom
        custom = custom_type(type_name(hint))
        self._unfinished.append((hint, custom))
        made = self.adapt(records.resolve_alias(hint), constraints)
        if not custom.is_referenced:  # msgspec rejects only aliases that refer to themselves
            self._unfinished.remove((hint, custom))
            return made
        define(custom, made)
        return custom

    def _adapt_record(self, hint: object) -> Any:
        """Return a record unchanged, or a Struct in its place if msgspec rejects some of its members."""
        if hint in self._enclosing:
            return hint
        if (custom := self._find_unfinished(hint)) is not None:
            return custom
        try:
            fields = records.fields_of(hint)
        except NameError as error:
            raise UnsupportedTypeError(f"{type_name(hint)}: {error}") from error
        checker = _Adapter(for_schema=self._for_schema, of_results=self._of_results, enclosing=(*self._enclosing, hint))
        kind = get_origin(hint) or hint
        is_known = is_native(hint) if records.parameters_of(kind) or records.is_typeddict(kind) else True
        if is_known and all(checker.adapt(field.hint) == field.hint for field in fields):
            return hint
        custom = custom_type(type_name(hint))
        if self._enclosing:  # the check only needs to see that the type changes
            return custom
        self._unfinished.append((hint, custom))
        fields = [field._replace(hint=self.adapt(field.hint)) for field in fields]
        mirror = records.mirror_struct(hint, custom.__name__, fields)
        define(custom, mirror, records.constructor_of(hint, fields))
        return custom

    def _find_unfinished(self, hint: object) -> CustomType | None:
        for known, custom in self._unfinished:
            if known == hint:
                custom.is_referenced = True
                return custom
        return None

    def _adapt_plain(self, hint: object, origin: object) -> Any:
        """Adapt a type that is neither a union nor an alias, without constraints."""
        for replaced, replacement in _REPLACEMENTS:
            if hint is replaced:
                return replacement
        if origin is Literal:
            return self._adapt_choice(hint, get_args(hint))
        kind: Any = origin or hint
        if isinstance(kind, CustomType):
            return hint
        if not isinstance(kind, type):
            raise UnsupportedTypeError(f"{type_name(hint)} has no JSON form{_class_meant(hint)}")
        if kind in _FORMATS:
            has_format = self._for_schema and not self._of_results
            return Annotated[kind, Meta(extra_json_schema={"format": _FORMATS[kind]})] if has_format else kind
        if is_pydantic(kind):
            return pydantic_input(hint)
        if is_record(kind):
            return self._adapt_record(hint)
        if issubclass(kind, enum.Enum):
            return flag_type(kind) if issubclass(kind, enum.Flag) else self._adapt_choice(hint, [*kind])
        return _adapt_class(kind) if kind in (hint, re.Pattern) else self._adapt_container(hint, kind)

    def _adapt_choice(self, hint: object, members: Sequence[Any]) -> Any:
        return hint if not self._for_schema and is_native(hint) else choice_type(type_name(hint), members)

    def _adapt_container(self, hint: Any, kind: Any) -> Any:
        if kind not in _NATIVE_CLASSES and kind not in _CONVERTED_FROM:
            raise UnsupportedTypeError(f"{type_name(hint)} has no JSON form; {_USABLE}")
        arguments = get_args(hint)
        made = tuple(map(self.adapt, arguments))
        if kind in _CONVERTED_FROM:
            return converted_type(kind, _CONVERTED_FROM[kind][made])
        if kind in _SETS and (unhashable := [item for item in arguments if _is_unhashable(item)]):
            raise UnsupportedTypeError(f"{type_name(hint)}: {type_name(unhashable[0])} is not hashable")
        if kind in _SETS and made == (Any,):
            return kind[_HASHABLE]
        if kind in _MAPPINGS and _strip_annotated(made[0]) not in (str, Any):
            return keyed_dict(key_type(arguments[0], made[0]), made[1])
        return hint if made == arguments else kind[made]


def _are_mixed(options: Sequence[Any]) -> bool:
    """Return whether constraints of one option would apply to another: msgspec keeps those of each JSON type once."""
    if not any(get_origin(option) is Annotated for option in options):
        return False
    found: dict[Any, str] = {}
    for option in options:
        bare = _strip_annotated(option)
        kind = float if bare is int else get_origin(bare) or bare
        metadata = repr(getattr(option, "__metadata__", ()))
        if found.setdefault(kind, metadata) != metadata:
            return True
    return False


def _adapt_class(kind: Any) -> Any:
    if kind in _SETS:
        return kind[_HASHABLE]
    if kind in _NATIVE_CLASSES:
        return kind
    if kind in _CONVERTED_FROM:
        return converted_type(kind, _CONVERTED_FROM[kind])
    if (custom := text_type(kind)) is not None:
        return custom
    if issubclass(kind, list | dict | tuple | set | frozenset | str | int | float):
        raise UnsupportedTypeError(f"{kind.__name__} has no JSON form: it is a subclass of a builtin class")
    raise UnsupportedTypeError(f"{kind.__name__} has no JSON form; {_USABLE}", kind)


def _class_meant(hint: object) -> str:
    """Return the end of an error for a value in place of a type, such as an object of a dataclass."""
    kind = type(hint)
    return f"; expected a type: pass the class {kind.__name__}" if is_record(kind) or is_pydantic(kind) else ""


def _is_unhashable(hint: object) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or origin is Literal:
        return False
    config: Any = getattr(hint, "__struct_config__", None)
    is_mutable = getattr(origin or hint, "__hash__", None) is None or (config is not None and not config.frozen)
    return is_mutable or any(map(_is_unhashable, arguments[:1] if origin is Annotated else arguments))


def _strip_annotated(hint: object) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


# Schemas


def schema_of(hint: object, *, of_results: bool = False) -> JsonSchema:
    """Return the JSON Schema, 2020-12, of an adapted type. Raises `UnsupportedTypeError` for one that has none.

    With `of_results` the formats of times need a type whose values have a zone, `Annotated[datetime, Meta(tz=True)]`.
    """
    return {**_describe_cached(hint, of_results)}


@cached_by_type
def has_keyword(hint: object, keyword: str) -> bool:
    """Return whether the schema of an adapted type, or of a type within it, may have a keyword."""
    return repr(keyword) in repr(schema_of(hint))


@cached_by_type
def has_custom_types(hint: object) -> bool:
    """Return whether an adapted type has members that msgspec passes to `dec_hook`."""
    try:
        msgspec.json.schema(hint)
    except TypeError:
        return True
    return False


def _property_names(hint: object) -> Iterable[str]:
    properties: JsonSchema = resolve_root(schema_of(hint)).get("properties", {})
    return properties


def _describe(hint: object, of_results: bool) -> JsonSchema:
    """Describe a type. Not cached within another type, since it depends on the definitions collected so far."""

    def schema_hook(kind: Any) -> JsonSchema:
        return {**kind.describe(partial(_describe, of_results=of_results))} or ANY_SCHEMA

    try:
        described = _Adapter(for_schema=True, of_results=of_results).adapt(hint)
        (root,), components = msgspec.json.schema_components(
            [described], schema_hook=schema_hook, ref_template=REFERENCE
        )
    except UnsupportedTypeError:
        raise
    except TypeError as error:
        raise UnsupportedTypeError(str(error).splitlines()[-1]) from error
    return collect_definitions(root, components)


_describe_cached = cached_by_type(_describe)
