"""Python types as JSON: their JSON Schema, and values of them from JSON and to it.

msgspec does it, compiled, for builtins, `Literal`, enums, dates, dataclasses, TypedDicts, named tuples, attrs classes,
Structs and containers of them. Here is what it lacks: unions that it cannot tell apart, paths, and everything of
Pydantic's, for which Pydantic is asked. Constraints may be msgspec's `Meta`, Pydantic's `Field` or `annotated_types`.
"""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, TypeVar, Union, cast, get_args, get_origin, is_typeddict
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta

from mcpspec._support.objects import is_array, is_object

__all__ = ["Unsupported", "adapted", "convert", "default_of", "fault", "from_json", "needs_hook", "plain", "schema_of"]

_CONSTRAINTS = {
    "ge": "ge", "gt": "gt", "le": "le", "lt": "lt", "multiple_of": "multiple_of", "min_length": "min_length",
    "max_length": "max_length", "pattern": "pattern", "regex": "pattern",
}  # fmt: skip
"""What constraints are called by `annotated_types` and Pydantic, and by msgspec."""

_NUMERIC = frozenset({"ge", "gt", "le", "lt", "multiple_of"})
_NUMBERS = (int, float, Decimal)
_NATIVE = (
    str, int, float, bool, NoneType, bytes, bytearray, datetime, date, time, timedelta, Decimal, UUID, list, dict,
    tuple, set, frozenset,
)  # fmt: skip
_PLACE = re.compile(r"(?P<what>.*?) - at `\$(?P<path>.*)`\Z", re.DOTALL)
_MEMBERS = {
    re.compile(r"Object missing required field `(.*)`\Z"): "required, but missing",
    re.compile(r"Object contains unknown field `(.*)`\Z"): "there is no such member",
}
"""What msgspec says of an object is said of the member here."""
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
    names: str

    def __repr__(cls) -> str:
        return cls.names


def _own(names: str, decode: Callable[[Any], Any], json_schema: Callable[[], dict[str, Any]]) -> Any:
    members = {"decode": staticmethod(decode), "json_schema": staticmethod(json_schema), "names": names}
    return _OwnMeta("_Own", (), members)


# Types


def adapted(hint: Any) -> Any:
    """A type as msgspec takes it, which decodes and describes the same. Raises `Unsupported`."""
    return _adapted(hint, {})


def _adapted(hint: Any, constraints: Mapping[str, Any]) -> Any:
    """The same with constraints on it, which msgspec wants at those members of a union that they are about."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *notes = get_args(hint)
        return _annotated(inner, notes, constraints)
    if (alias := getattr(hint, "__value__", None)) is not None and type(hint).__name__ == "TypeAliasType":
        return _adapted(alias, constraints)
    if isinstance(hint, NewType):
        return _adapted(hint.__supertype__, constraints)
    if origin in (Union, UnionType):
        return _union([_adapted(option, constraints) for option in get_args(hint)])
    return _constrained(_plain_type(hint, origin), constraints)


def _annotated(inner: Any, notes: list[Any], outer: Mapping[str, Any]) -> Any:
    constraints, about = _said(notes)
    made = _adapted(inner, {**constraints, **outer})
    return Annotated[made, Meta(**about)] if about else made


def _said(notes: Iterable[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What notes on a type demand of a value, and what they say about it. A text says what the value means."""
    constraints: dict[str, Any] = {}
    about: dict[str, Any] = {}
    for note in notes:
        if isinstance(note, str):
            about["description"] = note
            continue
        for name in ("title", "description", "examples", "extra_json_schema"):
            if (value := getattr(note, name, None)) is not None and (name != "title" or not callable(value)):
                about[name] = value
        for part in (note, *getattr(note, "metadata", ())):
            for name, ours in _CONSTRAINTS.items():
                value = getattr(part, name, None)
                if value is not None and not (name == "regex" and not isinstance(value, str)):
                    constraints[ours] = value.pattern if isinstance(value, re.Pattern) else value
        extra = getattr(note, "json_schema_extra", None)
        if is_object(extra):
            about["extra_json_schema"] = {**about.get("extra_json_schema", {}), **extra}
    return constraints, about


def _constrained(hint: Any, constraints: Mapping[str, Any]) -> Any:
    kind = get_origin(hint) or hint
    kept = {name: value for name, value in constraints.items() if _applies(name, kind)}
    return Annotated[hint, Meta(**kept)] if kept else hint


def _applies(constraint: str, kind: Any) -> bool:
    if not isinstance(kind, type) or issubclass(kind, NoneType | bool):
        return False
    if constraint in _NUMERIC:
        return issubclass(kind, _NUMBERS)
    return issubclass(kind, str) if constraint == "pattern" else not issubclass(kind, _NUMBERS)


def _plain_type(hint: Any, origin: Any) -> Any:
    if hint is Any or hint is object:
        return Any
    if hint is None:
        return NoneType
    if isinstance(hint, TypeVar):
        return adapted(hint.__bound__) if hint.__bound__ is not None else Any
    if origin is Literal or hint is Ellipsis:
        return hint
    if origin is not None and isinstance(origin, type):
        return _generic(hint, origin)
    if isinstance(hint, type):
        return _class(hint)
    raise Unsupported(f"{_name(hint)} has no JSON form")


def _generic(hint: Any, origin: type) -> Any:
    if _is_record(origin):  # a generic class of one's own
        return hint
    arguments = tuple(_adapted(argument, {}) for argument in get_args(hint))
    if issubclass(origin, tuple | dict | list | set | frozenset):
        return origin[arguments]  # type: ignore[index]
    if issubclass(origin, Mapping):
        return dict.__class_getitem__(arguments)
    if issubclass(origin, AbstractSet):
        return set.__class_getitem__(arguments)
    if issubclass(origin, Iterable):
        return list.__class_getitem__(arguments)
    return _by_pydantic(hint)


def _class(kind: type) -> Any:
    if kind is datetime:
        return Annotated[datetime, Meta(extra_json_schema={"format": "date-time"})]
    if kind in _NATIVE or issubclass(kind, enum.Enum) or _is_record(kind):
        return kind
    if issubclass(kind, PurePath):
        return _own(kind.__name__, lambda value: kind(_text(value)), lambda: {"type": "string", "format": "path"})
    if kind is re.Pattern:
        return _own("Pattern", lambda value: re.compile(_text(value)), lambda: {"type": "string", "format": "regex"})
    if issubclass(kind, list | dict | tuple | set | frozenset | str | int | float) and not _is_pydantic(kind):
        raise Unsupported(f"{kind.__name__} is a class of its own: nothing says how to make one of JSON")
    return _by_pydantic(kind)


def _is_record(kind: Any) -> bool:
    """Whether msgspec knows the members of a class."""
    if _is_pydantic(kind):
        return False
    return (
        is_typeddict(kind)
        or is_dataclass(kind)
        or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))
        or hasattr(kind, "__attrs_attrs__")
        or (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )


def _is_pydantic(kind: Any) -> bool:
    return hasattr(kind, "__get_pydantic_core_schema__") or hasattr(kind, "__pydantic_validator__")


def _by_pydantic(kind: Any) -> Any:
    """A type that Pydantic decodes, where it is installed."""
    if kind is bytes or not (_is_pydantic(kind) or isinstance(kind, type)):
        raise Unsupported(f"{_name(kind)} has no JSON form")
    if not _is_pydantic(kind) and "pydantic" not in sys.modules:  # who uses its types has imported it
        raise Unsupported(f"{_name(kind)} has no JSON form")
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticSchemaGenerationError

    try:
        adapter: Any = TypeAdapter(kind)
    except PydanticSchemaGenerationError as error:
        raise Unsupported(f"{_name(kind)} has no JSON form") from error
    return _own(_name(kind), _decoder_of(adapter), lambda: cast("dict[str, Any]", adapter.json_schema()))


def _decoder_of(adapter: Any) -> Callable[[Any], Any]:
    from pydantic import ValidationError

    def decode(value: Any) -> Any:
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
            raise ValueError(f"{first['msg']}{f' - at `${place}`' if place else ''}") from None

    return decode


def _union(options: list[Any]) -> Any:
    """A union, as msgspec takes it, or else as one that tries its members one after the other."""
    made: Any = Union[tuple(options)]  # noqa: UP007
    if not any(isinstance(_bare(option), _OwnMeta) for option in options):
        try:
            msgspec.json.Decoder(made)
        except TypeError:
            pass
        else:
            return made
    names = " | ".join(_name(option) for option in options)

    def decode(value: Any) -> Any:
        errors: list[str] = []
        for option in options:
            try:
                return convert(value, option)
            except ValueError as error:
                errors.append(str(error))
        raise ValueError(f"fits none of {names}: {'; '.join(errors)}")

    return _own(names, decode, lambda: {"anyOf": [schema_of(option) for option in options]})


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _name(hint: Any) -> str:
    bare = _bare(hint)
    return "None" if bare is NoneType else getattr(bare, "__name__", None) or str(bare).replace("typing.", "")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"Expected `str`, got `{type(value).__name__}`")  # as msgspec says it
    return value


# Values


def dec_hook(kind: Any, value: Any) -> Any:
    """How msgspec decodes what it does not know."""
    if isinstance(kind, _OwnMeta):
        return kind.decode(value)
    return _adapted_once(kind).decode(value)


@cache
def _adapted_once(kind: Any) -> Any:
    """A type within a dataclass, a Struct, …: those msgspec reads itself."""
    made = _class(kind)
    if not isinstance(made, _OwnMeta):
        raise Unsupported(f"{_name(kind)} has no JSON form")
    return made


@cache
def needs_hook(hint: Any) -> bool:
    """Whether a type as `adapted` gives it has members that msgspec does not know."""
    try:
        msgspec.json.schema(hint)
    except TypeError:
        return True
    return False


def convert(value: Any, hint: Any) -> Any:
    """The value of parsed JSON as an adapted type. Raises `ValueError`, which says where it does not fit."""
    return msgspec.convert(value, hint, dec_hook=dec_hook)


def from_json(text: str | bytes, hint: Any) -> Any:
    """The value of JSON text as an adapted type. Raises `ValueError`."""
    return msgspec.json.decode(text, type=hint, dec_hook=dec_hook)


def fault(error: Exception, place: str = "") -> str:
    """What is wrong with a value, its place first: `forecast.days: expected int, got str`."""
    found = _PLACE.match(str(error))
    what, path = (found["what"], found["path"]) if found else (str(error), "")
    while inner := _PLACE.match(what):
        what, path = inner["what"], path + inner["path"]
    for pattern, words in _MEMBERS.items():
        if member := pattern.match(what):
            path, what = f"{path}.{member[1]}", words
    where = (place + path).removeprefix(".").replace("[...]", "[]")
    text = (what[:1].lower() + what[1:]).replace("`", "")
    return f"{where}: {text}" if where else text


def plain(value: Any) -> Any:
    """A value as plain JSON: dicts, lists, strings, numbers, booleans, None. Raises `TypeError` for what has none."""
    return msgspec.to_builtins(value, enc_hook=enc_hook, str_keys=True)


def enc_hook(value: Any) -> Any:
    """How msgspec encodes what it does not know."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, re.Pattern):
        return value.pattern
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return [*value]
    if isinstance(value, Mapping):
        return {**value}
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
    try:
        (root,), components = msgspec.json.schema_components([hint], schema_hook=_schema_hook, ref_template=_REF)
    except TypeError as error:
        raise Unsupported(str(error).splitlines()[-1]) from error
    definitions: dict[str, Any] = dict.fromkeys(components)
    made = _hoisted({**root}, definitions)
    for name, definition in components.items():
        definitions[name] = _hoisted(definition, definitions)
    return _rooted(made, definitions)


def _schema_hook(kind: Any) -> dict[str, Any]:
    made = kind if isinstance(kind, _OwnMeta) else _adapted_once(kind)
    return {**made.json_schema()}


def _hoisted(schema: Any, definitions: dict[str, Any]) -> Any:
    """A schema whose inner definitions are among those of the root, under a name of their own if theirs is taken."""
    if is_array(schema):
        return [_hoisted(item, definitions) for item in schema]
    if not is_object(schema):
        return schema
    inner: dict[str, Any] = schema.get("$defs", {})
    renamed: dict[str, str] = {}
    for name, definition in inner.items():
        new = name
        while new in definitions and definitions[new] != definition:
            new += "_"
        definitions[new] = definition
        renamed[f"#/$defs/{name}"] = f"#/$defs/{new}"
    made = {key: _hoisted_member(key, value, definitions) for key, value in schema.items() if key not in _LEFT_OUT}
    return _renamed(made, renamed) if any(old != new for old, new in renamed.items()) else made


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


def _rooted(root: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A root that is the definition which it only refers to, unless others refer to that as well."""
    name = str(root.get("$ref", "")).removeprefix("#/$defs/")
    if name in definitions and len(root) == 1:
        text = msgspec.json.encode(definitions).decode()
        if f'"#/$defs/{name}"' not in text:
            root = definitions.pop(name)
    return {**root, **({"$defs": definitions} if definitions else {})}


def default_of(value: Any) -> Any:
    """A default as plain JSON; `UNSET` for one that has no JSON form."""
    try:
        return plain(value)
    except (TypeError, ValueError):
        return UNSET
