"""Arguments of tools as Python objects: mappings, dataclasses, Structs and models."""

from __future__ import annotations

from typing import Any

from mcpspec.support.objects import is_object
from typedmcp.errors import UsageError
from typedmcp_schemas import to_builtins
from typedmcp_schemas.nesting import too_deep

__all__ = ["encode_arguments"]


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
