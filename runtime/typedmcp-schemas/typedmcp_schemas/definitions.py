"""JSON Schemas as data: definitions are collected at the root, under unique names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from typedmcp_schemas.json_types import is_array, is_object
from typedmcp_schemas.keywords import MAP_KEYWORDS

__all__ = ["REFERENCE", "JsonSchema", "collect_definitions", "object_schema", "reference_name", "resolve_root"]

JsonSchema: TypeAlias = dict[str, Any]
"""A JSON Schema that is an object."""

REFERENCE: Final = "#/$defs/{name}"
"""A reference to a definition at the root."""
_DATA_KEYWORDS: Final = frozenset({"default", "enum", "const", "examples", "required"})
"""Keywords whose values hold no schemas."""
_OMITTED_KEYWORDS: Final = frozenset({"$defs", "uniqueItems"})
"""Definitions move to the root. `uniqueItems` would be wrong: a set accepts an array that repeats a value."""
_DECIMAL: Final = r"^[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|NaN|Infinity)$"
"""Texts of decimals: what models should write, and what is written of results."""


def collect_definitions(root: Mapping[str, Any], components: Mapping[str, Any]) -> JsonSchema:
    """Return a schema whose definitions, and `components`, are in `$defs` at its root."""
    definitions: dict[str, Any] = dict.fromkeys(components)
    schema = _hoist({**root}, definitions)
    for name, definition in components.items():
        definitions[name] = _hoist(definition, definitions)
    return _inline_root(schema, definitions)


def object_schema(properties: Mapping[str, JsonSchema], additional: JsonSchema | bool) -> JsonSchema:
    """Return the schema of an object with these properties; other properties must match `additional`."""
    definitions: dict[str, Any] = {}
    members = {name: _hoist_property(schema, definitions) for name, schema in properties.items()}
    root = {"type": "object", "properties": members, "additionalProperties": _hoist_property(additional, definitions)}
    return {**root, **({"$defs": definitions} if definitions else {})}


def _hoist_property(schema: JsonSchema | bool, definitions: dict[str, Any]) -> Any:
    """Move the definitions of a schema that `collect_definitions` has made. Most have none."""
    return _hoist(schema, definitions) if is_object(schema) and "$defs" in schema else schema


def resolve_root(schema: JsonSchema) -> JsonSchema:
    """Return the definition that a schema refers to, or the schema itself if it is not a reference."""
    definitions: dict[str, JsonSchema] = schema.get("$defs", {})
    while (name := reference_name(schema)) in definitions:
        schema = definitions[name]
    return schema


def reference_name(schema: Mapping[str, Any]) -> str:
    """Return the name of the definition that a schema refers to, or an empty text."""
    return str(schema.get("$ref", "")).removeprefix(REFERENCE.format(name=""))


def _hoist(schema: Any, definitions: dict[str, Any]) -> Any:
    """Move the definitions of a schema to `definitions`, renamed where another definition has their name."""
    if is_array(schema):
        return [_hoist(item, definitions) for item in schema]
    if not is_object(schema):
        return schema
    if schema.get("format") == "decimal":  # msgspec accepts numbers as well
        schema = {**schema, "type": ["number", "string"], "pattern": _DECIMAL}
    renamed: dict[str, str] = {}
    for name, definition in schema.get("$defs", {}).items():
        new = name
        while new in definitions and definitions[new] != definition:
            new += "_"
        definitions[new] = definition
        if new != name:
            renamed[REFERENCE.format(name=name)] = REFERENCE.format(name=new)
            definitions[new] = _rename_references(definition, renamed)
    members = {
        key: _hoist_member(key, value, definitions) for key, value in schema.items() if key not in _OMITTED_KEYWORDS
    }
    return _rename_references(members, renamed) if renamed else members


def _hoist_member(key: str, value: object, definitions: dict[str, Any]) -> Any:
    if key in _DATA_KEYWORDS:
        return value
    if key in MAP_KEYWORDS and is_object(value):
        return {name: _hoist(item, definitions) for name, item in value.items()}
    return _hoist(value, definitions)


def _rename_references(schema: object, names: Mapping[str, str]) -> Any:
    if is_array(schema):
        return [_rename_references(item, names) for item in schema]
    if not is_object(schema):
        return schema
    return {
        key: names.get(value, value) if key == "$ref" else _rename_references(value, names)
        for key, value in schema.items()
    }


def _inline_root(root: JsonSchema, definitions: dict[str, Any]) -> JsonSchema:
    """Replace a root that is only a reference by its definition, unless other schemas refer to that, too."""
    name = reference_name(root)
    if name in definitions and len(root) == 1:
        text = msgspec.json.encode(definitions).decode()
        if f'"{REFERENCE.format(name=name)}"' not in text:
            root = definitions.pop(name)
    return {**root, **({"$defs": definitions} if definitions else {})}
