"""Input schemas in the subsets that the APIs of language models take.

A subset can be wider than the schema: the server checks the arguments of every call.

References can repeat a part of a schema any number of times: written in place, 3 kB of JSON become gigabytes. So there
is a limit on what is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from typedmcp.building import is_array, is_object
from typedmcp_schemas import to_portable
from typedmcp_schemas.keywords import LIST_KEYWORDS, MAP_KEYWORDS, SCHEMA_KEYWORDS

__all__ = ["MAX_SCHEMA_BYTES", "DeclarationError", "to_gemini_schema", "to_json_schema"]

_JsonSchema: TypeAlias = dict[str, Any]

MAX_SCHEMA_BYTES: Final = 256 << 10
"""Bytes of the input schema of one tool in the format of an API. Definitions count at each place that they stand in:
Gemini has no references."""
_REFERENCE: Final = "#/$defs/"
_NOT_AT_ROOT: Final = frozenset({"anyOf", "oneOf", "allOf", "not", "enum", "$schema", "$id"})
"""Keywords that OpenAI and Anthropic refuse at the root of a schema, or that say nothing to a model."""
_MAX_DEFINITIONS: Final = 100
"""Definitions of a schema up to which they are written in place for OpenAI and Anthropic."""
_MAX_DEPTH: Final = 64
"""Levels of a schema. What is below accepts everything."""
_GEMINI_KEYWORDS: Final = frozenset({
    "title", "description", "minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength",
    "pattern", "default", "minimum", "maximum",
})  # fmt: skip
"""https://ai.google.dev/api/caching#Schema: keywords that are passed on as they are."""
_GEMINI_FORMATS: Final = frozenset({"date-time", "enum", "float", "double", "int32", "int64"})
_SCHEMA_BYTES: Final = len('{"type":"object"}')
"""Bytes that each schema counts beside its texts."""
_TOO_DEEP: Final = "is nested too deeply"
_INVALID: Final = (TypeError, LookupError, AttributeError)
"""Exceptions for schemas that are not valid. Such a schema accepts everything: the server has the last word."""


class DeclarationError(ValueError):
    """A tool cannot be declared to an API because of its input schema."""


def to_json_schema(schema: Mapping[str, Any], max_bytes: int = MAX_SCHEMA_BYTES) -> _JsonSchema:
    """Return an input schema as OpenAI and Anthropic take it: an object at the root, and portable below.

    Raises `DeclarationError` if it has more than `max_bytes`.
    """
    definitions = schema.get("$defs")
    has_many = is_object(definitions) and len(definitions) > _MAX_DEFINITIONS
    made = _to_object(_to_portable(schema, references=has_many))
    if _has_more(made, max_bytes):
        made = _to_object(_to_portable(schema, references=True))
    return _check_size(made, max_bytes)


def to_gemini_schema(schema: Mapping[str, Any], max_bytes: int = MAX_SCHEMA_BYTES) -> _JsonSchema:
    """Return an input schema as Gemini's `Schema`, which has neither references nor lists of types.

    Raises `DeclarationError` if it has more than `max_bytes`.
    """
    made = _to_portable(schema, references=True)
    try:
        root = _GeminiWriter(made.get("$defs", {}), max_bytes).write(made, ())
    except _INVALID:
        root = {}
    except RecursionError:
        raise DeclarationError(_TOO_DEEP) from None
    return _check_size({**root, "type": "object"} if root.keys() != {"anyOf"} else {"type": "object"}, max_bytes)


def _to_object(schema: _JsonSchema) -> _JsonSchema:
    root = {key: value for key, value in schema.items() if key not in _NOT_AT_ROOT}
    if "$ref" in root:
        root = {**_resolve(root, schema.get("$defs", {})), "$defs": schema.get("$defs", {})}
    return {**root, "type": "object", "properties": root.get("properties", {})}


def _to_portable(schema: Mapping[str, Any], *, references: bool) -> _JsonSchema:
    try:
        return to_portable(_clean(schema, _MAX_DEPTH), references=references)
    except _INVALID:
        return {"type": "object"}
    except RecursionError:
        raise DeclarationError(_TOO_DEEP) from None


def _has_more(schema: _JsonSchema, max_bytes: int) -> bool:
    return len(msgspec.json.encode(schema)) > max_bytes


def _check_size(schema: _JsonSchema, max_bytes: int) -> _JsonSchema:
    if _has_more(schema, max_bytes):
        raise _too_large(max_bytes)
    return schema


def _too_large(max_bytes: int) -> DeclarationError:
    text = f"has more than {max_bytes} bytes (max_schema_bytes) in the format of the API"
    return DeclarationError(f"{text}; raise the limit, or let the server offer a smaller schema")


def _clean(schema: object, depth: int) -> _JsonSchema:
    """Return a schema of any draft in the shape of 2020-12, with an empty schema for what is none."""
    if schema is False:
        return {"not": {}}
    if depth == 0 or not is_object(schema):
        return {}
    made: _JsonSchema = {}
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


def _resolve(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> _JsonSchema:
    """Return the definition that a schema refers to, with the schema's other keywords."""
    name = str(schema["$ref"]).removeprefix(_REFERENCE)
    inner: Any = definitions.get(name, {})
    return {**inner, **{key: value for key, value in schema.items() if key != "$ref"}}


class _GeminiWriter:
    """Writes schemas with definitions in place of references, up to a number of bytes."""

    def __init__(self, definitions: Mapping[str, Any], max_bytes: int) -> None:
        self._definitions = definitions
        self._max_bytes = max_bytes
        self._left = max_bytes

    def write(self, schema: Mapping[str, Any], enclosing: tuple[str, ...]) -> _JsonSchema:
        """Return a schema as Gemini takes it. `enclosing` are the references that it stands for."""
        if "$ref" in schema:
            name = str(schema["$ref"])
            if name in enclosing or len(enclosing) > _MAX_DEPTH:
                return {"type": "object"}  # a recursive type ends where it would begin again
            schema, enclosing = _resolve(schema, self._definitions), (*enclosing, name)
            if "$ref" in schema:
                return {"type": "object"}
        self._spend(_SCHEMA_BYTES + len(schema))
        options = schema.get("anyOf") or schema.get("oneOf")
        if is_array(options):
            return self._write_union(schema, options, enclosing)
        kinds = schema.get("type")
        if is_array(kinds):
            return self._write_union({}, ({**schema, "type": kind} for kind in kinds), enclosing)
        made = {key: value for key, value in schema.items() if key in _GEMINI_KEYWORDS and value is not None}
        made.update(_gemini_choices(schema))
        if schema.get("format") in _GEMINI_FORMATS:
            made["format"] = schema["format"]
        self._spend_text(made)
        kind = kinds or made.get("type") or ("object" if "properties" in schema else None)
        if kind is None:
            return made
        made["type"] = kind
        made.update(self._write_parts(schema, kind, enclosing))
        return made

    def _write_parts(self, schema: Mapping[str, Any], kind: str, enclosing: tuple[str, ...]) -> _JsonSchema:
        if kind == "array":
            parts = schema.get("prefixItems")
            items = schema.get("items") or ({"anyOf": parts} if parts else {})
            return {"items": self.write(items, enclosing) or {"type": "string"}}
        if kind != "object" or not is_object(properties := schema.get("properties")) or not properties:
            return {}
        required = [*(schema.get("required") or ())]
        self._spend_text([*properties, *required])
        made: _JsonSchema = {"properties": {name: self.write(inner, enclosing) for name, inner in properties.items()}}
        return {**made, "required": required} if required else made

    def _write_union(
        self, schema: Mapping[str, Any], options: Iterable[Any], enclosing: tuple[str, ...]
    ) -> _JsonSchema:
        """Return a union, whose null is `nullable`."""
        made = {key: schema[key] for key in ("title", "description", "default") if schema.get(key) is not None}
        self._spend_text(made)
        inner: list[_JsonSchema] = []
        for option in options:
            if option.get("type") == "null":
                made["nullable"] = True
            else:
                inner.append(self.write(option, enclosing))
        if len(inner) == 1:
            return {**inner[0], **made}
        return {"anyOf": inner, **made} if inner else made

    def _spend_text(self, part: object) -> None:
        self._spend(len(msgspec.json.encode(part)))

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise _too_large(self._max_bytes)


def _gemini_choices(schema: Mapping[str, Any]) -> _JsonSchema:
    """Return the choices of a schema: as `enum` if they are strings, otherwise as a description."""
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if not is_array(choices):
        return {}
    if all(isinstance(choice, str) for choice in choices):
        return {"type": "string", "enum": [*choices]}
    text = f"One of: {', '.join(map(str, choices))}"
    return {"description": f"{schema['description']} {text}" if schema.get("description") else text}
