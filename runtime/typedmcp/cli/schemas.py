"""What JSON Schemas say of arguments, in a few words, and by what a value is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mcpspec._support.objects import is_array, is_object

__all__ = ["alternatives", "required_of", "type_text"]

_DEPTH = 20
"""How deep references are followed: a schema may refer to itself."""


def alternatives(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Iterator[dict[str, Any]]:
    """The schemas that a value may fit, with references and unions followed. Nothing for one that takes anything."""
    if not is_object(schema) or depth > _DEPTH:
        return
    found = [*_branches(schema, root)]
    for branch in found:
        yield from alternatives(branch, root, depth + 1)
    if not found:
        types: Any = schema.get("type")
        for one in types if is_array(types) else [types]:
            yield {**schema, "type": one} if one is not None else schema


def _branches(schema: dict[str, Any], root: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(ref := schema.get("$ref"), str):
        yield _at(ref, root)
    for word in ("anyOf", "oneOf", "allOf"):
        if is_array(branches := schema.get(word)):
            yield from branches


def _at(ref: str, root: Mapping[str, Any]) -> Any:
    """What a reference within the schema refers to; an empty schema for any other."""
    found: Any = root
    for part in ref.removeprefix("#").split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if is_object(found) else None
    return found if ref.startswith("#") and is_object(found) else {}


def type_text(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """The type of an argument in a few words, such as `array of string`."""
    texts = [_one(found, root, depth) for found in alternatives(schema, root)]
    return " | ".join(dict.fromkeys(texts)) or "any"


def _one(schema: dict[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if is_array(values := schema.get("enum")):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if schema.get("type") == "array" and "items" in schema and depth < 3:
        inner = type_text(schema["items"], root, depth + 1)
        return f"array of ({inner})" if " | " in inner else f"array of {inner}"
    return str(schema.get("type", "any"))


def required_of(schema: Mapping[str, Any]) -> list[str]:
    """The members that an object must have."""
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if is_array(required) else []
