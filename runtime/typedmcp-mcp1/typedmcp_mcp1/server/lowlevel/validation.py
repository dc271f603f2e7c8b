"""Values against JSON Schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typedmcp_schemas.validate import compile_schema

__all__ = ["find_schema_fault"]


def find_schema_fault(value: Any, schema: Mapping[str, Any], name: str) -> str | None:
    """Return the text of what is wrong with a value of this name; None if it fits the schema."""
    return compile_schema(schema, is_trusted=True).find_error(value, name)
