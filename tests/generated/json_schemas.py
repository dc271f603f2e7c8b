"""Checks of the JSON Schemas that libraries make of the types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from jsonschema import Draft202012Validator

from tests.generated.backends import is_list, is_object

__all__ = ["Schema", "check_schema", "schema_accepts"]

Schema: TypeAlias = dict[str, Any]


_checked: set[str] = set()
"""Valid schemas, of which most types have many in common: a check takes a while."""


def check_schema(schema: Schema) -> None:
    """Raise an error if a schema is invalid, or refers to a definition that it does not have."""
    for text in {json.dumps(part, sort_keys=True) for part in _parts(schema)} - _checked:
        Draft202012Validator.check_schema(json.loads(text))
        _checked.add(text)
    missing = _references(schema) - {f"#/$defs/{name}" for name in schema.get("$defs", {})}
    assert not missing, missing


def _parts(schema: Any) -> Iterator[Any]:
    """Yield a schema and all schemas within it, each with empty ones in place of those within it."""
    if not is_object(schema):
        yield schema
        return
    own = {**schema, "description": ""} if isinstance(schema.get("description"), str) else {**schema}
    for key, value in schema.items():
        if key in ("$defs", "properties") and is_object(value):
            own[key], within = {name: {} for name in value}, [*value.values()]
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems") and is_list(value):
            own[key], within = [{} for _ in value], value
        elif key in ("items", "additionalProperties", "propertyNames"):
            own[key], within = {}, [value]
        else:
            continue
        for part in within:
            yield from _parts(part)
    yield own


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
