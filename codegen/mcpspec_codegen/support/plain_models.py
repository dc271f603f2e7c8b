"""The Pydantic side of the plain types: absent members are None, and constructors accept what people write."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeAlias
from typing import Annotated as TypingAnnotated

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import SchemaSerializer, core_schema

from mcpspec.support import models as exact
from mcpspec.support.errors import DecodeError
from mcpspec.support.models import (
    complete,
    constant,
    decode,
    encode_with,
    from_builtins,
    serialize_with,
    union,
    untagged,
)
from mcpspec.support.null import NULL

__all__ = [
    "NULL",
    "ClosedModel", "DecodeError", "Model", "Nullable",
    "TypingAnnotated", "constant", "decode", "encode", "from_builtins", "null_means",
    "to_builtins", "union", "untagged",
]  # fmt: skip

if TYPE_CHECKING:
    Nullable: TypeAlias = Any
    """A member that may be absent, which is None, or any JSON value, of which null is `NULL`."""
else:
    Nullable = Annotated[Any, BeforeValidator(lambda value: NULL if value is None else value)]


def null_means(default: Any) -> BeforeValidator:
    """Return a validator that reads null as the default of a member."""
    return BeforeValidator(lambda value: default if value is None else value)


@cache
def _nullable_members(cls: type[BaseModel]) -> frozenset[str]:
    complete(cls)
    fields = cls.model_fields.items()
    found = {key: field for key, field in fields if field.annotation is Any and not field.is_required()}
    return frozenset([*found, *(field.alias for field in found.values() if field.alias is not None)])


if TYPE_CHECKING:
    _Base = exact.Model
else:

    class _PlainModelMeta(type(exact.Model)):
        def __call__(cls, **members: Any) -> Any:
            for name in _nullable_members(cls):
                if name in members and members[name] is None:  # absent, while validation reads null as `NULL`
                    del members[name]
            return super().__call__(**members)

    class _Base(exact.Model, metaclass=_PlainModelMeta):
        def model_dump(self, **options: Any) -> dict[str, Any]:
            """Return the members that are on the wire, by their names there."""
            return super().model_dump(**{"exclude_defaults": True, **options})

        def model_dump_json(self, **options: Any) -> str:
            """Return the JSON text that is on the wire."""
            return super().model_dump_json(**{"exclude_defaults": True, **options})


class Model(_Base):
    """Base of all objects. Absent members are None or the protocol's default, and are not encoded.

    Undeclared members are kept in `model_extra`.
    """

    def __repr_args__(self) -> Any:
        """Yield the members that differ from their defaults."""
        fields = type(self).__pydantic_fields__
        return (
            (name, value)
            for name, value in super().__repr_args__()
            if name not in fields or fields[name].is_required() or value != fields[name].default
        )


class ClosedModel(Model):
    """Base of objects that reject undeclared members."""

    if TYPE_CHECKING:
        model_config: ClassVar[ConfigDict]
    else:
        model_config = ConfigDict(extra="forbid")


_serializer: Final = SchemaSerializer(core_schema.any_schema(), core_schema.CoreConfig(ser_json_inf_nan="constants"))


def encode(value: object) -> bytes:
    """Encode a value as JSON text, in UTF-8 and without line breaks.

    Raises `ValueError` for NaN and infinity, which JSON does not have.
    """
    return encode_with(value, lambda: _serializer.to_json(value, by_alias=True, exclude_defaults=True))


def to_builtins(value: object) -> Any:
    """Convert a value to parsed JSON: dicts, lists, strings, numbers, booleans and None."""
    return serialize_with(
        value, lambda: _serializer.to_python(value, mode="json", by_alias=True, exclude_defaults=True)
    )
