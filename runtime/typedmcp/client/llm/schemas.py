"""Input schemas in the subsets that the APIs of language models take.

A subset can be wider than the schema: the server checks the arguments of every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcpspec.support.objects import is_array, is_object
from typedmcp.jsonschema.definitions import LIST_KEYWORDS, MAP_KEYWORDS, REFERENCE, SCHEMA_KEYWORDS, JsonSchema
from typedmcp.jsonschema.portable import to_portable

__all__ = ["to_gemini_schema", "to_json_schema"]

_NOT_AT_ROOT: Final = frozenset({"anyOf", "oneOf", "allOf", "not", "enum", "$schema", "$id"})
"""Keywords that OpenAI and Anthropic refuse at the root of a schema, or that say nothing to a model."""
_MAX_DEFINITIONS: Final = 100
"""Definitions that are written in place, in schemas of other people's servers."""
_MAX_DEPTH: Final = 64
"""Levels of a schema. What is below accepts everything."""
_GEMINI_KEYWORDS: Final = frozenset({
    "title", "description", "minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength",
    "pattern", "default", "minimum", "maximum",
})  # fmt: skip
"""https://ai.google.dev/api/caching#Schema: keywords that are passed on as they are."""
_GEMINI_FORMATS: Final = frozenset({"date-time", "enum", "float", "double", "int32", "int64"})


def to_json_schema(schema: Mapping[str, Any]) -> JsonSchema:
    """Return an input schema as OpenAI and Anthropic take it: an object at the root, and portable below."""
    made = _to_portable(schema)
    root = {key: value for key, value in made.items() if key not in _NOT_AT_ROOT}
    if "$ref" in root:
        root = {**_resolve(root, made.get("$defs", {})), "$defs": made.get("$defs", {})}
    return {**root, "type": "object", "properties": root.get("properties", {})}


def to_gemini_schema(schema: Mapping[str, Any]) -> JsonSchema:
    """Return an input schema as Gemini's `Schema`, which has neither references nor lists of types."""
    made = _to_portable(schema)
    root = _to_gemini(made, made.get("$defs", {}), ())
    return {**root, "type": "object"} if root.keys() != {"anyOf"} else {"type": "object"}


def _to_portable(schema: Mapping[str, Any]) -> JsonSchema:
    definitions = schema.get("$defs")
    has_many = is_object(definitions) and len(definitions) > _MAX_DEFINITIONS
    try:
        return to_portable(_clean(schema, _MAX_DEPTH), references=has_many)
    except (TypeError, RecursionError):  # a schema that is not valid: the server has the last word
        return {"type": "object"}


def _clean(schema: object, depth: int) -> JsonSchema:
    """Return a schema of any draft in the shape of 2020-12, with an empty schema for what is none."""
    if schema is False:
        return {"not": {}}
    if depth == 0 or not is_object(schema):
        return {}
    made: JsonSchema = {}
    for key, value in schema.items():
        if key in MAP_KEYWORDS or key == "$defs":
            made[key] = {name: _clean(inner, depth - 1) for name, inner in value.items()} if is_object(value) else {}
        elif key == "items" and is_array(value):  # a tuple in older drafts
            made["prefixItems"] = [_clean(inner, depth - 1) for inner in value]
        elif key in LIST_KEYWORDS and is_array(value):
            made[key] = [_clean(inner, depth - 1) for inner in value]
        elif key in SCHEMA_KEYWORDS and not isinstance(value, bool):
            made[key] = _clean(value, depth - 1)
        else:
            made[key] = value
    return made


def _resolve(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> JsonSchema:
    """Return the definition that a schema refers to, with the schema's other keywords."""
    name = str(schema["$ref"]).removeprefix(REFERENCE.format(name=""))
    inner: Any = definitions.get(name, {})
    return {**inner, **{key: value for key, value in schema.items() if key != "$ref"}}


def _to_gemini(schema: Mapping[str, Any], definitions: Mapping[str, Any], enclosing: tuple[str, ...]) -> JsonSchema:
    if "$ref" in schema:
        name = str(schema["$ref"])
        if name in enclosing or len(enclosing) > _MAX_DEPTH:
            return {"type": "object"}  # a recursive type ends where it would begin again
        schema, enclosing = _resolve(schema, definitions), (*enclosing, name)
        if "$ref" in schema:
            return {"type": "object"}
    options = schema.get("anyOf") or schema.get("oneOf")
    if is_array(options):
        return _gemini_union(schema, options, definitions, enclosing)
    kinds = schema.get("type")
    if is_array(kinds):
        options = [{**schema, "type": kind} for kind in kinds]
        return _gemini_union({}, options, definitions, enclosing)
    made = {key: value for key, value in schema.items() if key in _GEMINI_KEYWORDS and value is not None}
    made.update(_gemini_choices(schema))
    if schema.get("format") in _GEMINI_FORMATS:
        made["format"] = schema["format"]
    kind = kinds or made.get("type") or ("object" if "properties" in schema else None)
    if kind is None:
        return made
    made["type"] = kind
    made.update(_gemini_parts(schema, kind, definitions, enclosing))
    return made


def _gemini_choices(schema: Mapping[str, Any]) -> JsonSchema:
    """Return the choices of a schema: as `enum` if they are strings, otherwise as a description."""
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if not is_array(choices):
        return {}
    if all(isinstance(choice, str) for choice in choices):
        return {"type": "string", "enum": [*choices]}
    text = f"One of: {', '.join(map(str, choices))}"
    return {"description": f"{schema['description']} {text}" if schema.get("description") else text}


def _gemini_parts(
    schema: Mapping[str, Any], kind: str, definitions: Mapping[str, Any], enclosing: tuple[str, ...]
) -> JsonSchema:
    if kind == "array":
        parts = schema.get("prefixItems")
        items = schema.get("items") or ({"anyOf": parts} if parts else {})
        return {"items": _to_gemini(items, definitions, enclosing) or {"type": "string"}}
    if kind != "object" or not is_object(properties := schema.get("properties")) or not properties:
        return {}
    made: JsonSchema = {
        "properties": {name: _to_gemini(inner, definitions, enclosing) for name, inner in properties.items()}
    }
    if required := schema.get("required"):
        made["required"] = [*required]
    return made


def _gemini_union(
    schema: Mapping[str, Any], options: list[Any], definitions: Mapping[str, Any], enclosing: tuple[str, ...]
) -> JsonSchema:
    """Return a union, whose null is `nullable`."""
    inner = [_to_gemini(option, definitions, enclosing) for option in options if option.get("type") != "null"]
    made = {key: schema[key] for key in ("title", "description", "default") if schema.get(key) is not None}
    if len(inner) < len(options):
        made["nullable"] = True
    if len(inner) == 1:
        return {**inner[0], **made}
    return {"anyOf": inner, **made} if inner else made
