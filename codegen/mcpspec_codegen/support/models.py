"""The Pydantic side of the generated types: bases, untagged unions, decoding and encoding."""

from __future__ import annotations

import re
from functools import cache, partial
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar, cast
from typing import Annotated as TypingAnnotated

from pydantic import VERSION, BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import MISSING, PydanticSerializationError, core_schema, from_json, to_json, to_jsonable_python
from typing_extensions import TypeAliasType

from mcpspec.support.error_text import KINDS
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
    spread_union,
    strip_absent,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from typing_extensions import TypeForm

__all__ = [
    "ClosedModel", "DecodeError", "Model", "TypingAnnotated", "UnionMeta", "complete", "constant",
    "dec_hook", "decode", "enc_hook", "encode", "encode_with", "explain_text", "explain_value", "fits", "from_builtins",
    "regex", "reject_non_finite", "schema_hook", "serialize_with", "to_builtins", "union", "union_members", "untagged",
    "validate",
]  # fmt: skip

T = TypeVar("T")

_PYDANTIC: Final = tuple(int(part) for part in re.findall(r"\d+", VERSION)[:3])
_LOSES_MEMBERS: Final = (2, 13) <= _PYDANTIC < (2, 14, 2)
"""True if Pydantic loses undeclared members of JSON text that are called like an attribute, as in `mime_type`."""
_BUILDS_ALL: Final = _PYDANTIC >= (2, 14)
"""True if Pydantic can serialize instances of classes that it has only built as parts of others."""


def constant(value: T, *, optional: bool = False, name: str | None = None) -> T:
    """Return the value of a member that constructors fill in, and that validation still requires."""
    return cast(T, Constant(value, optional, name))


_building: Final = RLock()

if TYPE_CHECKING:
    _Base = BaseModel
else:

    class _ModelMeta(type(BaseModel)):
        """Metaclass of constructors that accept attribute names, and fill constants in."""

        def __call__(cls, **members: Any) -> Any:
            names = _wire_names(cls)
            named = {names.get(key, key): value for key, value in members.items()}
            return super().__call__(**{**cls.__constants__, **named})

    # Without `defer_build`, Pydantic would build a validator here, and import what that takes.
    class _Base(BaseModel, metaclass=_ModelMeta, defer_build=True):
        # Without an annotation, which Pydantic would evaluate again for every class that inherits it.
        __constants__ = {}

        def __init_subclass__(cls, **arguments: Any) -> None:
            """Turn each `constant(…)` into a field, before Pydantic reads the fields and decides what to build."""
            super().__init_subclass__(**arguments)
            cls.model_config["defer_build"] = True
            constants = {key: value for key, value in vars(cls).items() if isinstance(value, Constant)}
            for key, value in constants.items():
                if value.optional:
                    setattr(cls, key, MISSING)
                else:
                    delattr(cls, key)
            inherited: dict[str, Any] = {}
            for base in reversed(cls.__bases__):
                inherited |= getattr(base, "__constants__", {})
            cls.__constants__ = inherited | {
                value.name or to_camel(key): value.value for key, value in constants.items()
            }

        @classmethod
        def __pydantic_init_subclass__(cls, **arguments: Any) -> None:
            """Let Pydantic defer only the class, and not the adapters of others, of which FastAPI would warn."""
            super().__pydantic_init_subclass__(**arguments)
            del cls.model_config["defer_build"]

        @classmethod
        def model_rebuild(cls, *, force: bool = False, _parent_namespace_depth: int = 2, **options: Any) -> bool | None:
            """Build the class, once. Before 2.14, Pydantic may build it in two threads, which see it half built."""
            with _building:
                if cls.__pydantic_complete__ and not force:
                    return None
                return super().model_rebuild(
                    force=force, _parent_namespace_depth=_parent_namespace_depth + 1, **options
                )

        @classmethod
        def model_json_schema(cls, *arguments: Any, **options: Any) -> dict[str, Any]:
            """Return the JSON Schema of the class, which is built first. Pydantic may see it half built, as above."""
            complete(cls)
            return super().model_json_schema(*arguments, **options)


@cache
def _wire_names(cls: type[BaseModel]) -> dict[str, str]:
    """Map attributes to names on the wire, if they differ."""
    complete(cls)
    return {name: field.alias for name, field in cls.model_fields.items() if field.alias not in (None, name)}


def complete(cls: type[BaseModel]) -> None:
    """Build the validator and serializer of a class, if that has not been done."""
    if not cls.__pydantic_complete__:
        cls.model_rebuild()


class Model(_Base):
    """Base of all objects. Undeclared members are kept in `model_extra`.

    Construct it with attribute names; validation expects names on the wire, which are in camel case: `mime_type` is
    `mimeType`. `Field(alias=…)` states other names.
    """

    if TYPE_CHECKING:
        model_config: ClassVar[ConfigDict]
    else:  # without an annotation, as above
        model_config = ConfigDict(
            alias_generator=to_camel,
            extra="allow",
            strict=True,
            serialize_by_alias=True,
            protected_namespaces=(),
            allow_inf_nan=False,
            ser_json_inf_nan="constants",
        )

    def __repr_name__(self) -> str:
        return face_of(type(self)) + type(self).__name__

    if not TYPE_CHECKING:

        def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
            """Return a copy with other members, by their attributes or by their names on the wire."""
            attributes = {wire: name for name, wire in _wire_names(type(self)).items()}
            named = {attributes.get(key, key): value for key, value in (update or {}).items()}
            return super().model_copy(update=named, deep=deep)

        def __replace__(self, **members: Any) -> Any:
            for name in members:
                self._check_declares(name)
            return self.model_copy(update=members)

        def __setattr__(self, name: str, value: Any) -> None:
            """Reject undeclared attributes, which would be encoded. Undeclared members are set in `model_extra`."""
            self._check_declares(name)
            super().__setattr__(name, value)

        def _check_declares(self, name: str) -> None:
            cls = type(self)
            if not (
                name in cls.__pydantic_fields__
                or name.startswith("_")
                or hasattr(cls, name)
                or name in (self.__pydantic_extra__ or ())
            ):
                raise AttributeError(f"{cls.__name__} declares no member {name!r}; set it in model_extra")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        """Describe the class and its members with their docstrings, which are read when a schema is made."""
        from mcpspec.support.attribute_docs import attribute_docs, class_doc

        made = handler(schema)
        described = handler.resolve_ref_schema(made)
        if doc := class_doc(cls):
            described.setdefault("description", doc)
        properties = described.get("properties", {})
        for name, doc in attribute_docs(cls).items():
            for key in {name, _wire_names(cls).get(name, name)} & properties.keys():
                properties[key].setdefault("description", doc)
        return made

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Yield the members that are present."""
        return ((name, value) for name, value in super().__repr_args__() if value is not MISSING)


class ClosedModel(Model):
    """Base of objects that reject undeclared members."""

    if TYPE_CHECKING:
        model_config: ClassVar[ConfigDict]
    else:
        model_config = ConfigDict(extra="forbid")


regex: Final = re.compile
"""Compiles a pattern, so that Pydantic matches as msgspec does."""


class _Untagged:
    """Marker of a union without a tag, whose members are tried, best fit first."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        @cache
        def options() -> tuple[UnionOptions[Any], bool]:
            found = spread_union(source)
            others = [option for option in found if _shape(option) is None]
            return UnionOptions(found, _shape), not any(_may_be_object(option) for option in others)

        def choose(value: Any, union: Callable[[Any], Any]) -> Any:
            if not is_object(value):
                return union(value)
            objects, are_complete = options()
            error: ValidationError | None = None
            for option in objects.rank(value):
                try:
                    return option.__pydantic_validator__.validate_python(value)
                except ValidationError as caught:
                    error = error or caught
            if are_complete and error is not None:
                raise error  # `union` would try all members again, at every level of nested unions
            return union(value)

        return core_schema.no_info_wrap_validator_function(choose, handler(source))


untagged: Final = _Untagged()


def _may_be_object(option: Any) -> bool:
    return not {*classes_of(option)} <= {*KINDS} - {dict}


class UnionMeta(type):
    """Metaclass of unions of models, which `isinstance` accepts, and of which Pydantic sees an alias."""

    __union__: Callable[[], Any]
    __value__: Any
    __alias__: Callable[[], TypeAliasType]
    __check__: Any

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _runtime_classes(cls))

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, _runtime_classes(cls))

    def __get_pydantic_core_schema__(cls, _source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return handler.generate_schema(cls.__alias__())


def union(name: str, module: str, members: Any, *marks: Any) -> Any:
    """Return a union of types as a class for `isinstance`. Its `__value__` is the union, with marks for Pydantic."""
    return UnionMeta(name, (), union_members(name, module, members, *marks))


def union_members(name: str, module: str, members: Any, *marks: Any) -> dict[str, Any]:
    """Return the attributes of the class of a union. `members` are a text if they refer to the union itself."""

    @cache
    def hint() -> Any:
        found = eval(members, {}, _NamesOf(module)) if isinstance(members, str) else members  # noqa: S307  # of the module
        return Annotated[(found, *marks)] if marks else found

    @cache
    def alias() -> TypeAliasType:
        made: TypeAliasType = cast(Any, TypeAliasType)(name, hint())  # checkers allow it only as a definition
        return made

    check = next((mark.__check__ for mark in marks if hasattr(mark, "__check__")), None)
    made = {"__module__": module, "__union__": staticmethod(hint), "__check__": check, "__alias__": staticmethod(alias)}
    return made if isinstance(members, str) else {**made, "__value__": hint()}


class _NamesOf(dict[str, Any]):
    """The names of a module, which makes its types when they are first used."""

    def __init__(self, module: str) -> None:
        super().__init__()
        self._module = module

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(import_module(self._module), name)
        except AttributeError:
            raise KeyError(name) from None  # one of Python's own


@cache
def _runtime_classes(of: UnionMeta) -> tuple[type, ...]:
    return tuple(kind for leaf in spread_union(of) for kind in classes_of(leaf))


@cache
def _shape(kind: Any) -> Shape | None:
    """Return the members of a model; None for other types."""
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return None
    complete(kind)
    members = [
        Member(field.alias or name, _hint(field.annotation, field.metadata), field.is_required())
        for name, field in kind.model_fields.items()
    ]
    return Shape(tuple(members), kind.model_config.get("extra") == "forbid")


def _hint(annotation: Any, metadata: list[Any]) -> Any:
    annotation = strip_absent(annotation, MISSING)
    return Annotated[(annotation, *metadata)] if metadata else annotation


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def fits(value: object, kind: Any) -> bool:
    """Return whether parsed JSON fits a type."""
    try:
        _adapter(kind).validate_python(value, strict=True)
    except (ValueError, RecursionError):
        return False
    return True


_types = TypeAccess(_shape, fits)


def decode(buf: bytes | bytearray | memoryview | str, type: TypeForm[T]) -> T:
    """Decode JSON text as a type of this module: a class, or one of its unions.

    Raises `DecodeError`, which names the place and the cause.
    """
    text = bytes(buf) if isinstance(buf, memoryview) else buf
    try:
        reject_non_finite(text)
        try:
            validate = _validators_by_id[id(type)][0]
        except KeyError:
            validate = _remember_validator(type)
        decoded: T = validate(text)
        return decoded
    except (ValueError, RecursionError) as error:
        raise explain_text(text, type, error) from error


def explain_text(text: bytes | bytearray | str, type: Any, error: Exception) -> DecodeError:
    """Return the error for JSON text that Pydantic has rejected."""
    return decode_error(text, type, _types, error)


def explain_value(value: object, type: Any, error: Exception) -> DecodeError:
    """Return the error for parsed JSON that Pydantic has rejected."""
    return explain(value, type, _types, error)


_validators_by_id: dict[int, tuple[Callable[[Any], Any], Any]] = {}
"""Validators of text by the identity of their types. The types are held, so that no other type gets the same identity.

The hash of a union, and the call through an adapter, take longer than a small message.
"""
_MAX_VALIDATORS = 1024


def _remember_validator(kind: Any) -> Callable[[Any], Any]:
    if len(_validators_by_id) >= _MAX_VALIDATORS:
        _validators_by_id.clear()
    adapter = _adapter(kind)
    if not adapter.pydantic_complete:
        adapter.rebuild()
    validate = _make_validator(adapter)
    _validators_by_id[id(kind)] = (validate, kind)
    return validate


def _make_validator(adapter: TypeAdapter[Any]) -> Callable[[Any], Any]:
    if _LOSES_MEMBERS:
        return lambda text: adapter.validate_python(_parse(text), strict=True)
    return partial(adapter.validator.validate_json, strict=True)


_N, _I = b"NI"


def reject_non_finite(text: bytes | bytearray | str) -> None:
    """Raise `ValueError` for `NaN` and `Infinity`, which Pydantic accepts and JSON does not have.

    Searches for the first letters first, which is far faster, and for words from the end, which is three times as fast.
    """
    if isinstance(text, str):
        is_found = ("N" in text and text.rfind("NaN") >= 0) or ("I" in text and text.rfind("Infinity") >= 0)
    else:
        is_found = (_N in text and text.rfind(b"NaN") >= 0) or (_I in text and text.rfind(b"Infinity") >= 0)
    if is_found:
        _parse(text)


def _parse(text: bytes | bytearray | str) -> Any:
    # The parser raises `TypeError` for a string that is not Unicode text.
    return from_json(text.encode() if isinstance(text, str) else text, allow_inf_nan=False)


def encode(value: object) -> bytes:
    """Encode a value as JSON text, in UTF-8 and without line breaks.

    Raises `ValueError` for NaN and infinity, which JSON does not have.
    """
    return encode_with(value, _write)


_write: Final = partial(to_json, by_alias=True, inf_nan_mode="constants")


def encode_with(value: object, write: Callable[[object], bytes]) -> bytes:
    """Encode a value with a function of Pydantic. Raises `ValueError` for NaN and infinity."""
    text = serialize_with(value, write)
    if (_N in text or _I in text) and not (len(text) > LARGE_TEXT and is_surely_finite(value, len(text), _parts)):
        try:
            reject_non_finite(text)
        except ValueError as error:
            raise ValueError("JSON has neither NaN nor infinity") from error
    return text


def serialize_with(value: object, write: Callable[[object], T]) -> T:
    """Return what a function of Pydantic makes of a value, whose classes are built first if necessary."""
    try:
        return write(value)
    except (PydanticSerializationError, TypeError):
        if _BUILDS_ALL:
            raise
        _complete_classes(value)
        return write(value)


def _complete_classes(value: object) -> None:
    """Build the classes of a value and of its parts."""
    pending: list[object] = [value]
    done: set[int] = set()
    while pending:
        found = pending.pop()
        if id(found) in done:
            continue
        done.add(id(found))
        if isinstance(found, BaseModel):
            complete(type(found))
        if isinstance(found, (list, tuple)):
            pending += cast("list[object]", found)
        else:
            pending += found.values() if is_object(found) else _parts(found) or ()


def _parts(value: object) -> Collection[Any] | None:
    if isinstance(value, BaseModel):
        return [*vars(value).values(), *(value.model_extra or {}).values()]
    return () if value is MISSING else None


def from_builtins(value: object, type: TypeForm[T]) -> T:
    """Convert parsed JSON (dicts, lists, strings, numbers, booleans, None) to a type of this module.

    Raises `DecodeError`, which names the place and the cause.
    """
    try:
        return cast(T, _adapter(cast(Any, type)).validate_python(value, strict=True))
    except (ValueError, RecursionError) as error:
        raise explain_value(value, type, error) from error


def to_builtins(value: object) -> Any:
    """Convert a value to parsed JSON: dicts, lists, strings, numbers, booleans and None."""
    return serialize_with(value, partial(to_jsonable_python, by_alias=True))


def validate(value: T, type: TypeForm[Any] | None = None) -> T:
    """Check a value as it would be encoded, and return it. Constructors check; copies and assignments do not.

    `type` is that of the value if it is not given. Raises `DecodeError`, which names the place and the cause.
    """
    kind = cast(Any, value.__class__ if type is None else type)
    try:
        made = serialize_with(value, partial(_adapter(kind).dump_python, mode="json", warnings=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise DecodeError("", str(error).partition("\n")[0]) from error
    from_builtins(made, kind)
    return value


def dec_hook(kind: Any, value: Any) -> Any:
    """Decode a model in a type of msgspec. The `dec_hook` for Structs of your own that have models as members."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return from_builtins(value, kind)
    from mcpspec.support.structs import dec_hook  # here, since models alone do not need msgspec

    return dec_hook(kind, value)


def enc_hook(value: Any) -> Any:
    """Encode a model in a value of msgspec. The `enc_hook` for Structs of your own that have models as members."""
    if isinstance(value, BaseModel):
        return to_builtins(value)
    raise NotImplementedError(f"type {type(value)!r} cannot be encoded as JSON")


def schema_hook(kind: Any) -> dict[str, Any]:
    """Describe a model in a type of msgspec. The `schema_hook` for Structs of your own that have models as members."""
    from mcpspec.support.json_schema import custom_schema, inline_definitions

    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return inline_definitions(kind.model_json_schema())
    return custom_schema(kind)
