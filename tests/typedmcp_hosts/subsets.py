"""The subsets of JSON Schema that the APIs of language models take, as rules that yield what would be refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mcpspec.support.objects import is_array, is_object

__all__ = ["GEMINI_KEYWORDS", "SUBSETS", "find_refusals"]

_MAPS: Final = ("properties", "patternProperties", "$defs")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE: Final = ("items", "additionalProperties", "propertyNames", "not", "contains")
_AT_ROOT: Final = {"anyOf", "oneOf", "allOf", "not", "enum"}
GEMINI_KEYWORDS: Final = {
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
    "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering",
    "default", "items", "minimum", "maximum",
}  # fmt: skip


def find_refusals(schema: Mapping[str, Any], subset: Callable[[Mapping[str, Any]], Iterator[str]]) -> list[str]:
    """Return what an API refuses in the input schema of a tool."""
    return [*subset(schema)]


def _schemas(schema: object, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, schema
    if not is_object(schema):
        return
    for key in _MAPS:
        for name, inner in schema.get(key, {}).items():
            yield from _schemas(inner, f"{path}/{key}/{name}")
    for key in _LISTS:
        for index, inner in enumerate(schema.get(key, ())):
            yield from _schemas(inner, f"{path}/{key}/{index}")
    for key in _SINGLE:
        if key in schema and not (key == "additionalProperties" and isinstance(schema[key], bool)):
            yield from _schemas(schema[key], f"{path}/{key}")


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return [*kinds] if is_array(kinds) else [kinds]


def _common(schema: Mapping[str, Any]) -> Iterator[str]:
    """An object at the root, without unions there; schemas are objects; arrays have items."""
    if schema.get("type") != "object":
        yield "the root is not an object"
    yield from (f"{keyword} at the root" for keyword in _AT_ROOT & schema.keys())
    for path, each in _schemas(schema):
        if not is_object(each):
            yield f"{path}: a boolean schema"
        elif "array" in _kinds(each) and "items" not in each:
            yield f"{path}: an array without items"


def openai(schema: Mapping[str, Any]) -> Iterator[str]:
    """https://platform.openai.com/docs/guides/function-calling, without strict mode."""
    yield from _common(schema)


def anthropic(schema: Mapping[str, Any]) -> Iterator[str]:
    """https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use."""
    yield from _common(schema)
    for name in schema.get("properties", {}):
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name):
            yield f"the property {name!r}"


def gemini(schema: Mapping[str, Any]) -> Iterator[str]:
    """https://ai.google.dev/api/caching#Schema."""
    if schema.get("type") != "object":
        yield "the root is not an object"
    for path, each in _schemas(schema):
        if not is_object(each):
            yield f"{path}: a boolean schema"
            continue
        yield from (f"{path}: {keyword}" for keyword in sorted(each.keys() - GEMINI_KEYWORDS))
        if is_array(each.get("type")):
            yield f"{path}: a list of types"
        if "array" in _kinds(each) and "items" not in each:
            yield f"{path}: an array without items"
        if "enum" in each and (each.get("type") != "string" or not all(isinstance(it, str) for it in each["enum"])):
            yield f"{path}: an enum of other values than strings"
        if undeclared := {*each.get("required", ())} - {*each.get("properties", {})}:
            yield f"{path}: required, but not declared: {undeclared}"


SUBSETS: Final = {"openai": openai, "openai-responses": openai, "anthropic": anthropic, "gemini": gemini}
