"""Changes between two offers of a server, as tables from names to descriptions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from typedmcp.building import is_array, is_object, visible
from typedmcp_cli.typed_clients.offer import Offer

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

_References: TypeAlias = tuple[str, ...]

_MAX_DEPTH: Final = 6
_MAX_CHARACTERS: Final = 1 << 18
"""Characters of one schema that are looked at. References can repeat a part of it any number of times."""
_PART_CHARACTERS: Final = 20
"""Characters that each part of a schema counts beside its texts."""
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
                tables[table] |= _SchemaDescriber(schema).describe(name)
    for prompt in offer.prompts:
        name = _show(prompt["name"])
        tables["prompts"][name] = _describe_item(prompt)
        tables["definitions"][f"prompt {name}"] = _digest(prompt)
        found: Any = prompt.get("arguments")
        for argument in filter(is_object, found if is_array(found) else []):
            described = f", {_show(argument['description'], quoted=True)}" if argument.get("description") else ""
            text = f"string{'' if argument.get('required') else ', optional'}{described}"
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


class _TooLargeError(Exception):
    """A schema is larger, with its references followed, than what is described."""


class _SchemaDescriber:
    """Describes the members of one schema, up to a limit."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._left = _MAX_CHARACTERS

    def describe(self, name: str) -> dict[str, str]:
        """Return the description of each member by its path below a name."""
        found: dict[str, str] = {}
        try:
            for path, text in self._members(self._root, (), 0):
                self._spend(len(path) + len(text))
                found[f"{name}.{path}"] = text
        except _TooLargeError:
            found[f"{name}.…"] = f"not listed: more than {_MAX_CHARACTERS} characters with all references followed"
        return found

    def _members(self, schema: dict[str, Any], enclosing: _References, depth: int) -> Iterator[tuple[str, str]]:
        """Yield path and description of each member, also of objects within."""
        properties: Any = schema.get("properties")
        listed: Any = schema.get("required")
        required = {name for name in listed if isinstance(name, str)} if is_array(listed) else set[str]()
        self._spend(len(required))
        for name, part in properties.items() if is_object(properties) else ():
            found, inside = self._resolve(part, enclosing)
            kind = self._type(part, enclosing, 0)
            yield self._show(name), f"{kind}{'' if name in required else ', optional'}{self._described(found)}"
            if found.get("type") == "array":
                found, inside = self._resolve(found.get("items"), inside)
                name += "[]"
            if depth < _MAX_DEPTH and inside is not None:
                for path, text in self._members(found, inside, depth + 1):
                    yield f"{self._show(name)}.{path}", text

    def _resolve(self, schema: Any, enclosing: _References | None) -> tuple[dict[str, Any], _References | None]:
        """Return a schema, or the definition in the same document that it refers to, and the references around it.

        These are None within a definition that refers to itself.
        """
        reference: Any = schema.get("$ref") if is_object(schema) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema if is_object(schema) else {}, enclosing
        place: Any = self._root
        for part in reference[2:].split("/"):
            place = place.get(part.replace("~1", "/").replace("~0", "~")) if is_object(place) else None
        inside = None if enclosing is None or reference in enclosing else (*enclosing, reference)
        return place if is_object(place) else {}, inside

    def _type(self, schema: Any, enclosing: _References, depth: int) -> str:
        self._spend(_PART_CHARACTERS)
        found, inside = self._resolve(schema, enclosing)
        if depth > _MAX_DEPTH:
            return "any"
        for word in ("anyOf", "oneOf"):
            options: Any = found.get(word)
            if is_array(options):
                if inside is None:
                    return "any"
                return " | ".join(dict.fromkeys(self._type(option, inside, depth + 1) for option in options[:50]))
        values: Any = [found["const"]] if "const" in found else found.get("enum")
        if is_array(values):
            return " | ".join(self._show(value, quoted=True) for value in values)
        kinds: Any = found.get("type")
        if is_array(kinds):
            return " | ".join(self._show(kind) for kind in kinds)
        if kinds == "array":
            inner = "any" if inside is None else self._type(found.get("items", {}), inside, depth + 1)
            return f"list of {f'({inner})' if ' | ' in inner else inner}"
        return self._show(kinds) if isinstance(kinds, str) else "any"

    def _described(self, schema: dict[str, Any]) -> str:
        """Return bounds and description of a member."""
        parts = [f"{text} {self._show(schema[name], quoted=True)}" for name, text in _BOUNDS.items() if name in schema]
        described: Any = schema.get("description")
        return "".join(f", {part}" for part in [*parts, *([self._show(described, quoted=True)] if described else [])])

    def _show(self, value: object, *, quoted: bool = False) -> str:
        text = _text(value, quoted=quoted)
        self._spend(len(text))
        return visible(text, _SHOWN_CHARACTERS)

    def _spend(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise _TooLargeError


def _show(value: object, *, quoted: bool = False) -> str:
    """Return text of a server as one line."""
    return visible(_text(value, quoted=quoted), _SHOWN_CHARACTERS)


def _text(value: object, *, quoted: bool) -> str:
    return json.dumps(value, ensure_ascii=False) if quoted else str(value)
