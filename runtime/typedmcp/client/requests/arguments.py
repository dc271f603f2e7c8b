"""Arguments of tools as Python objects: mappings, dataclasses, Structs and models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec

from mcpspec.support.objects import is_object
from typedmcp.errors import UsageError
from typedmcp.jsonschema.values import to_builtins
from typedmcp.nesting import too_deep

__all__ = ["Arguments", "encode_arguments"]


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class _Model(Protocol):
    """A Pydantic model, for type checkers without Pydantic."""

    def model_dump(self) -> dict[str, Any]: ...


Arguments: TypeAlias = "Mapping[str, Any] | msgspec.Struct | _Dataclass | _Model"
"""The arguments of a tool call."""


def encode_arguments(arguments: object) -> dict[str, Any]:
    """Return arguments as plain JSON. Raises `UsageError` for arguments that are not a JSON object."""
    try:
        plain = to_builtins(arguments)
    except RecursionError:
        raise UsageError(f"arguments: {too_deep()}") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"arguments: {error}") from error
    if not is_object(plain):
        kind = type(arguments).__name__
        raise UsageError(f"arguments: expected an object, such as a mapping or a dataclass, got {kind}")
    return plain
