"""Schemas that hosts of language models accept: the same values, written with fewer kinds of keywords.

Hosts pass the schemas of tools on to APIs that take a subset of JSON Schema, and some drop a whole server for one
array without `items`. So an array always has `items`, there are no boolean schemas, no `const` and no lists of types,
patterns are those of JavaScript, formats are those that validators know, and only recursive and large definitions are
references.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from typedmcp_schemas.adapt import schema_of
from typedmcp_schemas.definitions import JsonSchema, reference_name
from typedmcp_schemas.ecma_patterns import to_ecma_pattern
from typedmcp_schemas.error_text import KINDS
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
_FORMATS: Final = frozenset({
    "date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uri-reference",
    "uri-template", "json-pointer", "relative-json-pointer", "uuid", "int32", "int64", "float", "double", "byte",
    "binary", "password",
})  # fmt: skip
"""Formats that validators know: those of JSON Schema and of OpenAPI. `regex` is left out: Python's are others."""
_ENCODINGS: Final = ("base64", "base64url")
"""Formats of Pydantic that are encodings in JSON Schema."""
_RESULT_FORMATS: Final = frozenset({"date-time", "date", "time", "ipv4", "ipv6", "uuid"})
"""Formats that all values of Python have which get them. A `duration` has neither fractions nor a sign."""
_KEYWORDS_OF: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType",
                         "contentSchema"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains",
                        "maxContains", "unevaluatedItems"}),
    "object": frozenset({"properties", "patternProperties", "additionalProperties", "propertyNames", "required",
                         "minProperties", "maxProperties", "dependentSchemas", "dependentRequired",
                         "unevaluatedProperties"}),
}  # fmt: skip
"""The keywords that are about values of one type."""
_TUPLE: Final = frozenset({"type", "prefixItems", "items", "minItems", "maxItems"})
"""The keywords of a tuple that may have fewer items than types."""


def portable_schema_of(hint: object, *, references: bool = False, of_results: bool = False) -> JsonSchema:
    """Return the schema of an adapted type in a form that hosts accept.

    With `references`, every definition that `schema_of` makes stays one. `of_results` leaves out the formats that not
    all values have: a `datetime` without a zone is no `date-time`.
    """
    return {**_to_portable_schema(hint, references, of_results)}


@cached_by_type
def _to_portable_schema(hint: object, references: bool, of_results: bool) -> JsonSchema:
    return to_portable(schema_of(hint, of_results=of_results), references=references, of_results=of_results)


def to_portable(schema: Mapping[str, Any], *, references: bool = False, of_results: bool = False) -> JsonSchema:
    """Return an equivalent schema in a form that hosts accept. Definitions are expected at the root.

    It is wider where a pattern or a format has no such form.
    """
    definitions: dict[str, Any] = schema.get("$defs", {})
    inliner = _Inliner({} if references else definitions, _RESULT_FORMATS if of_results else _FORMATS)
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

    def __init__(self, definitions: Mapping[str, Any], formats: frozenset[str]) -> None:
        self._definitions = definitions
        self._formats = formats
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
        if is_array(made.get("anyOf")):
            made = _without_duplicates(made)
        self._restrict_texts(made)
        kinds = _types_of(made)
        if _ALL_TYPES.issubset(kinds):
            del made["type"]
        elif "array" in kinds:
            _complete_array(made)
        return self._inline(made) if "$ref" in made else _with_one_type(made)

    def _restrict_texts(self, schema: JsonSchema) -> None:
        """Leave out a format or a pattern that validators do not know, or write it in another way."""
        if (
            "format" in schema
            and schema["format"] not in self._formats
            and (name := schema.pop("format")) in _ENCODINGS
        ):
            schema.setdefault("contentEncoding", name)
        if "pattern" in schema and (pattern := to_ecma_pattern(str(schema.pop("pattern")))) is not None:
            schema["pattern"] = pattern

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


def _without_duplicates(schema: JsonSchema) -> JsonSchema:
    """Return a union that has each option once, or its only option."""
    options = [*{msgspec.json.encode(option, order="deterministic"): option for option in schema["anyOf"]}.values()]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**options[0], **rest} if len(options) == 1 and is_object(options[0]) else {"anyOf": options, **rest}


def _with_one_type(schema: JsonSchema) -> JsonSchema:
    """Return a schema with one type, or a union of such schemas, and with `enum` in place of `const`."""
    kinds = _types_of(schema)
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if not is_array(choices) or not choices:
        is_list = is_array(schema.get("type")) and bool(kinds)
        return _split(schema, {kind: {"type": kind} for kind in kinds}) if is_list else schema
    groups: dict[str, JsonSchema] = {}
    for choice in choices:
        kind = KINDS.get(type(choice), "number")
        if not kinds or kind in kinds or (kind == "integer" and "number" in kinds):
            items: JsonSchema = {"items": {}} if kind == "array" else {}
            group = groups.setdefault(kind, {"type": kind, **items, **({} if choice is None else {"enum": []})})
            group.get("enum", []).append(choice)
    rest = {key: value for key, value in schema.items() if key not in ("const", "enum")}
    return _split(rest, groups) if groups else schema


def _split(schema: JsonSchema, options: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return a schema for values of these types, each with its own keywords."""
    if len(options) > 1 and "anyOf" in schema:
        return schema  # it has a union already
    rest = {key: value for key, value in schema.items() if key != "type"}
    made: list[JsonSchema] = []
    for kind, option in options.items():
        keywords = _KEYWORDS_OF.get("number" if kind == "integer" else kind, frozenset())
        made.append({**option, **{key: rest[key] for key in keywords & rest.keys()}})
    if len(made) == 1:
        return {**made[0], **rest}
    specific = frozenset[str]().union(*_KEYWORDS_OF.values())
    return {"anyOf": made, **{key: value for key, value in rest.items() if key not in specific}}


def _complete_array(schema: JsonSchema) -> None:
    """Give an array `items`. A tuple has as many items as types, so that its `items` restrict nothing.

    AJV warns of a tuple that may have fewer, so it becomes one tuple for each length, unless that is large: tuples
    within tuples would double with each level.
    """
    items = schema.get("items")
    parts = schema.get("prefixItems")
    least: int = schema.get("minItems", 0)
    if parts and items in (None, False) and all(part == parts[0] for part in parts):
        del schema["prefixItems"]
        schema["items"] = parts[0]
    elif (
        parts
        and items in (None, False)
        and 0 < least < len(parts) == schema.get("maxItems")
        and schema.keys() <= _TUPLE | ANNOTATIONS
        and len(msgspec.json.encode(parts)) * (len(parts) - least + 1) <= _MAX_INLINED_BYTES
    ):
        for keyword in _TUPLE:
            schema.pop(keyword, None)
        schema["anyOf"] = [
            {"type": "array", "prefixItems": parts[:length], "items": {}, "minItems": length, "maxItems": length}
            for length in range(least, len(parts) + 1)
        ]
        return
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
