"""Types that msgspec does not know: classes with a function that decodes values and one that returns the schema.

Paths, patterns, IP addresses and flags are here because msgspec does not decode them, or describes them wrongly.
Pydantic does both, but it is an extra.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from enum import Flag
from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, Literal, TypeAlias, cast, get_args, get_origin

import msgspec
from msgspec import Meta

from typedmcp_schemas.constraints import find_violation, schema_keywords
from typedmcp_schemas.definitions import REFERENCE, JsonSchema
from typedmcp_schemas.error_text import describe_mismatch, format_value
from typedmcp_schemas.json_types import is_array, is_object
from typedmcp_schemas.keywords import INTEGER_KEY, NATURAL_KEY, NUMBER_KEY
from typedmcp_schemas.reasons import describe_error
from typedmcp_schemas.values import UnsupportedTypeError, ValueConversionError, convert, enc_hook

__all__ = [
    "ANY_SCHEMA", "CustomType", "SchemaOf", "choice_type", "constrained_type", "converted_type", "custom_type",
    "define", "flag_type", "is_native", "key_type", "keyed_dict", "text_type", "type_name", "union_type",
]  # fmt: skip

SchemaOf: TypeAlias = Callable[[Any], JsonSchema]
"""Describes a type within the one that is being described."""


class CustomType(type):
    """The class of types that msgspec passes to `dec_hook`. They live as long as the functions that use them."""

    decode: Callable[[Any], Any]
    """Converts parsed JSON. Raises `ValueError` or `TypeError` for values that do not fit."""
    describe: Callable[[SchemaOf], JsonSchema]
    """Returns the JSON Schema."""
    is_referenced: bool = False
    """True once another type refers to this one."""
    options: Sequence[Any] = ()
    """The types that values are first decoded as: one, or the options of a union."""

    def __instancecheck__(cls, value: object) -> bool:
        return True  # msgspec asks whether `dec_hook` returned an instance of the type

    def __repr__(cls) -> str:
        return cls.__name__


def custom_type(
    name: str,
    decode: Callable[[Any], Any] | None = None,
    describe: Callable[[SchemaOf], JsonSchema] | None = None,
    options: Sequence[Any] = (),
) -> CustomType:
    """Create a custom type. Its functions may follow later, so that they can refer to the type."""
    made: Any = CustomType(name, (), {})
    made.decode, made.describe, made.options = decode, describe, options
    return made  # type: ignore[no-any-return]


def is_native(hint: object) -> bool:
    """Return whether msgspec accepts a type as it is."""
    try:
        msgspec.json.Decoder(hint)
    except (TypeError, ValueError, NameError):  # it does not know type parameters in brackets, `class Box[T]`
        return False
    return True


def type_name(hint: object) -> str:
    """Return the name of a type for messages and definitions, without modules."""
    bare: object = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if bare is NoneType:
        return "None"
    return (
        bare.__name__
        if isinstance(bare, type) and not get_args(bare)
        else re.sub(r"(?<![\w.])\w[\w.]*", _last_part, str(bare))
    )


def _last_part(dotted: re.Match[str]) -> str:
    return dotted[0].rpartition(".")[2]


# Definitions

_described: ContextVar[tuple[CustomType, ...]] = ContextVar("described", default=())
"""Types whose schemas are being made."""


def define(custom: CustomType, inner: object, construct: Callable[[Any], Any] | None = None) -> None:
    """Make a custom type decode as `inner`, and become a definition in schemas, which may refer to itself.

    `construct` builds the value from the decoded one.
    """
    name = re.sub(r"\W", "_", custom.__name__)
    reference = {"$ref": REFERENCE.format(name=name)}

    def decode(value: object) -> Any:
        made = convert(value, inner)
        return made if construct is None else construct(made)

    def describe(schema_of: SchemaOf) -> JsonSchema:
        if custom in _described.get():
            return {**reference}
        token = _described.set((*_described.get(), custom))
        try:
            schema = schema_of(inner)
        finally:
            _described.reset(token)
        definitions = schema.pop("$defs", {})
        return {**reference, "$defs": {name: schema, **definitions}}

    custom.decode, custom.describe, custom.options = decode, describe, [inner]


# Types made of others


def converted_type(kind: Any, inner: Any) -> Any:
    """Return a type that decodes `inner` and passes it to the class `kind`, as in `deque(list)`.

    msgspec checks only the class of such values, not their items, and has no schema for them.
    """
    if kind.__module__ == "collections.abc":  # an abstract class needs no instance of its own
        return inner

    def decode(value: object) -> Any:
        return kind(convert(value, inner))

    return custom_type(type_name(kind), decode, lambda schema_of: schema_of(inner), [inner])


def constrained_type(
    inner: object, constraints: Mapping[str, Any], predicates: Sequence[Callable[[Any], Any]]
) -> CustomType:
    """Return a type with constraints where msgspec has none: on decimals, dates, unions and custom types."""
    name = type_name(inner)

    def decode(value: object) -> Any:
        made = convert(value, inner)
        if violation := find_violation(made, constraints):
            raise ValueError(f"Expected `{name}` {violation}")
        for predicate in predicates:
            if not _holds(predicate, made):
                raise ValueError(f"Expected `{name}` for which {getattr(predicate, '__name__', predicate)} holds")
        return made

    def describe(schema_of: SchemaOf) -> JsonSchema:
        schema = schema_of(inner)
        return {**schema, **schema_keywords(constraints, schema.get("type"))}

    return custom_type(name, decode, describe, [inner])


def _holds(predicate: Callable[[Any], Any], value: object) -> bool:
    try:
        return bool(predicate(value))
    except Exception:  # the predicate cannot handle the value, such as `value[0]` of an empty list
        return False


# Types written as text or number


def text_type(kind: Any) -> CustomType | None:
    """Return the type for a path, a pattern or an IP address, which are strings in JSON; None for other classes."""
    from pathlib import PurePath  # few functions take paths

    if issubclass(kind, PurePath):
        return _text_type(kind, kind, "path")
    if kind is re.Pattern:
        return _text_type(kind, _compile_pattern, "regex")
    if kind.__module__ == "ipaddress":
        return _text_type(kind, kind, kind.__name__.removesuffix("Address").lower())
    return None


def _text_type(kind: type, construct: Callable[[str], Any], json_format: str) -> CustomType:
    def decode(value: object) -> Any:
        if not isinstance(value, str):
            raise ValueError("expected string")
        return construct(value)

    return custom_type(kind.__name__, decode, lambda _: {"type": "string", "format": json_format})


def _compile_pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueConversionError(f"not a regular expression: {error}") from error


def flag_type(kind: type[Flag]) -> CustomType:
    """Return the type for flags that may be combined: a number in JSON. msgspec describes only single flags."""
    largest = sum(flag.value for flag in kind)
    if not largest or largest & (largest + 1):
        raise UnsupportedTypeError(f"{kind.__name__} has no JSON form: its flags are not 1, 2, 4 and so on")

    def decode(value: object) -> Any:
        return kind(convert(value, Annotated[int, Meta(ge=0, le=largest)]))

    return custom_type(kind.__name__, decode, lambda _: {"type": "integer", "minimum": 0, "maximum": largest})


ANY_SCHEMA: Final[JsonSchema] = {"type": ["null", "boolean", "number", "string", "array", "object"]}
"""The schema of a custom type that accepts every value: msgspec treats an empty schema as missing."""

_TEXT_KINDS: Final[Mapping[type, str]] = {str: "string", int: "integer"}
"""Classes whose values can be keys, with their JSON type."""


def choice_type(name: str, members: Sequence[Any], *, are_keys: bool = False) -> CustomType:
    """Return a type that accepts only certain values, each in its JSON form.

    msgspec accepts only enums whose values are all strings or all integers, and neither bytes nor enums in `Literal`.
    """
    try:
        forms = [msgspec.json.decode(msgspec.json.encode(member, enc_hook=enc_hook)) for member in members]
    except TypeError as error:
        raise UnsupportedTypeError(f"{name}: {error}") from error
    if are_keys:
        forms = [*map(str, forms)]
    kinds = [_TEXT_KINDS[kind] for kind in _TEXT_KINDS if all(type(form) is kind for form in forms)]

    def decode(value: Any) -> Any:
        value = [*value] if isinstance(value, tuple) else value
        for form, member in zip(forms, members, strict=True):
            if form == value and isinstance(cast(Any, form), bool) is isinstance(value, bool):
                return member
        raise ValueConversionError(describe_mismatch([*map(format_value, forms)], value))

    return custom_type(name, decode, lambda _: {**({"type": kinds[0]} if kinds else {}), "enum": forms})


# Keys


def key_type(hint: object, adapted: object) -> Any:
    """Return a type for keys, which are strings in JSON. Of a mixed choice, keep members that have a string form."""
    choice = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(choice) is Literal:
        members = get_args(choice)
    elif isinstance(choice, type) and issubclass(choice, enum.Enum) and not issubclass(choice, enum.Flag):
        members = tuple(choice)
    else:
        return adapted
    kinds: list[Any] = [type(member.value if isinstance(member, enum.Enum) else member) for member in members]
    if len(set(kinds)) == 1 and is_native(choice):
        return adapted
    named = [member for member, kind in zip(members, kinds, strict=True) if kind in _TEXT_KINDS]
    return choice_type(type_name(choice), named, are_keys=True)


def keyed_dict(keys: object, values: object) -> CustomType:
    """Return a type for a dict whose keys are not plain strings: msgspec's schemas do not describe keys."""
    hint = dict.__class_getitem__((keys, values))

    def decode_keys(value: object) -> Any:
        made = convert(value, inner)
        return {convert(key, keys): item for key, item in made.items()}  # msgspec does not pass keys to `dec_hook`

    def describe(schema_of: SchemaOf) -> JsonSchema:
        key_schema = _key_schema(schema_of(keys))
        if key_schema is None:
            raise UnsupportedTypeError(f"{type_name(hint)}: {type_name(keys)} cannot be a key of a JSON object")
        return {"type": "object", "propertyNames": key_schema, "additionalProperties": schema_of(values)}

    def decode(value: object) -> Any:
        return convert(value, hint)

    is_plain = not _contains_custom_type(keys)
    inner = dict.__class_getitem__((str, values))
    return custom_type(type_name(hint), decode if is_plain else decode_keys, describe, [inner])


def _contains_custom_type(hint: object) -> bool:
    if isinstance(hint, CustomType):
        return True
    return get_origin(hint) is not Literal and any(map(_contains_custom_type, get_args(hint)))


def _key_schema(values: Mapping[str, Any]) -> JsonSchema | None:
    """Return the schema of the string forms of values with the schema `values`; None if they have no string form."""
    if is_array(options := values.get("anyOf")):
        schemas = [schema for option in options if (schema := _key_schema(option)) is not None]
        return {"anyOf": schemas} if schemas else None
    if is_array(members := values.get("enum")):
        texts = [str(member) for member in members if type(member) in _TEXT_KINDS]
        return {"enum": texts} if texts else None
    kind = values.get("type")
    if kind == "integer":
        return {
            "pattern": NATURAL_KEY if values.get("minimum", values.get("exclusiveMinimum", -1)) >= 0 else INTEGER_KEY
        }
    if kind == "number":
        return {"pattern": NUMBER_KEY}
    if kind == "string" or (is_array(kind) and "string" in kind):
        return {**values, "type": "string"}
    return {} if not values or values == ANY_SCHEMA else None


_Outcome: TypeAlias = tuple[object, Any, ValueConversionError | None]
"""The value that was tried, what it was converted to, and the error if it does not fit."""

_outcomes: ContextVar[dict[tuple[int, int], _Outcome] | None] = ContextVar("outcomes", default=None)
"""Outcomes within the outermost union. Without them, nested unions would try each value 2, 4, 8, … times."""


def union_type(options: Sequence[Any], property_names: Callable[[Any], Iterable[str]]) -> CustomType:
    """Return a type that tries its options, starting with the one that declares most of the object's properties."""
    names = " | ".join(map(type_name, options))

    @cache
    def known_properties() -> list[set[str]]:
        return [{*property_names(option)} for option in options]

    def try_options(value: object) -> Any:
        ordered = options
        if is_object(value):
            ranks = [len(value.keys() & known) for known in known_properties()]
            ordered = [options[index] for index in sorted(range(len(options)), key=lambda index: -ranks[index])]
        errors: list[ValueConversionError] = []
        for option in ordered:
            try:
                return convert(value, option)
            except ValueConversionError as error:
                errors.append(error)
        raise _NoMatchError(names, errors)

    return custom_type(
        names,
        lambda value: _try_once(value, try_options),
        lambda schema_of: {"anyOf": [schema_of(option) for option in options]},
        options,
    )


def _try_once(value: object, try_options: Callable[[Any], Any]) -> Any:
    """Try a value, or return the outcome if the outermost union has tried it on the same options before."""
    if not (is_object(value) or is_array(value)):
        return try_options(value)
    outcomes = _outcomes.get()
    if outcomes is None:
        token = _outcomes.set({})
        try:
            return try_options(value)
        finally:
            _outcomes.reset(token)
    key = id(value), id(try_options)
    if key not in outcomes:
        try:
            outcomes[key] = value, try_options(value), None  # holds the value, so that its id stays its own
        except ValueConversionError as error:
            outcomes[key] = value, None, error
    _, made, failure = outcomes[key]
    if failure is not None:
        raise failure
    return made


class _NoMatchError(ValueConversionError):
    """A value fits no option. The reasons are formatted only on demand."""

    def __init__(self, names: str, errors: list[ValueConversionError]) -> None:
        super().__init__()
        self._names, self._errors = names, errors
        self._reason = ""

    def reason(self) -> str:
        self._reason = self._reason or f"fits none of {self._names}: {'; '.join(map(describe_error, self._errors))}"
        return self._reason
