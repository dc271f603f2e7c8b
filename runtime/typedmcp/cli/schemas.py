"""What JSON Schemas say of arguments, in a few words, and by what a value is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mcpspec._support.objects import is_array, is_object

__all__ = ["alternatives", "required_of", "type_text"]

_DEPTH = 3
"""How many arrays within arrays a text tells of."""
_LOOKS = 500
"""How often schemas are looked at for one text: they may refer to each other over and over."""
_TYPES = 7
"""How many types there are."""
_CHOICES = 100
"""How many values of an `enum` a text has."""
_MORE = "…"
_END: Any = object()


def alternatives(schema: Any, root: Mapping[str, Any], looks: Iterator[int] | None = None) -> Iterator[dict[str, Any]]:
    """The schemas that a value may fit, with references and unions followed. Nothing for one that takes anything.

    Each is looked at once, however often others refer to it, and no more of them than there are `looks`.
    """
    waiting: list[Iterator[Any]] = [iter([schema])]
    seen: dict[int, Any] = {}  # with the schemas, lest another one gets the number of one that has gone
    while waiting and (looks is None or next(looks, None) is not None):
        found = next(waiting[-1], _END)
        if found is _END:
            waiting.pop()
        elif is_object(found) and id(found) not in seen:
            seen[id(found)] = found
            branches = _branches(found, root)
            if (first := next(branches, _END)) is _END:
                yield from _by_type(found)
            else:
                waiting += [branches, iter([first])]


def _by_type(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    types: Any = schema.get("type")
    for one in types[:_TYPES] if is_array(types) else [types]:
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


def type_text(schema: Any, root: Mapping[str, Any]) -> str:
    """The type of an argument in a few words, such as `array of string`."""
    return _text(schema, root, iter(range(_LOOKS)), 0)


def _text(schema: Any, root: Mapping[str, Any], looks: Iterator[int], depth: int) -> str:
    texts = [_one(found, root, looks, depth) for found in alternatives(schema, root, looks)]
    if next(looks, None) is None:
        texts.append(_MORE)
    return " | ".join(dict.fromkeys(texts)) or "any"


def _one(schema: dict[str, Any], root: Mapping[str, Any], looks: Iterator[int], depth: int) -> str:
    if is_array(values := schema.get("enum")):
        texts = [json.dumps(value, ensure_ascii=False) for value in values[:_CHOICES]]
        return " | ".join([*texts, _MORE] if len(values) > _CHOICES else texts)
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if schema.get("type") == "array" and "items" in schema and depth < _DEPTH:
        inner = _text(schema["items"], root, looks, depth + 1)
        return f"array of ({inner})" if " | " in inner else f"array of {inner}"
    return str(schema.get("type", "any"))


def required_of(schema: Mapping[str, Any]) -> list[str]:
    """The members that an object must have."""
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if is_array(required) else []
