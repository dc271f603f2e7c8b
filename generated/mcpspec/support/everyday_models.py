"""The Pydantic side of the everyday types: absent members are None, and constructors accept what people write."""

from __future__ import annotations

from functools import cache, partial
from operator import eq, is_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias
from typing import Annotated as TypingAnnotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from mcpspec.support import models as exact
from mcpspec.support.errors import DecodeError
from mcpspec.support.models import (
    complete,
    constant,
    decode,
    encode,
    from_builtins,
    regex,
    to_builtins,
    union,
    untagged,
    validate,
)
from mcpspec.support.null import NULL

__all__ = [
    "NULL",
    "ClosedModel", "DecodeError", "Model", "Nullable",
    "TypingAnnotated", "constant", "decode", "encode", "from_builtins", "null_means", "regex",
    "to_builtins", "union", "untagged", "validate",
]  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable

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


def _is_equal_to(default: Any) -> Callable[[Any], bool]:
    """Return a function of C, since each encoding of a member calls it."""
    return partial(is_, None) if default is None else partial(eq, default)


if TYPE_CHECKING:
    _Base = exact.Model
else:

    class _EverydayModelMeta(type(exact.Model)):
        def __call__(cls, **members: Any) -> Any:
            for name in _nullable_members(cls):
                if name in members and members[name] is None:  # absent, while validation reads null as `NULL`
                    del members[name]
            return super().__call__(**members)

    class _Base(exact.Model, metaclass=_EverydayModelMeta):
        @classmethod
        def __pydantic_init_subclass__(cls, **arguments: Any) -> None:
            """Leave absent members out of everything that Pydantic makes of a model, also as a part of others."""
            super().__pydantic_init_subclass__(**arguments)
            for member in cls.__pydantic_fields__.values():
                if member.exclude_if is None and not member.is_required():
                    member.exclude_if = _is_equal_to(member.default)


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
