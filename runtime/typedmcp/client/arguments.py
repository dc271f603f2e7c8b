"""Arguments of tools that are objects of Python: dataclasses, Structs, models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec

from mcpspec._support.objects import is_object
from typedmcp.errors import UsageError
from typedmcp.jsontypes import plain

__all__ = ["Arguments", "arguments_of"]


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class _Model(Protocol):
    """What Pydantic's models are to a type checker, where Pydantic may not be installed."""

    def model_dump(self) -> dict[str, Any]: ...


Arguments: TypeAlias = "Mapping[str, Any] | msgspec.Struct | _Dataclass | _Model"
"""What a tool can be called with."""


def arguments_of(given: Any) -> dict[str, Any]:
    """Arguments as plain JSON. Raises `UsageError` for what is no object there."""
    try:
        made = plain(given)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"arguments: {error}") from error
    if not is_object(made):
        raise UsageError(f"arguments are an object, such as a mapping or a dataclass, not {type(given).__name__}")
    return made
