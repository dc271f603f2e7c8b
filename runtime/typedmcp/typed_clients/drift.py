"""Changes between two offers of a server, as tables from names to descriptions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from mcpspec.support.objects import is_array, is_object
from typedmcp.protocol.text import visible
from typedmcp.typed_clients.offer import Offer

__all__ = ["TABLES", "OfferTables", "read_offer_tables"]

OfferTables: TypeAlias = dict[str, dict[str, str]]
"""Descriptions by table and name."""

TABLES: Final = {
    "tools": "Tools",
    "arguments": "Arguments",
    "results": "Results",
    "prompts": "Prompts",
    "prompt_arguments": "Arguments of prompts",
    "resources": "Resources",
    "templates": "Templates",
    "definitions": "Definitions, apart from the above",
}
"""The titles of the tables."""

_MAX_DEPTH: Final = 6
_SHOWN_CHARACTERS: Final = 500
_BOUNDS: Final = {
    "minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most", "exclusiveMaximum": "less than",
    "minLength": "length at least", "maxLength": "length at most", "minItems": "length at least",
    "maxItems": "length at most", "pattern": "pattern", "format": "format", "default": "default",
}  # fmt: skip


def read_offer_tables(offer: Offer) -> OfferTables:
    """Return the tables of an offer.

    Of each tool and prompt, `definitions` has a digest of the whole, so that no change goes unseen.
    """
    tables: OfferTables = {name: {} for name in TABLES}
    for tool in offer.tools:
        name = _show(tool["name"])
        tables["tools"][name] = _describe_item(tool)
        tables["definitions"][name] = _digest(tool)
        for table, member in (("arguments", "inputSchema"), ("results", "outputSchema")):
            schema: Any = tool.get(member)
            if is_object(schema):
                tables[table] |= {f"{name}.{path}": text for path, text in _members(schema, schema, 0)}
    for prompt in offer.prompts:
        name = _show(prompt["name"])
        tables["prompts"][name] = _describe_item(prompt)
        tables["definitions"][f"prompt {name}"] = _digest(prompt)
        found: Any = prompt.get("arguments")
        for argument in filter(is_object, found if is_array(found) else []):
            text = f"string{'' if argument.get('required') else ', optional'}{_described(argument)}"
            tables["prompt_arguments"][f"{name}.{_show(argument.get('name'))}"] = text
    for kind, key, items in (("resources", "uri", offer.resources), ("templates", "uriTemplate", offer.templates)):
        tables[kind] = {_show(item[key]): _describe_item(item) for item in items}
    return tables


def _digest(item: dict[str, Any]) -> str:
    return f"digest {hashlib.sha256(json.dumps(item, sort_keys=True).encode()).hexdigest()[:16]}"


def _describe_item(item: dict[str, Any]) -> str:
    """Describe a tool, a prompt or a resource: its description, title, and hints, which hosts and models read."""
    parts = [_show(item.get("description", ""), quoted=True)]
    if "title" in item:
        parts.append(f"title {_show(item['title'], quoted=True)}")
    if "mimeType" in item:
        parts.append(_show(item["mimeType"]))
    annotations: Any = item.get("annotations")
    if is_object(annotations):
        parts += [f"{_show(name)} {_show(value, quoted=True)}" for name, value in sorted(annotations.items())]
    return ", ".join(parts)


def _members(schema: dict[str, Any], root: dict[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    """Yield path and description of each member, also of objects within."""
    properties: Any = schema.get("properties")
    required: Any = schema.get("required")
    for name, part in properties.items() if is_object(properties) else ():
        found = _resolve(part, root)
        is_optional = not is_array(required) or name not in required
        yield _show(name), f"{_type(part, root, 0)}{', optional' if is_optional else ''}{_described(found)}"
        inner: Any = found.get("items") if found.get("type") == "array" else found
        if depth < _MAX_DEPTH and is_object(inner):
            mark = "[]" if found.get("type") == "array" else ""
            for path, text in _members(_resolve(inner, root), root, depth + 1):
                yield f"{_show(name)}{mark}.{path}", text


def _resolve(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    """Return a schema, or the definition in the same document that it refers to."""
    reference: Any = schema.get("$ref") if is_object(schema) else None
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema if is_object(schema) else {}
    place: Any = root
    for part in reference[2:].split("/"):
        place = place.get(part.replace("~1", "/").replace("~0", "~")) if is_object(place) else None
    return place if is_object(place) else {}


def _type(schema: Any, root: dict[str, Any], depth: int) -> str:
    found = _resolve(schema, root)
    if depth > _MAX_DEPTH:
        return "any"
    for word in ("anyOf", "oneOf"):
        options: Any = found.get(word)
        if is_array(options):
            return " | ".join(dict.fromkeys(_type(option, root, depth + 1) for option in options[:50]))
    values: Any = [found["const"]] if "const" in found else found.get("enum")
    if is_array(values):
        return " | ".join(_show(value, quoted=True) for value in values)
    kinds: Any = found.get("type")
    if is_array(kinds):
        return " | ".join(_show(kind) for kind in kinds)
    if kinds == "array":
        inner = _type(found.get("items", {}), root, depth + 1)
        return f"list of {f'({inner})' if ' | ' in inner else inner}"
    return _show(kinds) if isinstance(kinds, str) else "any"


def _described(schema: dict[str, Any]) -> str:
    """Return bounds and description of a member."""
    bounds = [f"{text} {_show(schema[name], quoted=True)}" for name, text in _BOUNDS.items() if name in schema]
    described: Any = schema.get("description")
    return "".join(f", {part}" for part in [*bounds, *([_show(described, quoted=True)] if described else [])])


def _show(value: object, *, quoted: bool = False) -> str:
    """Return text of a server as one line."""
    return visible(json.dumps(value, ensure_ascii=False) if quoted else str(value), _SHOWN_CHARACTERS)
