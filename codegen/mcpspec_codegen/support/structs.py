"""The msgspec side of the generated types: bases, untagged unions, decoding and encoding."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, partial
from keyword import iskeyword
from math import isfinite
from operator import is_not
from threading import RLock
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)
from typing import Annotated as TypingAnnotated

import msgspec
from msgspec import UNSET, MsgspecError, UnsetType

from mcpspec.support.errors import DecodeError
from mcpspec.support.explain import TypeAccess, decode_error, explain
from mcpspec.support.objects import (
    LARGE_TEXT,
    Constant,
    Member,
    Shape,
    UnionOptions,
    classes_of,
    face_of,
    is_object,
    is_surely_finite,
    spread_member,
    spread_union,
    strip_absent,
)

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = [
    "ConstantStruct", "DecodeError", "Descriptor", "OpenObject", "Struct", "TypingAnnotated", "attributes_of",
    "build_open_object", "constant", "constructor", "copier", "dec_hook", "declared_struct", "decode", "encode", "fits",
    "from_builtins", "may_contain_non_finite", "member", "name_attributes", "reject_non_finite", "schema_hook",
    "shape_of", "to_builtins", "untagged", "validate",
]  # fmt: skip

T = TypeVar("T")


def _field_schema(kind: Any, _source: Any, handler: Any) -> Any:
    """Let a Pydantic model have a field of the type."""
    from mcpspec.support.struct_fields import field_schema

    return field_schema(kind, handler)


class Struct(msgspec.Struct, kw_only=True, repr_omit_defaults=True, rename="camel"):
    """Base of all objects. Members that a type does not declare are dropped when decoding.

    On the wire, attributes are in camel case: `mime_type` is `mimeType`. `field(name=…)` states other names.
    """

    __get_pydantic_core_schema__: ClassVar[Any] = classmethod(_field_schema)

    def __repr__(self) -> str:
        return f"{face_of(type(self))}{msgspec.Struct.__repr__(self)}"


def constant(value: T, *, optional: bool = False, name: str | None = None) -> T:
    """Return the value of a member that constructors fill in, and that decoding still requires."""
    return cast(T, Constant(value, optional, name))


_construct = type(msgspec.Struct).__call__


def name_attributes(cls: type[msgspec.Struct], members: Collection[str], error: TypeError) -> TypeError:
    """Return the error of a constructor, which names the attribute if a member was given by its name on the wire.

    Classes without constants have the constructor of msgspec, and its error: a function around it would take longer
    than the constructor itself.
    """
    attributes = attributes_of(cls)
    for name in members:
        if attributes.get(name, name) != name and name not in cls.__struct_fields__:
            return TypeError(f"{cls.__name__} has no member {name!r}; did you mean {attributes[name]!r}?")
    return error


def constructor(kind: type[T]) -> Callable[..., T]:
    """Return a faster constructor of a Struct, which fills in nothing: its caller gives all required members."""
    made: Any = kind if type(kind) is type(msgspec.Struct) else partial(_construct, kind)
    return cast("Callable[..., T]", made)


def copier(kind: Any, constants: dict[str, Any] | None = None) -> Callable[..., Any]:
    """Return a function that makes structs by copying one, which takes half the time of `constructor`, or less.

    It fills in `constants`. A required member that is neither given nor filled in raises `AttributeError`.
    """
    if type(kind) is type(msgspec.Struct):
        return cast("Callable[..., Any]", kind)
    constants = constants or {}
    config, names, defaults = kind.__struct_config__, kind.__struct_fields__, kind.__struct_defaults__
    if config.frozen or hasattr(kind, "__post_init__"):
        return partial(_construct, kind, **constants)
    required = [*names[: len(names) - len(defaults)]]
    required += [name for name, each in zip(names[len(required) :], defaults, strict=True) if each is msgspec.NODEFAULT]
    whole = dict.fromkeys(required) | constants
    copied, other = _construct(kind, **whole), _construct(kind, **whole)
    if any(map(is_not, msgspec.structs.astuple(copied), msgspec.structs.astuple(other))):  # defaults of their own
        return partial(_construct, kind, **constants)
    for name in required:
        if name not in constants:
            delattr(copied, name)
    return partial(msgspec.structs.replace, copied)


if TYPE_CHECKING:

    class ConstantStruct(Struct, kw_only=True):
        """Base of objects with members that constructors fill in."""

else:

    class _ConstantMeta(type(msgspec.Struct)):
        """Metaclass that turns `constant(…)` into a required member which constructors fill in."""

        def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
            constants: dict[str, Any] = {}
            for base in reversed(bases):
                constants |= getattr(base, "__constants__", {})
            for key, value in namespace.items():
                if isinstance(value, Constant):
                    constants[key] = value.value
                    default = UNSET if value.optional else msgspec.NODEFAULT
                    namespace[key] = msgspec.field(default=default, name=value.name)
            namespace["__constants__"], namespace["__make__"] = constants, None
            return super().__new__(mcs, name, bases, namespace, **config)

        def __call__(cls, *args: Any, **members: Any) -> Any:
            try:
                return cls.__make__(*args, **members)
            except (AttributeError, TypeError):
                return cls.__make_first__(args, members)

        def __make_first__(cls, args: tuple[Any, ...], members: dict[str, Any]) -> Any:
            """Construct the first object of the class, or say why members do not fit."""
            try:
                made = _construct(cls, *args, **(cls.__constants__ | members))
            except TypeError as error:
                raise name_attributes(cls, members, error) from None
            cls.__make__ = staticmethod(copier(cls, cls.__constants__))
            return made

    class ConstantStruct(Struct, kw_only=True, metaclass=_ConstantMeta):
        """Base of objects with members that constructors fill in."""


class Descriptor:
    """A declared member of an open object, as an attribute."""

    absent: Any = UNSET
    """The value of the attribute while the member is absent."""

    def __init__(self, wire: str, required: bool) -> None:
        self.wire = wire
        self.required = required

    def __get__(self, owner: OpenObject | None, kind: type[OpenObject]) -> Any:
        if owner is None:
            return self
        if self.required and self.wire not in owner:
            raise AttributeError(f"{kind.__name__} lacks its required member {self.wire!r}")
        return owner.get(self.wire, self.absent)

    def __set__(self, owner: OpenObject, value: Any) -> None:
        if value is self.absent:
            owner.pop(self.wire, None)
        else:
            owner[self.wire] = value


def member(*, name: str, default: Any = ...) -> Any:
    """Declare a member of an open object, by its name on the wire."""
    return Descriptor(name, default is ...)


@dataclass_transform(kw_only_default=True, field_specifiers=(member,))
class OpenObject(dict[str, Any]):
    """Base of objects that keep undeclared members: a `dict` with typed attributes for the declared ones.

    Construct it with keyword arguments; read and write other members by their key.
    """

    __slots__ = ()

    __attributes__: ClassVar[dict[str, Descriptor]] = {}
    __descriptor__: ClassVar[type[Descriptor]] = Descriptor
    __constants__: ClassVar[dict[str, Any]] = {}
    __check__: ClassVar[Any] = None
    """A part of the JSON Schema of the object, beside the types of its members: see `checks`."""

    __get_pydantic_core_schema__: ClassVar[Any] = classmethod(_field_schema)

    def __init_subclass__(cls) -> None:
        cls.__attributes__, cls.__constants__ = {}, {}
        for base in reversed(cls.__mro__[1:]):
            cls.__attributes__ |= getattr(base, "__attributes__", {})
            cls.__constants__ |= getattr(base, "__constants__", {})
        for name, value in list(vars(cls).items()):
            if isinstance(value, Constant):
                cls.__constants__[name] = value.value
                value = cls.__descriptor__(value.name or name, not value.optional)
                setattr(cls, name, value)
            if isinstance(value, Descriptor):
                cls.__attributes__[name] = value

    if not TYPE_CHECKING:

        def __init__(self, **members: Any) -> None:
            for name, value in {**self.__constants__, **members}.items():
                if name not in self.__attributes__:
                    raise TypeError(f"{type(self).__name__} declares no member {name!r}; from_builtins accepts any")
                setattr(self, name, value)
            missing = [n for n, d in self.__attributes__.items() if d.required and d.wire not in self]
            if missing:
                raise TypeError(f"{type(self).__name__} requires {', '.join(missing)}")

        def __setattr__(self, name: str, value: Any) -> None:
            """Reject undeclared attributes, which would not be encoded. Other members are set by their key."""
            if not hasattr(type(self), name):
                raise AttributeError(f"{type(self).__name__} declares no member {name!r}; set it by its key")
            super().__setattr__(name, value)

        def __or__(self, other: Any) -> Any:
            return build_open_object(type(self), {**self, **other}) if isinstance(other, dict) else NotImplemented

    def __repr__(self) -> str:
        return f"{face_of(type(self))}{type(self).__name__}({super().__repr__()})"

    def __reduce__(self) -> Any:
        return build_open_object, (type(self), dict(self))

    def copy(self) -> Any:
        """Return a shallow copy of the same type."""
        return build_open_object(type(self), self)

    def __copy__(self) -> Any:
        return self.copy()

    def __replace__(self, **members: Any) -> Any:
        copied = self.copy()
        for name, value in members.items():
            setattr(copied, name, value)
        return copied

    @classmethod
    def __decoder__(cls) -> Callable[[Any], Any]:
        """Return the function that converts parsed JSON to the object, with declared members checked and typed."""
        declared, typed, is_plain = _declared(cls)
        members = "".join(_TYPED.format(read=_attribute_code(name), wire=wire) for name, wire in typed)
        known: dict[str, Any] = {
            "cls": cls, "convert": msgspec.convert, "declared": declared, "dec_hook": dec_hook, "make": cls.__new__,
            "UNSET": UNSET,
        }  # fmt: skip
        # The code contains no received data, only the names of the class's members.
        exec(_DECODER.format(hook="" if is_plain else ", dec_hook=dec_hook", members=members), known)  # noqa: S102
        return _with_check(known["decode"], cls)


_DECODER = """
def decode(value):
    checked = convert(value, declared{hook})
    self = make(cls)
    self |= value
{members}
    return self
"""
"""Template of the decoder of an open object. A loop over the members instead of code for each takes twice as long,
and the hook as an argument, which few types need, takes a quarter of the call."""
_TYPED = """
    if (member := {read}) is not UNSET:
        self[{wire!r}] = member
"""


def _attribute_code(name: str) -> str:
    """Return code that reads an attribute. Handwritten classes may have names that are not identifiers."""
    is_plain = name.isascii() and name.isidentifier() and not iskeyword(name)
    return f"checked.{name}" if is_plain else f"getattr(checked, {name!r})"


def build_open_object(cls: type[OpenObject], members: dict[str, Any]) -> OpenObject:
    """Build an open object from members that have been checked already."""
    self = cls.__new__(cls)
    self.update(members)
    return self


def declared_struct(cls: type[OpenObject]) -> type[msgspec.Struct]:
    """Return a Struct of the members that an open object declares, which checks an object without converting it."""
    return _declared(cls)[0]


@cache
def _declared(cls: type[OpenObject]) -> tuple[type[msgspec.Struct], list[tuple[str, str]], bool]:
    """Return a Struct of the declared members, with which msgspec checks and converts them in one call.

    Also returns the members, by name and name on the wire, whose values conversion may change; and whether no member
    needs `dec_hook`.
    """
    hints = get_type_hints(cls, include_extras=True)
    fields = [
        (name, hints[name], msgspec.field(name=d.wire, default=msgspec.NODEFAULT if d.required else UNSET))
        for name, d in cls.__attributes__.items()
    ]
    declared = _convertible(msgspec.defstruct(cls.__name__, fields, kw_only=True, gc=False))  # short-lived
    typed = [(name, d.wire) for name, d in cls.__attributes__.items() if not _is_as_parsed(hints[name])]
    return declared, typed, not _has_hook(declared, set())


def _has_hook(hint: Any, seen: set[Any]) -> bool:
    """Return whether msgspec may need `dec_hook` for values of a type."""
    if get_origin(hint) is Literal or hint in seen:
        return False
    seen.add(hint)
    parts = [*get_args(hint), *(member.hint for member in getattr(shape_of(hint), "members", ()))]
    if (alias := getattr(hint, "__value__", None)) is not None:
        parts.append(alias)
    return hasattr(hint, "__decoder__") or any(_has_hook(part, seen) for part in parts)


def _is_as_parsed(hint: Any) -> bool:
    """Return whether conversion leaves all values of a type as they were parsed."""
    options = [option for option in spread_union(hint) if option is not UnsetType]
    return all(option in (str, bool, int) or get_origin(option) is Literal for option in options)


def _with_check(decode: Callable[[Any], Any], kind: Any) -> Callable[[Any], Any]:
    """Return a decoder of a type with its check, if it has one."""
    if kind.__check__ is None:
        return decode
    from mcpspec.support.checks import check_value  # here, since few types have one

    def decode_checked(value: Any) -> Any:
        made = decode(value)
        check_value(value, kind.__check__, kind.__module__, fits)
        return made

    return decode_checked


class _UntaggedMeta(type):
    __union__: Callable[[], Any]
    __check__: Any

    __get_pydantic_core_schema__ = _field_schema

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _runtime_classes(cls))

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, _runtime_classes(cls))

    def __or__(cls, other: Any) -> Any:
        """Return the union with another type, which msgspec could not decode as a union of its own.

        Write this union first: Python does not ask it if it is on the right.
        """
        return Union[cls, other] if other in _ABSENT else _widen(cls, other)  # noqa: UP007  # `|` would be this method

    def __decoder__(cls) -> Callable[[Any], Any]:
        """Return the function that converts parsed JSON to the best fitting member of the union."""
        found = spread_union(cls)
        others = [leaf for leaf in found if shape_of(leaf) is None]
        in_order = UnionOptions([*filter(shape_of, found)], shape_of).rank

        def decode(value: Any) -> Any:
            error: Exception | None = None
            for option in [*in_order(value), *others] if is_object(value) else found:
                try:
                    return _converter(option)(value)
                except (MsgspecError, ValueError) as caught:
                    error = error or caught
            raise ValueError(str(error))

        return _with_check(decode, cls)


def untagged(name: str, module: str, union: Callable[[], Any], check: Any = None) -> Any:
    """Return a union without a tag as a type that msgspec decodes through `dec_hook`.

    It may also be a single type, with a `check` of its values, as JSON Schema.
    """
    return _UntaggedMeta(name, (), {"__module__": module, "__union__": staticmethod(union), "__check__": check})


_ABSENT = (None, NoneType, UnsetType)
"""Types that msgspec itself allows beside one that it does not know."""


@cache
def _widen(left: Any, right: Any) -> Any:
    members: Any = Union[(*spread_member(left), *spread_member(right))]
    name = " | ".join(getattr(kind, "__name__", str(kind)) for kind in (left, right))
    return untagged(name, __name__, lambda: members)


@cache
def _runtime_classes(union: _UntaggedMeta) -> tuple[type, ...]:
    return tuple(kind for leaf in spread_union(union) for kind in classes_of(leaf))


class _Decoding(dict[Any, Callable[[Any], Any]]):
    """Decoders of the types that msgspec does not know, each created on first use."""

    def __missing__(self, kind: Any) -> Callable[[Any], Any]:
        make = getattr(kind, "__decoder__", None)
        if make is None:
            raise NotImplementedError(f"type {kind!r} cannot be decoded from JSON")
        decode: Callable[[Any], Any] = make()
        self[kind] = decode
        return decode


_decoding = _Decoding()


def dec_hook(kind: Any, value: Any) -> Any:
    """Decode untagged unions and open objects, which msgspec does not know. The `dec_hook` for your own decoders."""
    return _decoding[kind](value)


def schema_hook(kind: Any) -> dict[str, Any]:
    """Describe untagged unions and open objects, which msgspec does not know.

    The `schema_hook` for JSON Schemas, as in `msgspec.json.schema(structs.Tool, schema_hook=schema_hook)`.
    """
    from mcpspec.support.json_schema import custom_schema

    return custom_schema(kind)


@cache
def attributes_of(kind: type[msgspec.Struct | OpenObject]) -> dict[str, str]:
    """Return the attributes of a Struct or an open object by their names on the wire."""
    if issubclass(kind, OpenObject):
        return {each.wire: name for name, each in kind.__attributes__.items()}
    return {field.encode_name: field.name for field in msgspec.structs.fields(kind)}


@cache
def shape_of(kind: Any) -> Shape | None:
    """Return the members of a Struct or an open object; None for other types."""
    if not isinstance(kind, type):
        return None
    if issubclass(kind, OpenObject):
        hints = get_type_hints(kind, include_extras=True)
        return Shape(
            tuple(Member(d.wire, strip_absent(hints[n], UnsetType), d.required) for n, d in kind.__attributes__.items())
        )
    if not issubclass(kind, msgspec.Struct):
        return None
    hints = get_type_hints(kind, include_extras=True)
    members = [
        Member(f.encode_name, strip_absent(hints[f.name], UnsetType), f.required) for f in msgspec.structs.fields(kind)
    ]
    config = kind.__struct_config__
    if config.tag_field is not None:
        members.append(Member(config.tag_field, Literal[config.tag], required=True))
    return Shape(tuple(members), config.forbid_unknown_fields)


@cache
def _enforced(kind: Any) -> Any:
    """Return a type that msgspec decodes with its tag enforced.

    msgspec requires a tag only if it has to choose, so the type becomes a union with one whose tag matches no data.
    """
    config = getattr(kind, "__struct_config__", None)
    tag_field = None if config is None else config.tag_field
    if tag_field is None:
        return kind
    never: Any = msgspec.defstruct("_Never", [], tag_field=tag_field, tag="\0")
    return Union[kind, never]  # noqa: UP007  # `kind` may be an alias that has no `|`


_building = RLock()


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    # msgspec inspects a Struct when its first decoder is made, and other threads see the unfinished result: a process
    # that decodes in several threads from the start could crash.
    with _building:
        return msgspec.json.Decoder(_enforced(kind), dec_hook=dec_hook)


@cache
def _convertible(kind: Any) -> Any:
    """Return a type with its tag enforced, after msgspec has inspected it under the lock."""
    _decoder(kind)
    return _enforced(kind)


@cache
def _converter(kind: Any) -> Callable[[Any], Any]:
    """Return the function that converts parsed JSON to a type."""
    made = _convertible(kind)
    if _has_hook(kind, set()):
        return lambda value: msgspec.convert(value, made, dec_hook=dec_hook)
    return lambda value: msgspec.convert(value, made)  # a keyword argument would take a quarter of the call


_decoders_by_id: dict[int, tuple[Callable[[Any], Any], Any]] = {}
"""Decoders by the identity of their types. The types are held, so that no other type gets the same identity."""
_MAX_DECODERS = 1024


def _remember_decoder(kind: Any) -> Callable[[Any], Any]:
    """Return the decoder of a type, cached by identity: the hash of a union takes longer than a small call."""
    if len(_decoders_by_id) >= _MAX_DECODERS:
        _decoders_by_id.clear()
    decode = _decoder(kind).decode
    _decoders_by_id[id(kind)] = (decode, kind)
    return decode


_encode = msgspec.json.Encoder().encode

_FAILURES = (MsgspecError, ValueError, RecursionError)


def fits(value: object, kind: Any) -> bool:
    """Return whether parsed JSON fits a type."""
    try:
        _converter(kind)(value)
    except _FAILURES:
        return False
    return True


_types = TypeAccess(shape_of, fits)


def decode(buf: bytes | bytearray | memoryview | str, type: TypeForm[T]) -> T:
    """Decode JSON text as a type of this module: a class, or one of its unions.

    Raises `DecodeError`, which names the place and the cause.
    """
    try:
        try:
            known = _decoders_by_id[id(type)][0]
        except KeyError:
            known = _remember_decoder(type)
        decoded: T = known(buf)
        return decoded
    except _FAILURES as error:
        raise decode_error(buf, type, _types, error) from error


def encode(value: object) -> bytes:
    """Encode a value as JSON text, in UTF-8 and without line breaks.

    Raises `ValueError` for NaN and infinity, which JSON does not have.
    """
    text = _encode(value)
    # `rpartition` is the fastest way to search a word in a short text.
    if (len(text) > LARGE_TEXT or text.rpartition(b"null")[1]) and may_contain_non_finite(text, value):
        reject_non_finite(msgspec.to_builtins(value, builtin_types=(msgspec.Raw,)))
    return text


def may_contain_non_finite(text: bytes | bytearray, value: object, start: int = 0) -> bool:
    """Return whether a value may contain NaN or infinity, which msgspec encodes as `null`.

    Its text begins at `start`.
    """
    size = len(text) - start
    if size > LARGE_TEXT and is_surely_finite(value, size, _parts):
        return False
    return text.rfind(b"null", start) >= 0  # twice as fast as from the front


def _parts(value: object) -> Collection[Any] | None:
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.astuple(value)
    return () if value is UNSET or isinstance(value, msgspec.Raw) else None


def reject_non_finite(value: object) -> None:
    """Raise `ValueError` for NaN and infinity in parsed JSON."""
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("JSON has neither NaN nor infinity")
    if is_object(value):
        reject_non_finite([*value.values()])
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            reject_non_finite(item)


def from_builtins(value: object, type: TypeForm[T]) -> T:
    """Convert parsed JSON (dicts, lists, strings, numbers, booleans, None) to a type of this module.

    Raises `DecodeError`, which names the place and the cause.
    """
    try:
        return cast(T, _converter(cast(Any, type))(value))
    except _FAILURES as error:
        raise explain(value, type, _types, error) from error


def to_builtins(value: object) -> Any:
    """Convert a value to parsed JSON: dicts, lists, strings, numbers, booleans and None."""
    return msgspec.to_builtins(value)


def validate(value: T, type: TypeForm[Any] | None = None) -> T:
    """Check a value as it would be encoded, and return it. Constructors do not check, for speed.

    `type` is that of the value if it is not given. Raises `DecodeError`, which names the place and the cause.
    """
    try:
        made = msgspec.to_builtins(value, str_keys=True)
        reject_non_finite(made)
    except (TypeError, ValueError, RecursionError) as error:
        raise DecodeError("", str(error)) from error
    from_builtins(made, value.__class__ if type is None else type)
    return value
