"""Checks of the JSON Schemas that libraries make of the types."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from jsonschema import Draft202012Validator

from tests.generated.backends import is_list, is_object

__all__ = ["Schema", "check_schema", "schema_accepts"]

Schema: TypeAlias = dict[str, Any]


def check_schema(schema: Schema) -> None:
    """Raise an error if a schema is invalid, or refers to a definition that it does not have."""
    parts: dict[str, Schema] = schema.get("$defs", {})
    own = {key: value for key, value in schema.items() if key != "$defs"}
    for text in {json.dumps(part, sort_keys=True) for part in (own, *parts.values())} - _checked:
        Draft202012Validator.check_schema(json.loads(text))
        _checked.add(text)
    missing = _references(schema) - {f"#/$defs/{name}" for name in parts}
    assert not missing, missing


_checked: set[str] = set()
"""Valid definitions, which many schemas have in common: a check takes a while."""


def schema_accepts(schema: Schema) -> Callable[[Any], bool]:
    """Return the function that tells whether a schema accepts a value."""
    validator: Any = Draft202012Validator(schema)
    accepts: Callable[[Any], bool] = validator.is_valid
    return accepts


def _references(schema: Any) -> set[str]:
    if is_list(schema):
        return {name for part in schema for name in _references(part)}
    if not is_object(schema):
        return set()
    found = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set[str]()
    return found | {name for part in schema.values() for name in _references(part)}
