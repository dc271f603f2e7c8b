"""JSON Schemas of arguments: their types in a few words, and the alternatives that a value may match."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from typedmcp.building import is_array, is_object

__all__ = ["describe_type", "find_alternatives", "list_required"]

_MAX_DEPTH = 3
"""Nested arrays that a description shows."""
_MAX_VISITS = 500
"""Schemas that one description visits: they may refer to each other in cycles."""
_TYPE_COUNT = 7
"""JSON Schema has seven types."""
_MAX_CHOICES = 100
"""Values of an `enum` that a description shows."""
_MORE = "…"
_END: Any = object()


def find_alternatives(
    schema: object, root: Mapping[str, Any], visits: Iterator[int] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the schemas that a value may match, with references and unions resolved; none if it may be anything.

    Each schema is visited once, even if others refer to it repeatedly, and at most as many as `visits` has items.
    """
    pending: list[Iterator[Any]] = [iter([schema])]
    seen: dict[int, Any] = {}  # keeps the schemas alive, so that no other object gets the same id
    while pending and (visits is None or next(visits, None) is not None):
        found = next(pending[-1], _END)
        if found is _END:
            pending.pop()
        elif is_object(found) and id(found) not in seen:
            seen[id(found)] = found
            branches = _branches(found, root)
            if (first := next(branches, _END)) is _END:
                yield from _split_types(found)
            else:
                pending += [branches, iter([first])]


def _split_types(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    types: object = schema.get("type")
    for one in types[:_TYPE_COUNT] if is_array(types) else [types]:
        yield {**schema, "type": one} if one is not None else schema


def _branches(schema: dict[str, Any], root: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(ref := schema.get("$ref"), str):
        yield _resolve(ref, root)
    for word in ("anyOf", "oneOf", "allOf"):
        if is_array(branches := schema.get(word)):
            yield from branches


def _resolve(ref: str, root: Mapping[str, Any]) -> object:
    """Resolve a reference within `root`; return an empty schema for any other reference."""
    found: Any = root
    for part in ref.removeprefix("#").split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if is_object(found) else None
    return found if ref.startswith("#") and is_object(found) else {}


def describe_type(schema: object, root: Mapping[str, Any]) -> str:
    """Describe the type of an argument in a few words, such as `array of string`."""
    return _describe(schema, root, iter(range(_MAX_VISITS)), 0)


def _describe(schema: object, root: Mapping[str, Any], visits: Iterator[int], depth: int) -> str:
    texts = [_describe_one(found, root, visits, depth) for found in find_alternatives(schema, root, visits)]
    if next(visits, None) is None:
        texts.append(_MORE)
    return " | ".join(dict.fromkeys(texts)) or "any"


def _describe_one(schema: dict[str, Any], root: Mapping[str, Any], visits: Iterator[int], depth: int) -> str:
    if is_array(values := schema.get("enum")):
        texts = [json.dumps(value, ensure_ascii=False) for value in values[:_MAX_CHOICES]]
        return " | ".join([*texts, _MORE] if len(values) > _MAX_CHOICES else texts)
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if schema.get("type") == "array" and "items" in schema and depth < _MAX_DEPTH:
        inner = _describe(schema["items"], root, visits, depth + 1)
        return f"array of ({inner})" if " | " in inner else f"array of {inner}"
    return str(schema.get("type", "any"))


def list_required(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the members that an object schema requires."""
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if is_array(required) else []
