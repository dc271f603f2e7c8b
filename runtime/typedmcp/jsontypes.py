"""Python types as JSON: their JSON Schema, and values of them from JSON and to it.

msgspec does it, compiled, for builtins, `Literal`, enums, dates, dataclasses, TypedDicts, named tuples, attrs classes,
Structs and containers of them. Here is what it lacks: unions that it cannot tell apart, aliases within themselves,
paths, enums of anything, constraints on other types than its own, and classes that have such members, of which it gets
a Struct instead. Constraints may be msgspec's `Meta`, Pydantic's `Field` or `annotated_types`.

What is Pydantic's, Pydantic is asked for: its classes, and validators in notes. It reads as its models say, which is
less strictly than msgspec unless they are strict: true for 1, and `"1"` for 1.
"""

from __future__ import annotations

import enum
import json
import re
import sys
from collections import OrderedDict, abc, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, LiteralString, NewType, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from mcpspec._support.objects import is_array, is_object
from mcpspec._support.words import expected, path_part, shown
from typedmcp import jsonnotes, jsonrecords
from typedmcp.jsonfaults import Unfit, convert, dec_hook, fault, of_key

__all__ = [
    "Unsupported",
    "adapted",
    "convert",
    "dec_hook",
    "default_of",
    "fault",
    "from_json",
    "needs_hook",
    "object_schema",
    "plain",
    "root_of",
    "schema_of",
    "written",
]

_NATIVE: Final[frozenset[Any]] = frozenset({
    str, int, float, bool, NoneType, UnsetType, bytes, bytearray, date, timedelta, Decimal, UUID, list, dict, tuple,
    set, frozenset, abc.Collection, abc.Sequence, abc.MutableSequence, abc.Set, abc.MutableSet, abc.Mapping,
    abc.MutableMapping,
})  # fmt: skip
"""Classes that msgspec reads, and describes as they are."""
_MAPPINGS: Final[frozenset[Any]] = frozenset({dict, abc.Mapping, abc.MutableMapping})
_SETS: Final[frozenset[Any]] = frozenset({set, frozenset, abc.Set, abc.MutableSet})
_HASHABLE: Final[Any] = str | int | float | bool | None
"""What a set can have that comes from JSON."""
_FORMATS: Final[Mapping[Any, str]] = {datetime: "date-time", time: "time"}
"""Those that it reads, and of which it does not say how they are written."""
_MADE_OF: Final[Mapping[Any, Any]] = {
    abc.Iterable: list, abc.Reversible: list, abc.Container: list, deque: list, OrderedDict: dict,
}  # fmt: skip
"""Those that it does not know, and what they can be made of."""
_SIMPLE: Final = ((object, Any), (Any, Any), (None, NoneType), (LiteralString, str), (..., ...))
_JSON_KINDS: Final[Mapping[type, str]] = {str: "string", int: "integer"}
_ANYTHING: Final = {"type": ["null", "boolean", "number", "string", "array", "object"]}
_INTEGER: Final = "^(0|-?[1-9][0-9]*)$"
_NATURAL: Final = "^(0|[1-9][0-9]*)$"
_NUMBER: Final = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
_ENCODED: Final = (NoneType, bool, int, float, str, bytes, list, tuple, set, frozenset, dict)
"""What msgspec encodes by itself, unless it is a key."""
_REF = "#/$defs/{name}"
_DATA = frozenset({"default", "enum", "const", "examples", "required"})
"""Members of a schema that hold no schemas,"""
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""and those that hold schemas by name."""
_LEFT_OUT = frozenset({"$defs", "uniqueItems"})
"""What is hoisted, and what is not so: a set takes an array that names a value twice."""


class Unsupported(TypeError):  # noqa: N818  # named for the state, as all of them are
    """A type that has no JSON form here."""


class _OwnMeta(type):
    """Types that are decoded here. They live for as long as functions that use them."""

    decode: Callable[[Any], Any]
    json_schema: Callable[[], dict[str, Any]]
    is_known: bool = False
    """Whether another type refers to it."""

    def __instancecheck__(cls, value: Any) -> bool:
        return True  # msgspec asks whether what it was given is what it had asked for

    def __repr__(cls) -> str:
        return cls.__name__


def _own(name: str, decode: Callable[[Any], Any] | None = None, describe: Callable[[], Any] | None = None) -> Any:
    made: Any = _OwnMeta(name, (), {})
    made.decode, made.json_schema = decode, describe
    return made


# Types


def adapted(hint: Any) -> Any:
    """A type as msgspec takes it, which decodes the same. Raises `Unsupported`."""
    if hint.__class__ is type and hint in _NATIVE and hint not in _SETS:
        return hint  # most are
    try:
        return _remembered_type(hint, repr(hint))
    except TypeError as error:
        if isinstance(error, Unsupported):
            raise
        return _Adapter().type(hint)  # a type that cannot be remembered


@lru_cache(maxsize=1024)
def _remembered_type(hint: Any, _in_full: str) -> Any:
    """`adapted` for types that are used again and again. Unions of another order are equal, and not the same."""
    return _Adapter().type(hint)


class _Adapter:
    """Adapts a type and those within it: for values, or so that its schema says all that there is to say."""

    def __init__(self, *, describes: bool = False, within: tuple[Any, ...] = ()) -> None:
        self._describes = describes
        self._within = within
        """Records that are being looked into, for whether msgspec takes them as they are."""
        self._made: list[tuple[Any, Any]] = []
        """Types that are decoded here and may be within themselves."""
        self._used: set[str] = set()
        """The constraints that applied to something."""

    def type(self, hint: Any, constraints: Mapping[str, Any] | None = None) -> Any:
        """A type with constraints on it, which msgspec wants at those members of a union that they are about."""
        hint = jsonrecords.unqualified(hint)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self._annotated(arguments[0], arguments[1:], constraints or {})
        if origin in (Union, UnionType):
            return self._union(arguments, constraints)
        if type(origin or hint).__name__ == "TypeAliasType":
            return self._alias(hint, constraints)
        if isinstance(hint, NewType):
            made = self.type(hint.__supertype__, constraints)
            return hint if made == hint.__supertype__ else made
        if isinstance(hint, TypeVar):
            return self.type(hint.__bound__ or Union[hint.__constraints__ or (Any,)], constraints)  # noqa: UP007
        return self._constrained(self._plain(hint, origin), constraints or {}, origin or hint)

    def _annotated(self, inner: Any, notes: tuple[Any, ...], outer: Mapping[str, Any]) -> Any:
        foreign = jsonnotes.read(note for note in notes if not isinstance(note, Meta))
        if not (outer or foreign.demands or (self._describes and foreign.about)):
            hint: Any = Annotated[(inner, *notes)]
            if self.type(inner) == inner and _is_taken(hint):
                return hint
        said = jsonnotes.read(notes)
        if said.by_pydantic or (said.constraints and _is_pydantic(inner)):
            made = _by_pydantic(Annotated[(inner, *notes)])
        else:
            used, self._used = self._used, set()
            made = self.type(inner, {**said.constraints, **outer})
            if unused := said.constraints.keys() - self._used:
                raise Unsupported(f"{min(unused)} does not apply to {_name(inner)}")
            self._used |= used
        if said.predicates:
            made = _checked(made, {}, said.predicates)
        return Annotated[made, Meta(**said.about)] if said.about else made

    def _constrained(self, made: Any, constraints: Mapping[str, Any], kind: Any) -> Any:
        kept = {name: value for name, value in constraints.items() if jsonnotes.applies(name, kind)}
        if not kept:
            return made
        self._used |= kept.keys()
        try:
            hint: Any = Annotated[made, Meta(**kept)]
        except TypeError:  # a date, say, is no limit there
            if kind in (int, float, str):
                raise
            return _checked(made, kept, [])
        return hint if _is_taken(hint) else _checked(made, kept, [])

    def _union(self, arguments: tuple[Any, ...], constraints: Mapping[str, Any] | None) -> Any:
        if self._describes:
            arguments = tuple(option for option in arguments if not jsonrecords.is_never(option))
        models = [option for option in arguments if _is_pydantic(option)]
        options = [self.type(option, constraints) for option in arguments if option not in models]
        if models:  # Pydantic knows best which of several it is
            options.insert(arguments.index(models[0]), _by_pydantic(Union[tuple(models)]))  # noqa: UP007
        made: Any = Union[tuple(options)]  # noqa: UP007
        told_apart = [option for option in get_args(made) if jsonrecords.tag_of(option)[0] is not None]
        if len(told_apart) > 2:  # of several tagged Structs msgspec asks for a tag anyway
            made = Union[tuple(option for option in get_args(made) if not jsonrecords.is_never(option))]  # noqa: UP007
        return made if _is_taken(made) else _tried(options)

    def _alias(self, hint: Any, constraints: Mapping[str, Any] | None) -> Any:
        if (own := self._known(hint)) is not None:
            return own
        own = _own(_name(hint))
        self._made.append((hint, own))
        made = self.type(jsonrecords.meaning(hint), constraints)
        if not own.is_known:
            self._made.remove((hint, own))
            return made
        _define(own, made)
        return own

    def _record(self, hint: Any) -> Any:
        if hint in self._within:
            return hint
        if (own := self._known(hint)) is not None:
            return own
        try:
            fields = jsonrecords.fields_of(hint)
        except NameError as error:
            raise Unsupported(f"{_name(hint)}: {error}") from error
        looking = _Adapter(describes=self._describes, within=(*self._within, hint))
        is_known = _is_taken(hint) if jsonrecords.parameters_of(get_origin(hint) or hint) else True
        if is_known and all(looking.type(field.hint) == field.hint for field in fields):
            return hint
        own = _own(_name(hint))
        if self._within:  # that it is another type is all there is to know
            return own
        self._made.append((hint, own))
        fields = [field._replace(hint=self.type(field.hint)) for field in fields]
        mirror = jsonrecords.mirror_of(hint, own.__name__, fields)
        _define(own, jsonrecords.enforced(mirror), jsonrecords.maker_of(hint, fields))
        return own

    def _tagged(self, made: Any, hint: Any) -> Any:
        """A record with its tag enforced, of which a schema says so anyway."""
        return made if self._describes or hint in self._within else jsonrecords.enforced(made)

    def _known(self, hint: Any) -> Any:
        for known, own in self._made:
            if known == hint:
                own.is_known = True
                return own
        return None

    def _plain(self, hint: Any, origin: Any) -> Any:
        for simple, made in _SIMPLE:
            if hint is simple:
                return made
        if origin is Literal:
            return self._choice(hint, get_args(hint))
        kind: Any = origin or hint
        if isinstance(kind, _OwnMeta):
            return hint
        if not isinstance(kind, type):
            raise Unsupported(f"{_name(hint)} has no JSON form")
        if kind in _FORMATS:
            return Annotated[kind, Meta(extra_json_schema={"format": _FORMATS[kind]})] if self._describes else kind
        if _is_pydantic(kind):
            return _by_pydantic(hint)
        if jsonrecords.is_record(kind):
            return self._tagged(self._record(hint), hint)
        if issubclass(kind, enum.Enum):
            return _flags(kind) if issubclass(kind, enum.Flag) else self._choice(hint, [*kind])
        return _class(kind) if kind in (hint, re.Pattern) else self._container(hint, kind)

    def _choice(self, hint: Any, members: Sequence[Any]) -> Any:
        return hint if not self._describes and _is_taken(hint) else _choice(_name(hint), members)

    def _container(self, hint: Any, kind: Any) -> Any:
        if kind not in _NATIVE and kind not in _MADE_OF:
            raise Unsupported(f"{_name(hint)} has no JSON form")
        arguments = get_args(hint)
        made = tuple(map(self.type, arguments))
        if kind in _MADE_OF:
            return _made_of(kind, _MADE_OF[kind][made])
        if kind in _SETS and (refused := [item for item in arguments if _is_unhashable(item)]):
            raise Unsupported(f"{_name(hint)}: a set has no place for {_name(refused[0])}")
        if kind in _SETS and made == (Any,):
            return kind[_HASHABLE]
        if kind in _MAPPINGS and _bare(made[0]) not in (str, Any):
            return _keyed(_as_key(arguments[0], made[0]), made[1])
        return hint if made == arguments else kind[made]


def _is_taken(hint: Any) -> bool:
    """Whether msgspec takes a type."""
    try:
        msgspec.json.Decoder(hint)
    except (TypeError, ValueError, NameError):  # it does not know variables that a class declares in brackets
        return False
    return True


def _is_unhashable(hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or origin is Literal:
        return False
    config: Any = getattr(hint, "__struct_config__", None)
    is_changeable = getattr(origin or hint, "__hash__", None) is None or (config is not None and not config.frozen)
    return is_changeable or any(map(_is_unhashable, arguments[:1] if origin is Annotated else arguments))


def _is_pydantic(kind: Any) -> bool:
    return hasattr(kind, "__get_pydantic_core_schema__") or hasattr(kind, "__pydantic_validator__")


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _name(hint: Any) -> str:
    bare = _bare(hint)
    if bare is NoneType:
        return "None"
    return bare.__name__ if isinstance(bare, type) and not get_args(bare) else re.sub(r"(\w+\.)+", "", str(bare))


# Types that are decoded here


def _class(kind: Any) -> Any:
    name = kind.__name__
    if kind in _SETS:
        return kind[_HASHABLE]
    if kind in _NATIVE:
        return kind
    if kind in _MADE_OF:
        return _made_of(kind, _MADE_OF[kind])
    if issubclass(kind, PurePath):
        return _own(name, lambda value: kind(_text(value)), lambda: {"type": "string", "format": "path"})
    if kind is re.Pattern:
        return _own(name, _pattern, lambda: {"type": "string", "format": "regex"})
    if kind.__module__ == "ipaddress":
        return _own(name, lambda value: kind(_text(value)), lambda: {"type": "string", "format": _ip_format(name)})
    if issubclass(kind, list | dict | tuple | set | frozenset | str | int | float):
        raise Unsupported(f"{name} is a class of its own: nothing says how to make one of JSON")
    raise Unsupported(f"{name} has no JSON form")


def _pattern(value: Any) -> re.Pattern[str]:
    try:
        return re.compile(_text(value))
    except re.error as error:
        raise Unfit(f"no regular expression: {error}") from error


def _ip_format(name: str) -> str:
    return name.removesuffix("Address").lower()


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"Expected `str`, got `{_kind_of(value)}`")  # as msgspec says it
    return value


def _kind_of(value: Any) -> str:
    name = type(value).__name__
    return {"dict": "object", "list": "array", "NoneType": "null"}.get(name, name)


def _made_of(kind: Any, inner: Any) -> Any:
    """A class that is made of another; an abstract one needs no more."""
    if kind.__module__ == "collections.abc":
        return inner
    return _own(_name(kind), lambda value: kind(convert(value, inner)), lambda: _described(inner))


def _as_key(hint: Any, made: Any) -> Any:
    """A type whose values are keys, which are texts: of a choice that knows others, too, those that have one."""
    choice = _bare(hint)
    if get_origin(choice) is Literal:
        members = get_args(choice)
    elif isinstance(choice, type) and issubclass(choice, enum.Enum) and not issubclass(choice, enum.Flag):
        members = tuple(choice)
    else:
        return made
    kinds: list[Any] = [type(member.value if isinstance(member, enum.Enum) else member) for member in members]
    if len(set(kinds)) == 1 and _is_taken(choice):
        return made
    named = [member for member, kind in zip(members, kinds, strict=True) if kind in _JSON_KINDS]
    return _choice(_name(choice), named, of_keys=True)


def _keyed(keys: Any, values: Any) -> Any:
    """A dict whose keys are not any texts."""
    hint = dict.__class_getitem__((keys, values))

    def decode(value: Any) -> Any:
        made = convert(value, dict.__class_getitem__((str, values)))
        return dict(zip(_keys(made, keys), made.values(), strict=True))

    def describe() -> dict[str, Any]:
        key_schema = _key_schema(_described(keys))
        if key_schema is None:
            raise Unsupported(f"{_name(hint)}: {_name(keys)} cannot be a key of a JSON object")
        return {"type": "object", "propertyNames": key_schema, "additionalProperties": _described(values)}

    return _own(_name(hint), decode if _has_own(keys) else lambda value: convert(value, hint), describe)


def _has_own(hint: Any) -> bool:
    return isinstance(hint, _OwnMeta) or (get_origin(hint) is not Literal and any(map(_has_own, get_args(hint))))


def _keys(value: Mapping[str, Any], hint: Any) -> list[Any]:
    """The keys of an object as a type that msgspec does not know."""
    made: list[Any] = []
    for key in value:
        try:
            made.append(convert(key, hint))
        except Unfit as error:
            raise Unfit(of_key(key, fault(error))) from error
    return made


def _key_schema(made: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema of keys that are texts of values of which this is the schema; None where none of these has one."""
    if is_array(options := made.get("anyOf")):
        found = [schema for option in options if (schema := _key_schema(option)) is not None]
        return {"anyOf": found} if found else None
    if is_array(members := made.get("enum")):
        texts = [str(member) for member in members if type(member) in _JSON_KINDS]
        return {"enum": texts} if texts else None
    kind = made.get("type")
    if kind == "integer":
        return {"pattern": _NATURAL if made.get("minimum", made.get("exclusiveMinimum", -1)) >= 0 else _INTEGER}
    if kind == "number":
        return {"pattern": _NUMBER}
    is_text = kind == "string" or (is_array(kind) and "string" in kind)
    return {**made, "type": "string"} if is_text else {} if not made or made == _ANYTHING else None


def _flags(kind: Any) -> Any:
    """Flags, which may be put together, as the number that they are."""
    most = sum(flag.value for flag in kind)
    if not most or most & (most + 1):
        raise Unsupported(f"{kind.__name__} has no JSON form: its flags are not 1, 2, 4 and so on")

    def decode(value: Any) -> Any:
        return kind(convert(value, Annotated[int, Meta(ge=0, le=most)]))

    return _own(kind.__name__, decode, lambda: {"type": "integer", "minimum": 0, "maximum": most})


def _choice(name: str, members: Sequence[Any], *, of_keys: bool = False) -> Any:
    """One of some values, each by its JSON form."""
    try:
        forms = [msgspec.json.decode(msgspec.json.encode(member, enc_hook=enc_hook)) for member in members]
    except TypeError as error:
        raise Unsupported(f"{name}: {error}") from error
    if of_keys:
        forms = [*map(str, forms)]
    kinds = [_JSON_KINDS[kind] for kind in _JSON_KINDS if all(type(form) is kind for form in forms)]

    def decode(value: Any) -> Any:
        value = [*cast(Any, value)] if isinstance(value, tuple) else value
        for form, member in zip(forms, members, strict=True):
            if form == value and isinstance(cast(Any, form), bool) is isinstance(value, bool):
                return member
        raise Unfit(expected([*map(shown, forms)], value))

    return _own(name, decode, lambda: {**({"type": kinds[0]} if kinds else {}), "enum": forms})


def _checked(inner: Any, constraints: Mapping[str, Any], predicates: Sequence[Callable[[Any], Any]]) -> Any:
    """A type with constraints that msgspec does not put on it."""
    name = _name(inner)

    def decode(value: Any) -> Any:
        made = convert(value, inner)
        if wrong := jsonnotes.misfit(made, constraints):
            raise ValueError(f"Expected `{name}` {wrong}")
        for predicate in predicates:
            if not _holds(predicate, made):
                raise ValueError(f"Expected `{name}` for which {getattr(predicate, '__name__', predicate)} holds")
        return made

    def describe() -> dict[str, Any]:
        schema = _described(inner)
        return {**schema, **jsonnotes.keywords(constraints, schema.get("type"))}

    return _own(name, decode, describe)


def _holds(predicate: Callable[[Any], Any], value: Any) -> bool:
    try:
        return bool(predicate(value))
    except Exception:  # of a value that it was not made for, such as the first item of none
        return False


_tries: ContextVar[dict[tuple[int, int], tuple[Any, Any, Unfit | None]] | None] = ContextVar("tries", default=None)
"""What was made of values that have been tried: each of several types within each of several would try them again."""


def _tried(options: Sequence[Any]) -> Any:
    """A union that msgspec cannot tell apart: its members are tried, first those that know most of an object."""
    names = " | ".join(map(_name, options))

    @cache
    def members() -> list[set[str]]:
        return [{*root_of(schema_of(option)).get("properties", ())} for option in options]

    def attempt(value: Any) -> Any:
        ordered = options
        if is_object(value):
            known = {id(option): len(value.keys() & names) for option, names in zip(options, members(), strict=True)}
            ordered = sorted(options, key=lambda option: -known[id(option)])
        errors: list[Unfit] = []
        for option in ordered:
            try:
                return convert(value, option)
            except Unfit as error:
                errors.append(error)
        raise _NoneFits(names, errors)

    def decode(value: Any) -> Any:
        return _once(value, attempt)

    return _own(names, decode, lambda: {"anyOf": [_described(option) for option in options]})


def _once(value: Any, attempt: Callable[[Any], Any]) -> Any:
    """What is made of a value, which is found out once in all that is made of what it is in."""
    if not (is_object(value) or is_array(value)):
        return attempt(value)
    tries = _tries.get()
    if tries is None:
        token = _tries.set({})
        try:
            return attempt(value)
        finally:
            _tries.reset(token)
    key = id(value), id(attempt)
    if key not in tries:
        try:
            tries[key] = value, attempt(value), None  # with the value, or another could have its id
        except Unfit as error:
            tries[key] = value, None, error
    _, made, wrong = tries[key]
    if wrong is not None:
        raise wrong
    return made


class _NoneFits(Unfit):
    """None of several types fits. Why is found out only if somebody wants to know."""

    def __init__(self, names: str, errors: list[Unfit]) -> None:
        super().__init__()
        self._names, self._errors = names, errors
        self._what = ""

    def what(self) -> str:
        self._what = self._what or f"fits none of {self._names}: {'; '.join(map(fault, self._errors))}"
        return self._what


_open: ContextVar[tuple[Any, ...]] = ContextVar("open", default=())
"""Types that are being described."""


def _define(own: Any, inner: Any, make: Callable[[Any], Any] | None = None) -> None:
    """Have a type be made of another, and be a definition in schemas, which may refer to itself."""
    name = re.sub(r"\W", "_", own.__name__)
    reference = {"$ref": _REF.format(name=name)}

    def decode(value: Any) -> Any:
        made = convert(value, inner)
        return made if make is None else make(made)

    def describe() -> dict[str, Any]:
        if own in _open.get():
            return reference
        token = _open.set((*_open.get(), own))
        try:
            schema = _described(inner)
        finally:
            _open.reset(token)
        definitions = schema.pop("$defs", {})
        return {**reference, "$defs": {name: schema, **definitions}}

    own.decode, own.json_schema = decode, describe


def _by_pydantic(hint: Any) -> Any:
    """A type that Pydantic decodes."""
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError

    try:
        adapter: Any = TypeAdapter(hint)
    except (PydanticUserError, NameError) as error:
        raise Unsupported(f"{_name(hint)}: {str(error).splitlines()[0]}") from error

    def decode(value: Any) -> Any:
        try:
            return adapter.validate_json(msgspec.json.encode(value))  # strict models, too, take a text for a date so
        except ValidationError as error:
            raise _unfit_for_pydantic(error) from None

    def describe() -> dict[str, Any]:
        try:
            return cast("dict[str, Any]", adapter.json_schema())
        except PydanticUserError as error:
            raise Unsupported(f"{_name(hint)}: {str(error).splitlines()[0]}") from error

    return _own(_name(hint), decode, describe)


def _unfit_for_pydantic(error: Any) -> Unfit:
    """The first thing that is wrong, in the place where Pydantic says that it is."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place, what = first["loc"], first["msg"]
    if place[-1:] == ("[key]",):
        place, what = place[:-2], of_key(place[-2], what)
    return Unfit(what, "".join(map(path_part, place)))


def written(hint: Any) -> Any:
    """A type, for whatever in it is Pydantic's, as what makes plain JSON of its values, and has a schema of that.

    None for one that has nothing of Pydantic's in it, or that Pydantic does not take.
    """
    if "pydantic" not in sys.modules or not _has_pydantic(hint, []):
        return None
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError
    from pydantic_core import PydanticSerializationError

    try:
        adapter: Any = TypeAdapter(hint)
        schema = adapter.json_schema(mode="serialization")
    except (PydanticUserError, NameError):
        return None

    def write(value: Any) -> Any:
        try:
            made = adapter.validate_python(value, from_attributes=True)
            return adapter.dump_python(made, mode="json", by_alias=True, warnings="error")
        except ValidationError as error:
            raise _unfit_for_pydantic(error) from error
        except PydanticSerializationError as error:
            raise Unfit(str(error).splitlines()[-1].strip()) from error

    return _own(_name(hint), write, lambda: {**schema})


def _has_pydantic(hint: Any, within: list[Any]) -> bool:
    """Whether anything in a type is Pydantic's."""
    hint = jsonrecords.unqualified(hint)
    kind: Any = get_origin(hint) or hint
    if _is_pydantic(kind):
        return True
    if kind is Annotated:
        inner, *notes = get_args(hint)
        return jsonnotes.read(notes).by_pydantic or _has_pydantic(inner, within)
    inner = [*get_args(hint)] if kind is not Literal else []
    if type(kind).__name__ == "TypeAliasType" and hint not in within:
        inner.append(jsonrecords.meaning(hint))
    if isinstance(hint, NewType):
        inner.append(hint.__supertype__)
    if isinstance(kind, type) and jsonrecords.is_record(kind) and hint not in within:
        inner += [field.hint for field in jsonrecords.fields_of(hint)]
    within.append(hint)
    return any(_has_pydantic(item, within) for item in inner)


# Values


def needs_hook(hint: Any) -> bool:
    """Whether a type as `adapted` gives it has members that msgspec does not know."""
    if not _compiled_schema(hint)[1]:
        return False
    try:
        return _remembered_need(hint)
    except TypeError:
        return not _is_known(hint)  # a type that cannot be remembered


def _is_known(hint: Any) -> bool:
    try:
        msgspec.json.schema(hint)
    except TypeError:
        return False
    return True


@lru_cache(maxsize=1024)
def _remembered_need(hint: Any) -> bool:
    return not _is_known(hint)


def from_json(text: str | bytes, hint: Any) -> Any:
    """The value of JSON text as an adapted type. Raises `ValueError`."""
    return msgspec.json.decode(text, type=hint, dec_hook=dec_hook)


def plain(value: Any) -> Any:
    """A value as plain JSON: dicts, lists, strings, numbers, booleans, None. Raises `TypeError` for what has none."""
    return msgspec.to_builtins(value, enc_hook=enc_hook, str_keys=True)


def enc_hook(value: Any) -> Any:
    """How msgspec encodes what it does not know."""
    if type(value) in _ENCODED:
        raise TypeError(f"a key that is {_name(type(value))} has no JSON form")
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, re.Pattern):
        return cast(Any, value).pattern
    if isinstance(value, Mapping):
        return {**cast("Mapping[str, Any]", value)}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [*value]
    if _is_pydantic(type(value)) or "pydantic" in sys.modules:
        return _by_pydantic_out(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _by_pydantic_out(value: Any) -> Any:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value)
    except PydanticSerializationError as error:
        raise TypeError(f"{type(value).__name__} has no JSON form") from error


# Schemas


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON Schema, 2020-12, of an adapted type. Raises `Unsupported` for one that has none."""
    return {**_compiled_schema(hint)[0]}


def object_schema(properties: Mapping[str, dict[str, Any]], rest: dict[str, Any] | bool) -> dict[str, Any]:
    """The schema of an object with these members, and others that are like `rest`; definitions are at its root."""
    definitions: dict[str, Any] = {}
    made = {name: _hoisted(schema, definitions) for name, schema in properties.items()}
    root = {"type": "object", "properties": made, "additionalProperties": _hoisted(rest, definitions)}
    return {**root, **({"$defs": definitions} if definitions else {})}


def _compiled_schema(hint: Any) -> tuple[dict[str, Any], bool]:
    """The schema of a type, and whether a hook was needed for it: most types are used again and again."""
    try:
        return _remembered_schema(hint)
    except TypeError as error:
        if isinstance(error, Unsupported):
            raise
        return _make_schema(hint)  # a type that cannot be remembered


def _described(hint: Any) -> dict[str, Any]:
    """The schema of a type within one that is being described: of that it may say but its name."""
    return {**_make_schema(hint)[0]}


def _make_schema(hint: Any) -> tuple[dict[str, Any], bool]:
    hooked = False

    def hook(kind: Any) -> dict[str, Any]:
        nonlocal hooked
        hooked = True
        return {**kind.json_schema()} or _ANYTHING

    try:
        described = _Adapter(describes=True).type(hint)
        (root,), components = msgspec.json.schema_components([described], schema_hook=hook, ref_template=_REF)
    except Unsupported:
        raise
    except TypeError as error:
        raise Unsupported(str(error).splitlines()[-1]) from error
    return _whole(root, components), hooked


_remembered_schema = lru_cache(maxsize=1024)(_make_schema)


def _whole(root: Mapping[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with all that it refers to."""
    definitions: dict[str, Any] = dict.fromkeys(components)
    made = _hoisted({**root}, definitions)
    for name, definition in components.items():
        definitions[name] = _hoisted(definition, definitions)
    return _rooted(made, definitions)


def _hoisted(schema: Any, definitions: dict[str, Any]) -> Any:
    """A schema whose inner definitions are among those of the root, under a name of their own if theirs is taken."""
    if is_array(schema):
        return [_hoisted(item, definitions) for item in schema]
    if not is_object(schema):
        return schema
    if schema.get("format") == "decimal":  # msgspec takes numbers as well
        schema = {**schema, "type": ["number", "string"]}
    inner: dict[str, Any] = schema.get("$defs", {})
    renamed: dict[str, str] = {}
    for name, definition in inner.items():
        new = name
        while new in definitions and definitions[new] != definition:
            new += "_"
        definitions[new] = definition
        if new != name:
            renamed[_REF.format(name=name)] = _REF.format(name=new)
            definitions[new] = _renamed(definition, renamed)
    made = {key: _hoisted_member(key, value, definitions) for key, value in schema.items() if key not in _LEFT_OUT}
    return _renamed(made, renamed) if renamed else made


def _hoisted_member(key: str, value: Any, definitions: dict[str, Any]) -> Any:
    if key in _DATA:
        return value
    if key in _MAPS and is_object(value):
        return {name: _hoisted(item, definitions) for name, item in value.items()}
    return _hoisted(value, definitions)


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    if is_array(schema):
        return [_renamed(item, names) for item in schema]
    if not is_object(schema):
        return schema
    return {key: names.get(value, value) if key == "$ref" else _renamed(value, names) for key, value in schema.items()}


def root_of(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without the reference that it may be."""
    name = str(schema.get("$ref", "")).removeprefix(_REF.format(name=""))
    return cast("dict[str, Any]", schema["$defs"][name]) if name else schema


def _rooted(root: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A root that is the definition which it only refers to, unless others refer to that as well."""
    name = str(root.get("$ref", "")).removeprefix(_REF.format(name=""))
    if name in definitions and len(root) == 1:
        text = msgspec.json.encode(definitions).decode()
        if f'"#/$defs/{name}"' not in text:
            root = definitions.pop(name)
    return {**root, **({"$defs": definitions} if definitions else {})}


def default_of(value: Any) -> Any:
    """A default as plain JSON; `UNSET` for one that has no JSON form, or another: NaN and infinity are null there."""
    try:
        return json.loads(json.dumps(plain(value), allow_nan=False))
    except (TypeError, ValueError):
        return UNSET
