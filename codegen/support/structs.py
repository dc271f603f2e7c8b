"""The msgspec side of the generated types: bases, untagged unions, decoding and encoding."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from keyword import iskeyword
from math import isfinite
from threading import RLock
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

from mcpspec._support.errors import DecodeError
from mcpspec._support.explain import Types, decode_error, explain
from mcpspec._support.objects import (
    LARGE,
    Constant,
    Member,
    Options,
    Shape,
    is_finite,
    is_object,
    leaves,
    present,
)

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = [
    "ConstantStruct", "DecodeError", "OpenObject", "Struct",
    "TypingAnnotated", "constant", "dec_hook", "decode", "encode", "from_builtins", "may_have_lost", "member",
    "refuse_non_finite", "to_builtins", "untagged",
]  # fmt: skip

T = TypeVar("T")


class Struct(msgspec.Struct, kw_only=True, repr_omit_defaults=True):
    """Base of all objects. Members that a type does not declare are dropped when decoding."""


def constant(value: T, *, optional: bool = False, name: str | None = None) -> T:
    """The default of a member with a fixed value: constructors write it, decoding still asks for it."""
    return cast(T, Constant(value, optional, name))


if TYPE_CHECKING:

    class ConstantStruct(Struct, kw_only=True):
        """Base of objects with constant members."""

else:

    class _ConstantMeta(type(msgspec.Struct)):
        """Turns `constant(…)` into what msgspec knows: a required member that constructors fill in."""

        def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
            constants: dict[str, Any] = {}
            for base in reversed(bases):
                constants |= getattr(base, "__constants__", {})
            for key, value in namespace.items():
                if isinstance(value, Constant):
                    constants[key] = value.value
                    default = UNSET if value.optional else msgspec.NODEFAULT
                    namespace[key] = msgspec.field(default=default, name=value.name)
            namespace["__constants__"] = constants
            return super().__new__(mcs, name, bases, namespace, **config)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            for name, value in cls.__constants__.items():
                if name not in kwargs:
                    kwargs[name] = value
            return super().__call__(*args, **kwargs)

    class ConstantStruct(Struct, kw_only=True, metaclass=_ConstantMeta):
        """Base of objects with constant members."""


class _Descriptor:
    """A declared member of an open object, as an attribute."""

    def __init__(self, wire: str, required: bool) -> None:
        self.wire = wire
        self.required = required

    def __get__(self, owner: OpenObject | None, kind: type[OpenObject]) -> Any:
        if owner is None:
            return self
        if self.required and self.wire not in owner:
            raise AttributeError(f"{kind.__name__} without its required member {self.wire!r}")
        return owner.get(self.wire, UNSET)

    def __set__(self, owner: OpenObject, value: Any) -> None:
        if value is UNSET:
            owner.pop(self.wire, None)
        else:
            owner[self.wire] = value


def member(*, name: str, default: Any = ...) -> Any:
    """Declare a member of an open object, by its name on the wire."""
    return _Descriptor(name, default is ...)


@dataclass_transform(kw_only_default=True, field_specifiers=(member,))
class OpenObject(dict[str, Any]):
    """Base of objects that keep every member they are given: a `dict` with typed attributes for those declared.

    Construct it with keyword arguments; read and write other members by their key.
    """

    __slots__ = ()

    __attributes__: ClassVar[dict[str, _Descriptor]] = {}
    __constants__: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        cls.__attributes__, cls.__constants__ = {}, {}
        for base in reversed(cls.__mro__[1:]):
            cls.__attributes__ |= getattr(base, "__attributes__", {})
            cls.__constants__ |= getattr(base, "__constants__", {})
        for name, value in list(vars(cls).items()):
            if isinstance(value, Constant):
                cls.__constants__[name] = value.value
                value = _Descriptor(value.name or name, not value.optional)
                setattr(cls, name, value)
            if isinstance(value, _Descriptor):
                cls.__attributes__[name] = value

    if not TYPE_CHECKING:

        def __init__(self, **members: Any) -> None:
            for name, value in {**self.__constants__, **members}.items():
                if name not in self.__attributes__:
                    raise TypeError(f"{type(self).__name__} declares no member {name!r}; from_builtins takes any")
                setattr(self, name, value)
            missing = [n for n, d in self.__attributes__.items() if d.required and d.wire not in self]
            if missing:
                raise TypeError(f"{type(self).__name__} needs {', '.join(missing)}")

        def __setattr__(self, name: str, value: Any) -> None:
            """An attribute that is not declared would not be on the wire: it has to be set by its key."""
            if not hasattr(type(self), name):
                raise AttributeError(f"{type(self).__name__} declares no member {name!r}; set it by its key")
            super().__setattr__(name, value)

        def __or__(self, other: Any) -> Any:
            return _rebuild(type(self), {**self, **other}) if isinstance(other, dict) else NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()})"

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), dict(self))

    def copy(self) -> Any:
        """A shallow copy of the same type."""
        return _rebuild(type(self), self)

    @classmethod
    def __decoder__(cls) -> Callable[[Any], Any]:
        """What makes the object of a parsed JSON value; declared members are checked and typed."""
        declared, typed, is_plain = _declared(cls)
        members = "".join(_TYPED.format(read=_read(name), wire=wire) for name, wire in typed)
        known: dict[str, Any] = {
            "cls": cls, "convert": msgspec.convert, "declared": declared, "dec_hook": dec_hook, "make": cls.__new__,
            "UNSET": UNSET,
        }  # fmt: skip
        # Nothing that was received is in this code, only names that the class gives its members.
        exec(_DECODER.format(hook="" if is_plain else ", dec_hook=dec_hook", members=members), known)  # noqa: S102
        decode: Callable[[Any], Any] = known["decode"]
        return decode


_DECODER = """
def decode(value):
    checked = convert(value, declared{hook})
    self = make(cls)
    self |= value
{members}
    return self
"""
"""How an open object of one type is decoded. A loop over the names of its members, in place of code for each, takes
twice as long, and the hook as an argument, which few types need, a quarter of the call."""
_TYPED = """
    if (member := {read}) is not UNSET:
        self[{wire!r}] = member
"""


def _read(name: str) -> str:
    """Code that reads an attribute; a class made by hand may have names that are no names in code."""
    is_plain = name.isascii() and name.isidentifier() and not iskeyword(name)
    return f"checked.{name}" if is_plain else f"getattr(checked, {name!r})"


def _rebuild(cls: type[OpenObject], members: dict[str, Any]) -> OpenObject:
    self = cls.__new__(cls)
    self.update(members)
    return self


@cache
def _declared(cls: type[OpenObject]) -> tuple[type[msgspec.Struct], list[tuple[str, str]], bool]:
    """A Struct of just the declared members, by which msgspec checks and converts them in one call.

    Then those of them, by name and name on the wire, that it may make something else of than what was parsed; and
    whether it needs no hook for any.
    """
    hints = get_type_hints(cls, include_extras=True)
    fields = [
        (name, hints[name], msgspec.field(name=d.wire, default=msgspec.NODEFAULT if d.required else UNSET))
        for name, d in cls.__attributes__.items()
    ]
    declared = _convertible(msgspec.defstruct(cls.__name__, fields, kw_only=True, gc=False))  # it does not live long
    typed = [(name, d.wire) for name, d in cls.__attributes__.items() if not _is_as_parsed(hints[name])]
    return declared, typed, not _has_hook(declared, set())


def _has_hook(hint: Any, seen: set[Any]) -> bool:
    """Whether values of a type may consist of what msgspec needs `dec_hook` for."""
    if get_origin(hint) is Literal or hint in seen:
        return False
    seen.add(hint)
    parts = [*get_args(hint), *(member.hint for member in getattr(_shape(hint), "members", ()))]
    if (alias := getattr(hint, "__value__", None)) is not None:
        parts.append(alias)
    return hasattr(hint, "__decoder__") or any(_has_hook(part, seen) for part in parts)


def _is_as_parsed(hint: Any) -> bool:
    """Whether values of a type are what JSON is parsed to, whatever they are."""
    options = [option for option in leaves(hint) if option is not UnsetType]
    return all(option in (str, bool, int) or get_origin(option) is Literal for option in options)


class _UntaggedMeta(type):
    __union__: Callable[[], Any]

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _runtime_classes(cls))

    def __decoder__(cls) -> Callable[[Any], Any]:
        """What gives the member that a parsed JSON value fits, best match first."""
        found = leaves(cls)
        others = [leaf for leaf in found if _shape(leaf) is None]
        in_order = Options([*filter(_shape, found)], _shape).best_first

        def decode(value: Any) -> Any:
            error: Exception | None = None
            for option in [*in_order(value), *others] if is_object(value) else found:
                try:
                    return _converter(option)(value)
                except (MsgspecError, ValueError) as caught:
                    error = error or caught
            raise ValueError(str(error))

        return decode


def untagged(name: str, module: str, union: Callable[[], Any]) -> Any:
    """A union that msgspec cannot tell apart by itself, as a type that it decodes through a hook."""
    return _UntaggedMeta(name, (), {"__module__": module, "__union__": staticmethod(union)})


@cache
def _runtime_classes(union: _UntaggedMeta) -> tuple[type, ...]:
    return tuple(kind for leaf in leaves(union) for kind in _classes_of(leaf))


def _classes_of(leaf: Any) -> list[type]:
    if get_origin(leaf) is Literal:
        return [type(value) for value in get_args(leaf)]
    if get_origin(leaf) is TypingAnnotated:
        return _classes_of(get_args(leaf)[0])
    return [get_origin(leaf) or leaf]


class _Decoding(dict[Any, Callable[[Any], Any]]):
    """How types are decoded that msgspec does not know, put together when they are first met."""

    def __missing__(self, kind: Any) -> Callable[[Any], Any]:
        make = getattr(kind, "__decoder__", None)
        if make is None:
            raise NotImplementedError(f"type {kind!r} has no JSON form")
        decode: Callable[[Any], Any] = make()
        self[kind] = decode
        return decode


_decoding = _Decoding()


def dec_hook(kind: Any, value: Any) -> Any:
    """How msgspec decodes what it does not know: untagged unions and open objects. For decoders of one's own."""
    return _decoding[kind](value)


@cache
def _shape(kind: Any) -> Shape | None:
    """The members of a Struct or an open object; None for other types."""
    if not isinstance(kind, type):
        return None
    if issubclass(kind, OpenObject):
        hints = get_type_hints(kind, include_extras=True)
        return Shape(
            tuple(Member(d.wire, present(hints[n], UnsetType), d.required) for n, d in kind.__attributes__.items())
        )
    if not issubclass(kind, msgspec.Struct):
        return None
    hints = get_type_hints(kind, include_extras=True)
    members = [
        Member(f.encode_name, present(hints[f.name], UnsetType), f.required) for f in msgspec.structs.fields(kind)
    ]
    config = kind.__struct_config__
    if config.tag_field is not None:
        members.append(Member(config.tag_field, Literal[config.tag], required=True))
    return Shape(tuple(members), config.forbid_unknown_fields)


@cache
def _enforced(kind: Any) -> Any:
    """A type that msgspec decodes with its tag enforced.

    msgspec asks for a tag only where it has to choose: a second type that no data names makes it ask.
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
    # msgspec looks at a Struct's members when the first decoder needs them, and shows other threads what is not
    # ready yet: a process that decodes in several threads from the start would crash.
    with _building:
        return msgspec.json.Decoder(_enforced(kind), dec_hook=dec_hook)


@cache
def _convertible(kind: Any) -> Any:
    """A type with its tag enforced, which msgspec has looked at under the lock."""
    _decoder(kind)
    return _enforced(kind)


@cache
def _converter(kind: Any) -> Callable[[Any], Any]:
    """What makes a type of parsed JSON."""
    made = _convertible(kind)
    if _has_hook(kind, set()):
        return lambda value: msgspec.convert(value, made, dec_hook=dec_hook)
    return lambda value: msgspec.convert(value, made)  # an argument by keyword would cost a quarter of the call


_met: dict[int, tuple[Callable[[Any], Any], Any]] = {}
"""What decodes a type, by the type's identity. The type stays in there, and so stays the only one of that identity."""
_MOST_MET = 1024


def _meet(kind: Any) -> Callable[[Any], Any]:
    """What decodes a type not known by its identity yet: the hash of a union takes longer than a small call."""
    if len(_met) >= _MOST_MET:
        _met.clear()
    decode = _decoder(kind).decode
    _met[id(kind)] = (decode, kind)
    return decode


_encode = msgspec.json.Encoder().encode

_FAILURES = (MsgspecError, ValueError, RecursionError)


def _fits(value: object, kind: Any) -> bool:
    try:
        _converter(kind)(value)
    except _FAILURES:
        return False
    return True


_types = Types(_shape, _fits)


def decode(buf: bytes | bytearray | memoryview | str, type: TypeForm[T]) -> T:
    """The value of JSON text as a type of this module: a class, or one of its unions.

    Raises `DecodeError`, which names the place and the cause.
    """
    try:
        try:
            known = _met[id(type)][0]
        except KeyError:
            known = _meet(type)
        decoded: T = known(buf)
        return decoded
    except _FAILURES as error:
        raise decode_error(buf, type, _types, error) from error


def encode(value: object) -> bytes:
    """JSON text of a value, in UTF-8 and without line breaks.

    Raises `ValueError` for NaN and infinity, which JSON cannot say.
    """
    text = _encode(value)
    # Of all ways to look for a word in a short text this one is the fastest.
    if (len(text) > LARGE or text.rpartition(b"null")[1]) and may_have_lost(text, value):
        refuse_non_finite(msgspec.to_builtins(value, builtin_types=(msgspec.Raw,)))
    return text


def may_have_lost(text: bytes | bytearray, value: object, start: int = 0) -> bool:
    """Whether NaN or infinity may be in a value whose text begins at `start`: msgspec writes `null` for them."""
    size = len(text) - start
    if size > LARGE and is_finite(value, size, _parts):
        return False
    return text.rfind(b"null", start) >= 0  # twice as fast as from the front


def _parts(value: object) -> Collection[Any] | None:
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.astuple(value)
    return () if value is UNSET or isinstance(value, msgspec.Raw) else None


def refuse_non_finite(value: object) -> None:
    """Raises `ValueError` for NaN and infinity in parsed JSON."""
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("JSON has neither NaN nor infinity")
    if is_object(value):
        refuse_non_finite([*value.values()])
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            refuse_non_finite(item)


def from_builtins(value: object, type: TypeForm[T]) -> T:
    """The value of parsed JSON (dicts, lists, strings, numbers, booleans, None) as a type of this module.

    Raises `DecodeError`, which names the place and the cause.
    """
    try:
        return cast(T, _converter(cast(Any, type))(value))
    except _FAILURES as error:
        raise explain(value, type, _types, error) from error


def to_builtins(value: object) -> Any:
    """A value as parsed JSON: dicts, lists, strings, numbers, booleans and None."""
    return msgspec.to_builtins(value)
