"""The hand-written part of the types free of revisions, which lets them take the place of the official package's.

They are as lenient as that package: constructors and decoders accept names on the wire and attribute names, and convert
values as Pydantic does by default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, TypeVar, cast
from urllib.parse import SplitResult, urlsplit

from pydantic import AnyUrl, BaseModel, ConfigDict, Field, TypeAdapter, model_serializer, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, core_schema, to_json, to_jsonable_python

from mcpspec.support import models as exact
from mcpspec.support.errors import DecodeError
from mcpspec.support.models import encode_with, serialize_with

if TYPE_CHECKING:
    from typing import Self

    from pydantic import GetCoreSchemaHandler, SerializationInfo, SerializerFunctionWrapHandler
    from typing_extensions import TypeForm

__all__ = [
    "ContentAsList", "DecodeError", "KeepsNull", "Model", "NeedsInput", "Notification", "NotificationParams",
    "PaginatedRequest", "PaginatedRequestParams", "Request", "RequestParams", "RequestParamsMeta", "Uri", "decode",
    "encode", "from_builtins", "to_builtins", "union",
]  # fmt: skip

T = TypeVar("T")
ParamsT = TypeVar("ParamsT")
MethodT = TypeVar("MethodT", bound=str)


if TYPE_CHECKING:
    _Base = BaseModel
else:

    class _RecognisingMeta(type(BaseModel)):
        """Metaclass of classes whose instances are those of the official package, too, under the same name."""

        def __instancecheck__(cls, value: object) -> bool:
            kind = type(value)  # a dict is what validation meets most
            return kind is not dict and (super().__instancecheck__(value) or _is_official(cls, kind))

    class _Base(BaseModel, metaclass=_RecognisingMeta):
        pass


_OFFICIAL: Final = ("mcp.types", "mcp_types")
_OURS: Final = ("mcpspec.compat.types", "mcpspec.support.compat")


def _is_official(ours: type, kind: type) -> bool:
    """Return whether a class is the one of the official package for which ours stands, or derives from it."""
    if kind.__module__.startswith("mcpspec.") or ours.__module__ not in _OURS:
        return False
    return any(base.__name__ == ours.__name__ and base.__module__.startswith(_OFFICIAL) for base in kind.__mro__)


class Model(_Base):
    """Base of all objects. Absent members are None or the protocol's default; undeclared members are kept.

    Members have Python names. At run time, names on the wire are attributes, too, and constructors accept both. An
    object of the official package is an instance of the class of the same name.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel,
        extra="allow",
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        defer_build=True,
        protected_namespaces=(),
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
    )

    if TYPE_CHECKING:

        @property
        def root(self) -> Self:
            """The object itself: unions do not wrap their members. A member of this name comes first."""
            return self

    else:

        def __getattr__(self, name: str) -> Any:
            """Return a member by its name on the wire, or an undeclared member."""
            attribute = _attributes(type(self)).get(name)
            if attribute is None and name == "root":
                return self
            return super().__getattr__(name) if attribute is None else getattr(self, attribute)

        def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
            """Return a copy with other members, by either of their names."""
            attributes = _attributes(type(self))
            named = {attributes.get(name, name): value for name, value in (update or {}).items()}
            return super().model_copy(update=named, deep=deep)

        def __setattr__(self, name: str, value: Any) -> None:
            """Set a member by either of its names."""
            super().__setattr__(_attributes(type(self)).get(name, name), value)


@cache
def _attributes(cls: type[BaseModel]) -> dict[str, str]:
    """Map names on the wire to attributes, if they differ."""
    return {field.alias: name for name, field in cls.model_fields.items() if field.alias not in (None, name)}


class _UnionMeta(exact.UnionMeta):
    """Metaclass of unions that can be called and validate as the root models of 1.x of the official package do."""

    def __call__(cls, root: Any) -> Any:
        return root if isinstance(root, cls) else _adapter(cls).validate_python(root)

    def model_validate(cls, obj: Any, **options: Any) -> Any:
        """Return a member of the union, from parsed JSON or an instance."""
        return _adapter(cls).validate_python(obj, **options)

    def model_construct(cls, root: T, **_options: Any) -> T:
        """Return a value without validation."""
        return root

    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Any:
        """Return a member of the union, from JSON text."""
        return _adapter(cls).validate_json(json_data, **options)


def union(name: str, module: str, members: Any, *marks: Any) -> Any:
    """Return a union of types as a class, whose constructor returns the member that it is given."""
    return _UnionMeta(name, (), exact.union_members(name, module, members, *marks))


class RequestParamsMeta(dict[str, Any]):
    """The `_meta` of parameters: a dictionary by names on the wire, whose members are attributes, too."""

    def __init__(self, members: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), /, **more: Any) -> None:
        super().__init__()
        self.update(members, **more)

    def __getattr__(self, name: str) -> Any:
        wire = _META_NAMES.get(name, name)
        if name.startswith("__") or (wire not in self and wire not in _META_NAMES.values()):
            raise AttributeError(f"there is no member {name!r}")
        return self.get(wire)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(_META_NAMES.get(name, name), value)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(_META_NAMES.get(name, name))

    def __missing__(self, name: str) -> Any:
        if name not in _META_NAMES:
            raise KeyError(name)
        return self[_META_NAMES[name]]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(_META_NAMES.get(name, name) if isinstance(name, str) else name)

    def __or__(self, other: Any) -> Any:
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Any) -> Self:  # type: ignore[override]  # a mapping, or pairs
        self.update(other)
        return self

    def __reduce__(self) -> Any:
        return type(self), (dict(self),)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a member by either of its names, or a default."""
        return super().get(_META_NAMES.get(name, name), default)

    def pop(self, name: str, *default: Any) -> Any:
        """Remove a member by either of its names, and return it, or a default."""
        return super().pop(_META_NAMES.get(name, name), *default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Return a member by either of its names, and set it if it is missing."""
        return super().setdefault(_META_NAMES.get(name, name), default)

    def update(self, members: Any = (), /, **more: Any) -> None:
        """Set members by either of their names."""
        for name, value in dict(members, **more).items():
            self[name] = value

    def copy(self) -> Self:
        """Return a shallow copy."""
        return type(self)(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        members = core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())
        return core_schema.no_info_after_validator_function(cls, members)


_META_NAMES = {"progress_token": "progressToken"}
"""The members that any parameters may have, by attribute."""


class Uri(str):
    """A URI: a string whose parts are attributes, and which equals Pydantic's `AnyUrl` of the same text."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AnyUrl):
            return str.__eq__(self, other)
        try:
            return AnyUrl(str(self)) == other
        except ValueError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self)

    @property
    def scheme(self) -> str:
        """The part before the first colon."""
        return self._parts.scheme

    @property
    def host(self) -> str | None:
        """The host, if there is one."""
        return self._parts.hostname

    @property
    def port(self) -> int | None:
        """The port, if it is stated. Raises `ValueError` if it is no number."""
        return self._parts.port

    @property
    def username(self) -> str | None:
        """The user, if there is one."""
        return self._parts.username

    @property
    def password(self) -> str | None:
        """The password, if there is one."""
        return self._parts.password

    @property
    def path(self) -> str | None:
        """The path, if there is one."""
        return self._parts.path or None

    @property
    def query(self) -> str | None:
        """The text after the question mark, if there is one."""
        return self._parts.query or None

    @property
    def fragment(self) -> str | None:
        """The text after the number sign, if there is one."""
        return self._parts.fragment or None

    def unicode_string(self) -> str:
        """Return the URI as a plain string, as `AnyUrl` does."""
        return str(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _to_uri,
            json_schema_input_schema=core_schema.url_schema(),
            serialization=core_schema.to_string_ser_schema(),
        )


def _to_uri(value: object) -> Uri:
    if isinstance(value, str | AnyUrl):
        return Uri(value)
    raise PydanticCustomError("string_type", "Input should be a valid string")


class RequestParams(Model):
    """Parameters of a request."""

    class Meta(RequestParamsMeta):
        """Additional data about a request, under the name that it has in 1.x of the official package."""

    meta: Annotated[RequestParamsMeta | None, Field(alias="_meta")] = None
    """Additional data about the message or object, under namespaced keys."""


class PaginatedRequestParams(RequestParams):
    """Parameters of a request for one page of a list."""

    cursor: str | None = None
    """Position in the list: the `nextCursor` of the page before. Without one, the first page is meant."""


class NotificationParams(Model):
    """Parameters of a notification."""

    class Meta(RequestParamsMeta):
        """Additional data about a notification, under the name that it has in 1.x of the official package."""

    meta: Annotated[RequestParamsMeta | None, Field(alias="_meta")] = None
    """Additional data about the message or object, under namespaced keys."""


class Request(Model, Generic[ParamsT, MethodT]):
    """Base of requests, without the JSON-RPC envelope. Derive from `Request[MyParams, Literal["my/method"]]`."""

    method: MethodT
    """Name of the method, which identifies the kind of message."""
    params: ParamsT
    """Parameters of the message."""
    name_param: ClassVar[str | None] = None
    """Name of the parameter that the official package writes into the header `Mcp-Name`."""


class PaginatedRequest(Request[PaginatedRequestParams | None, MethodT], Generic[MethodT]):
    """Base of requests for one page of a list."""

    params: PaginatedRequestParams | None = None
    """Parameters of the message."""


class Notification(Model, Generic[ParamsT, MethodT]):
    """Base of notifications, without the JSON-RPC envelope."""

    method: MethodT
    """Name of the method, which identifies the kind of message."""
    params: ParamsT
    """Parameters of the message."""


class ContentAsList(Model):
    """Base of messages whose content is a block, or a list of blocks."""

    content: Any

    @property
    def content_as_list(self) -> list[Any]:
        """The content as a list of blocks."""
        content: Any = self.content
        return content if isinstance(content, list) else [content]  # pyright: ignore[reportUnknownVariableType]


class NeedsInput(Model):
    """Base of results that ask for input, and so have requests or state."""

    @model_validator(mode="after")
    def _require_requests_or_state(self) -> Self:
        found = cast(Any, self)
        if not found.input_requests and found.request_state is None:
            raise ValueError("expected inputRequests or requestState")
        return self


class KeepsNull(Model):
    """Base of objects with required members that may be null, which are written although they are None."""

    # Without a return type, of which Pydantic would make the JSON Schema.
    @model_serializer(mode="wrap")
    def _write_null(self, write: SerializerFunctionWrapHandler, info: SerializationInfo):  # type: ignore[no-untyped-def]  # noqa: ANN202
        written: dict[str, Any] = write(self)
        for name, field in type(self).model_fields.items():
            if field.is_required() and getattr(self, name, ...) is None and _is_included(name, info):
                written[name if info.by_alias is False else field.alias or name] = None
        return written


def _is_included(name: str, info: SerializationInfo) -> bool:
    included, excluded = cast(Any, info.include), cast(Any, info.exclude)
    return (included is None or name in included) and (excluded is None or name not in excluded)


def decode(buf: bytes | bytearray | memoryview | str, type: TypeForm[T]) -> T:
    """Decode JSON text as a type of `mcpspec.compat`: a class, or one of its unions.

    Raises `DecodeError`, which names the place and the cause.
    """
    text = bytes(buf) if isinstance(buf, memoryview) else buf
    try:
        exact.reject_non_finite(text)
        return cast(T, _adapter(cast(Any, type)).validate_json(text))
    except (ValueError, RecursionError) as error:
        raise exact.explain_text(text, type, error) from error


def from_builtins(value: object, type: TypeForm[T]) -> T:
    """Convert parsed JSON (dicts, lists, strings, numbers, booleans, None) to a type of `mcpspec.compat`.

    Raises `DecodeError`, which names the place and the cause.
    """
    try:
        return cast(T, _adapter(cast(Any, type)).validate_python(value))
    except (ValueError, RecursionError) as error:
        raise exact.explain_value(value, type, error) from error


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def encode(value: object) -> bytes:
    """Encode a value as JSON text, in UTF-8 and without line breaks. Members that are None are left out.

    Raises `ValueError` for NaN and infinity, which JSON does not have.
    """
    return encode_with(value, _write)


_write: Final = partial(to_json, by_alias=True, exclude_none=True, inf_nan_mode="constants")


def to_builtins(value: object) -> Any:
    """Convert a value to parsed JSON. Members that are None are left out."""
    return serialize_with(value, partial(to_jsonable_python, by_alias=True, exclude_none=True))
