"""Schemas that hosts of language models accept: the same values, written with fewer kinds of keywords.

Hosts pass the schemas of tools on to APIs that take a subset of JSON Schema, and some drop a whole server for one
array without `items`. So an array always has `items`, there are no boolean schemas, a union of plain types is one list
of types, and only recursive and large definitions are references.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from typedmcp_schemas.adapt import schema_of
from typedmcp_schemas.definitions import JsonSchema, reference_name
from typedmcp_schemas.json_types import is_array, is_object
from typedmcp_schemas.keywords import ANNOTATIONS, LIST_KEYWORDS, MAP_KEYWORDS, SCHEMA_KEYWORDS
from typedmcp_schemas.type_cache import cached_by_type

__all__ = ["portable_schema_of", "to_portable"]

_MAX_INLINED_BYTES: Final = 4096
"""Size of the largest definition that is written at each place that refers to it: definitions that refer to each other
twice would otherwise double it with each level."""
_MAX_INLINED_TOTAL: Final = 256 << 10
"""Size of all that is written in place of references. The rest stays references, so that a schema cannot explode."""
_ALL_TYPES: Final = frozenset({"null", "boolean", "number", "string", "array", "object"})
_MIN_COLLAPSED: Final = 3
"""Options of the smallest union that becomes a list of types. Every host knows a union with null."""


def portable_schema_of(hint: object, *, references: bool = False) -> JsonSchema:
    """Return the schema of an adapted type in a form that hosts accept.

    With `references`, every definition that `schema_of` makes stays one.
    """
    return {**_to_portable_schema(hint, references)}


@cached_by_type
def _to_portable_schema(hint: object, references: bool) -> JsonSchema:
    return to_portable(schema_of(hint), references=references)


def to_portable(schema: Mapping[str, Any], *, references: bool = False) -> JsonSchema:
    """Return an equivalent schema in a form that hosts accept. Definitions are expected at the root."""
    definitions: dict[str, Any] = schema.get("$defs", {})
    inliner = _Inliner({} if references else definitions)
    root = inliner.rewrite({key: value for key, value in schema.items() if key != "$defs"})
    kept: dict[str, JsonSchema] = {}
    names = [*definitions] if references else _referenced(root)
    for name in names:  # which grows meanwhile
        if name in definitions and name not in kept:
            kept[name] = inliner.rewrite(definitions[name])
            names += _referenced(kept[name])
    return {**root, **({"$defs": kept} if kept else {})}


class _Inliner:
    """Rewrites schemas, with definitions in place of references unless they are recursive or large."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._references = {name: {*_referenced(schema)} & definitions.keys() for name, schema in definitions.items()}
        self._inlined: dict[str, tuple[JsonSchema, int] | None] = {}
        """Rewritten definitions and their sizes by name; None for those that stay references."""
        self._left = _MAX_INLINED_TOTAL

    def rewrite(self, schema: Any) -> Any:
        """Return a schema in a form that hosts accept."""
        if schema is True:
            return {}
        if schema is False:
            return {"not": {}}
        if not is_object(schema):
            return schema  # a schema of somebody else, which is not valid
        made = {key: self._rewrite_member(key, value) for key, value in schema.items() if key != "discriminator"}
        if "discriminator" in schema and "oneOf" in made:  # its options have different tags
            made["anyOf"] = made.pop("oneOf")
        if "anyOf" in made:
            _collapse_union(made)
        kinds = _types_of(made)
        if _ALL_TYPES.issubset(kinds):
            del made["type"]
        elif "array" in kinds:
            _complete_array(made)
        return self._inline(made) if "$ref" in made else made

    def _rewrite_member(self, key: str, value: Any) -> Any:
        if key == "additionalProperties" and isinstance(value, bool):  # a keyword with two values, for most hosts
            return value
        if key == "items" and value is False:
            return False  # of a tuple: see `_complete_array`
        if key in MAP_KEYWORDS and is_object(value):
            return {name: self.rewrite(item) for name, item in value.items()}
        if key in LIST_KEYWORDS and is_array(value):
            return [self.rewrite(item) for item in value]
        return self.rewrite(value) if key in SCHEMA_KEYWORDS and isinstance(value, bool | dict) else value

    def _inline(self, schema: JsonSchema) -> JsonSchema:
        found = self._definition(reference_name(schema))
        if found is None or found[1] > self._left:
            return schema
        inner, size = found
        self._left -= size
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        if "required" in rest:  # beside a reference to an option whose tag has a default
            inner = {**inner, "required": [*dict.fromkeys([*rest.pop("required"), *inner.get("required", ())])]}
        if (rest.keys() & inner.keys()) - ANNOTATIONS:
            return {"allOf": [inner], **rest}
        return {**inner, **rest}

    def _definition(self, name: str) -> tuple[JsonSchema, int] | None:
        """Return a rewritten definition and its size, or None if it stays a reference."""
        if name not in self._inlined:
            self._inlined[name] = None  # meanwhile: a definition that refers to itself stays a reference
            if name in self._definitions:
                made = self.rewrite(self._definitions[name])
                size = len(msgspec.json.encode(made))
                if size <= _MAX_INLINED_BYTES and name not in _reachable(name, self._references):
                    self._inlined[name] = made, size
        return self._inlined[name]


def _types_of(schema: Mapping[str, Any]) -> list[str]:
    kinds: Any = schema.get("type", ())
    return [kinds] if isinstance(kinds, str) else [*kinds]


def _collapse_union(schema: JsonSchema) -> None:
    """Write a union of plain types as one list of types."""
    options = schema["anyOf"]
    if len(options) < _MIN_COLLAPSED or "type" in schema or not all(map(_is_plain, options)):
        return
    kinds = dict.fromkeys(kind for option in options for kind in _types_of(option))
    if "number" in kinds:
        kinds.pop("integer", None)
    del schema["anyOf"]
    schema["type"] = [*kinds]


def _is_plain(schema: object) -> bool:
    return is_object(schema) and schema.keys() == {"type"}


def _complete_array(schema: JsonSchema) -> None:
    """Give an array `items`. A tuple has as many items as types, so that its `items` restrict nothing."""
    items = schema.get("items")
    parts = schema.get("prefixItems")
    if parts and items in (None, False) and all(part == parts[0] for part in parts):
        del schema["prefixItems"]
        schema["items"] = parts[0]
    elif items is None or items is False:
        schema["items"] = {}
    if items is False:
        schema["maxItems"] = min(schema.get("maxItems", len(parts or ())), len(parts or ()))


# References


def _referenced(schema: object) -> list[str]:
    """Return the names of the definitions that a schema refers to, in its order."""
    if is_array(schema):
        return [name for item in schema for name in _referenced(item)]
    if not is_object(schema):
        return []
    names = [name] if isinstance(schema.get("$ref"), str) and (name := reference_name(schema)) else []
    return names + [name for value in schema.values() for name in _referenced(value)]


def _reachable(name: str, references: Mapping[str, set[str]]) -> set[str]:
    """Return the names of the definitions that one refers to, also by way of others."""
    found: set[str] = set()
    names = [*references[name]]
    while names:
        if (each := names.pop()) not in found:
            found.add(each)
            names += references[each]
    return found
