"""The msgspec side of the everyday types: absent members are None, and constructors accept what people write."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_args
from typing import Annotated as TypingAnnotated

import msgspec

from mcpspec.support import structs as exact
from mcpspec.support.annotations import named_annotations, remove_annotation
from mcpspec.support.errors import DecodeError
from mcpspec.support.null import NULL
from mcpspec.support.objects import Shape, is_array, is_object, spread_union
from mcpspec.support.structs import (
    constant,
    constructor,
    dec_hook,
    encode,
    schema_hook,
    shape_of,
    to_builtins,
    untagged,
)
from mcpspec.support.walk import find_misplaced_nulls, format_path, walk_objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import TypeForm
else:
    TypeForm = type  # so that annotations can be evaluated without typing-extensions

__all__ = [
    "NULL",
    "ConstantStruct", "DecodeError", "OpenObject", "Struct",
    "TypingAnnotated", "constant", "constructor", "dec_hook", "decode", "encode", "find_null_members",
    "from_builtins", "is_everyday", "member", "schema_hook", "to_builtins", "untagged",
    "validate",
]  # fmt: skip

T = TypeVar("T")


class _Data:
    """Raise an error about `data`, which results have in another library, and say where that is here.

    A member `data` hides it. For names on the wire, such as `isError`, Python itself suggests the attribute: a method
    `__getattr__` could say more, and would slow down every attribute of every object.
    """

    def __get__(self, value: object, owner: type) -> Any:
        meant = "; a result has `content` and `structured_content`"
        fields = getattr(owner, "__struct_fields__", ())
        text = f"{owner.__name__!r} object has no attribute 'data'{meant if 'structured_content' in fields else ''}"
        raise AttributeError(text, name="data", obj=value)


class Struct(exact.Struct, kw_only=True, omit_defaults=True):
    """Base of all objects. Absent members are None or the protocol's default, and are not encoded."""

    if not TYPE_CHECKING:
        data = _Data()


if TYPE_CHECKING:

    class ConstantStruct(Struct, kw_only=True):
        """Base of objects with members that constructors fill in."""

else:

    class _EverydayMeta(type(exact.ConstantStruct)):
        """Metaclass whose constructors fill constants in, and accept the tag, such as `type="text"`, and `_meta`."""

        def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
            tag_field = config.get("tag_field")
            if tag_field is not None:  # a class attribute for msgspec, and a member with a default for type checkers
                names = named_annotations(namespace)
                namespace["__tag_name__"] = tag = next((n for n in names if _is_same(n, tag_field)), tag_field)
                remove_annotation(namespace, tag)
            return super().__new__(mcs, name, bases, namespace, **config)

        def __make_first__(cls, args: tuple[Any, ...], members: dict[str, Any]) -> Any:
            given = _as_attributes(cls, members)
            return super().__make_first__(args, members) if given is members else cls(*args, **given)

    class ConstantStruct(Struct, kw_only=True, metaclass=_EverydayMeta):
        """Base of objects with members that constructors fill in."""


def _is_same(name: str, wire: str) -> bool:
    return name.replace("_", "").lower() == wire.replace("_", "").lower()


def _as_attributes(cls: Any, members: dict[str, Any]) -> dict[str, Any]:
    """Return members without the tag, and with `_meta` as the attribute `meta`, unless that is given, too."""
    given = _without_tag(cls, members)
    if "_meta" not in given or "meta" in given or "meta" not in cls.__struct_fields__:
        return given
    return {"meta" if name == "_meta" else name: value for name, value in given.items()}


def _without_tag(cls: Any, members: dict[str, Any]) -> dict[str, Any]:
    """Return members without the tag. Raises `TypeError` for another tag than that of the class."""
    name = getattr(cls, "__tag_name__", None)
    if name is None or name not in members:
        return members
    expected = cls.__struct_config__.tag
    if members[name] != expected:
        raise TypeError(f"{cls.__name__}: {name} is always {expected!r}, got {members[name]!r}")
    return {key: value for key, value in members.items() if key != name}


class _EverydayDescriptor(exact.Descriptor):
    """A declared member of an open object, which is None if it is absent, or the protocol's default."""

    def __init__(self, wire: str, required: bool, absent: Any = None) -> None:
        super().__init__(wire, required)
        self.absent = absent


def member(*, name: str, default: Any = ...) -> Any:
    """Declare a member of an open object, by its name on the wire."""
    return _EverydayDescriptor(name, default is ..., None if default is ... else default)


class OpenObject(exact.OpenObject):
    """Base of objects that keep undeclared members: a `dict` with attributes for the declared ones, None if absent."""

    __slots__ = ()

    __descriptor__: ClassVar[type[exact.Descriptor]] = _EverydayDescriptor

    @classmethod
    def __decoder__(cls) -> Callable[[Any], Any]:
        """Return the function that converts parsed JSON to the object, without declared members that are null."""
        decode_exactly = super().__decoder__()
        optional = [each.wire for each in cls.__attributes__.values() if not each.required]

        def decode_leniently(value: Any) -> Any:
            made = decode_exactly(value)
            for wire in optional:
                if made.get(wire, NULL) is None:
                    del made[wire]
            return made

        return decode_leniently


def is_everyday(kind: Any) -> bool:
    """Return whether a type is one of the everyday types, or made of them."""
    return any(
        issubclass(option, (Struct, OpenObject))
        if isinstance(option, type)
        else any(map(is_everyday, get_args(option)))
        for option in spread_union(kind)
    )


def decode(buf: bytes | bytearray | memoryview | str, type: TypeForm[T]) -> T:
    """Decode JSON text as a type of this module: a class, or one of its unions.

    A member that may be absent may also be `null`, which is read as absence. Raises `DecodeError`, which names the
    place and the cause.
    """
    try:
        decoded = exact.decode(buf, type)
    except DecodeError as error:
        if not error.is_json or not _contains_null(buf):
            raise
        return _without_nulls(lambda: msgspec.json.decode(buf), type, error)
    if _keeps_null(type) and _contains_null(buf):
        return _restore_nulls(decoded, msgspec.json.decode(buf), type)
    return decoded


def from_builtins(value: object, type: TypeForm[T]) -> T:
    """Convert parsed JSON (dicts, lists, strings, numbers, booleans, None) to a type of this module.

    Raises `DecodeError`, which names the place and the cause.
    """
    try:
        made = exact.from_builtins(value, type)
    except DecodeError as error:
        return _without_nulls(lambda: deepcopy(value), type, error)
    return _restore_nulls(made, value, type) if _keeps_null(type) and _holds_null(value) else made


def validate(value: T, type: TypeForm[Any] | None = None) -> T:
    """Check a value as it would be encoded, and return it. Constructors do not check, for speed.

    `type` is that of the value if it is not given. Raises `DecodeError`, which names the place and the cause.
    """
    exact.validate(value, type)
    for found, wire in find_misplaced_nulls(to_builtins(value), value.__class__ if type is None else type):
        raise DecodeError(format_path((*found.path, wire)), "expected a value, or None for absence, got NULL")
    return value


def find_null_members(buf: bytes | bytearray | memoryview | str, type: TypeForm[Any]) -> list[str]:
    """Return the paths of members that are `null` where the protocol allows only absence.

    Raises `DecodeError` if the text does not fit the type.
    """
    decode(buf, type)
    if not _contains_null(buf):
        return []
    return [format_path((*found.path, wire)) for found, wire in find_misplaced_nulls(msgspec.json.decode(buf), type)]


def _without_nulls(copy: Callable[[], Any], kind: TypeForm[T], error: DecodeError) -> T:
    """Return a value that did not fit its type, with null as the default of members. Raises the error otherwise."""
    try:
        value = copy()
        nulls = [*find_misplaced_nulls(value, kind)]
    except RecursionError:
        raise error from None
    if not nulls:
        raise error
    for found, wire in nulls:
        del found.value[wire]
    return from_builtins(value, kind)


def _contains_null(buf: bytes | bytearray | memoryview | str) -> bool:
    if isinstance(buf, str):
        return buf.rfind("null") >= 0
    return (bytes(buf) if isinstance(buf, memoryview) else buf).rfind(b"null") >= 0  # twice as fast as from the front


def _holds_null(value: object) -> bool:
    """Return whether parsed JSON contains null anywhere."""
    pending: list[object] = [value]
    while pending:
        found = pending.pop()
        if found is None:
            return True
        if is_object(found):
            pending += found.values()
        elif is_array(found):
            pending += found
    return False


def _nullable_members(shape: Shape) -> list[str]:
    """List the members that may be absent, or any JSON value."""
    return [each.wire for each in shape.members if not each.required and each.hint is Any]


def _restore_nulls(decoded: T, value: Any, kind: Any) -> T:
    """Set the members to `NULL` that are present and null in the value that was decoded."""
    for found in walk_objects(value, kind):
        for wire in _nullable_members(found.shape):
            if found.value.get(wire, NULL) is None:
                _set_null(decoded, (*found.path, wire))
    return decoded


def _set_null(decoded: Any, path: tuple[str | int, ...]) -> None:
    for part in path[:-1]:
        decoded = getattr(decoded, _attribute(decoded, part)) if isinstance(decoded, Struct) else decoded[part]
    setattr(decoded, _attribute(decoded, path[-1]), NULL)


def _attribute(struct: Struct, wire: str | int) -> str:
    return exact.attributes_of(type(struct))[str(wire)]


def _keeps_null(kind: Any) -> bool:
    """Return whether a value of a type may have a member for which null differs from absence."""
    try:
        return _null_keepers[id(kind)][0]
    except KeyError:
        if len(_null_keepers) >= _MAX_KEEPERS:
            _null_keepers.clear()
        found = _reaches_nullable(kind)
        _null_keepers[id(kind)] = found, kind
        return found


_null_keepers: dict[int, tuple[bool, Any]] = {}
"""True for types that keep nulls, by the identity of the type: the hash of a union takes long. It holds the types."""
_MAX_KEEPERS = 1024


def _reaches_nullable(kind: Any) -> bool:
    pending, seen = [kind], set[Any]()
    while pending:
        for option in spread_union(pending.pop()):
            if option in seen:
                continue
            seen.add(option)
            shape = shape_of(option)
            if shape is None:
                pending += [option] if hasattr(option, "__union__") else get_args(option)
                continue
            if _nullable_members(shape):
                return True
            pending += (each.hint for each in shape.members)
    return False
