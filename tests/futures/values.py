"""Random values of the definitions of a schema, right and wrong ones, of which `jsonschema` says which they are."""

from __future__ import annotations

import copy
import re
from random import Random
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7, DRAFT202012

from mcpspec_codegen.messages import inherit_envelope
from mcpspec_codegen.nodes import definitions_key, is_schema, ref_name, type_names
from tests.codegen.helpers import Schema
from tests.futures.plan import closed

__all__ = ["Values"]

_URI = "urn:future"
_DEPTH = 3
"""Depth to which optional members are made. Required ones that contain themselves end deeper, or not at all."""
_LIMIT = 12
_TEXTS = ["abc", "a", "", "2026-07", "x-y", "https://acme.test/a?b", "Zm9v", "ä💥", "abcdefgh", "2026-07-28T00:00:00Z"]
_JUNK: list[Any] = [None, True, 7, -1, 1.5, "x", "", [], {}, [1], {"a": 1}]


class Values:
    """The values of a schema, which has its errata applied."""

    def __init__(self, schema: Schema, random: Random) -> None:
        key = definitions_key(schema)
        self.defs: Schema = inherit_envelope(schema[key])
        self._random = random
        is_old = key == "definitions"
        contents = {**schema, key: self.defs}
        specification: Any = DRAFT7 if is_old else DRAFT202012
        resource: Any = Resource.from_contents(contents, default_specification=specification)
        self._registry: Any = Registry[Any]().with_resource(_URI, resource).crawl()
        self._prefix = f"{_URI}#/{key}/"
        self._kind: Any = Draft7Validator if is_old else Draft202012Validator
        self._validators: dict[str, Any] = {}
        self._reach: dict[str, set[str]] = {}

    def accepts(self, name: str, value: Any) -> bool:
        """Return whether a value is one of a definition. Types that are inline in the schema have any value."""
        if name not in self.defs:
            return True
        if name not in self._validators:
            self._validators[name] = self._kind({"$ref": self._prefix + name}, registry=self._registry)
        found: bool = self._validators[name].is_valid(value)
        return found

    def reach(self, name: str) -> set[str]:
        """Return a definition, and all that it refers to directly or not."""
        if name not in self._reach:
            self._reach[name] = closed(self.defs, name)
        return self._reach[name]

    def make(self, name: str) -> Any:
        """Make a value that a definition most likely accepts."""
        return self._make(self.defs[name], 0)

    def spoil(self, value: Any) -> Any:
        """Return a value with one change somewhere in it, which most likely makes it wrong."""
        value = copy.deepcopy(value)
        places = [*_places(value)]
        if not places:
            return self._random.choice(_JUNK)
        holder, key = self._random.choice(places)
        kind = self._random.random()
        if kind < 0.35:
            del holder[key]
        elif kind < 0.85 or isinstance(holder, list):
            holder[key] = self._random.choice(_JUNK)
        else:
            holder["unheardOf"] = self._random.choice(_JUNK)
        return value

    def _make(self, node: Any, depth: int) -> Any:
        if not is_schema(node) or not node or depth > _LIMIT:
            return self._random.choice(_JUNK)
        if "$ref" in node:
            return self._make(self.defs[ref_name(node["$ref"])], depth)
        if "allOf" in node:
            parts = [self._make(part, depth) for part in node["allOf"]]
            own = {key: value for key, value in node.items() if key != "allOf"}
            parts += [self._make(own, depth)] if own.keys() & {"properties", "type", "required"} else []
            objects = [part for part in parts if is_schema(part)]
            return {key: value for part in objects for key, value in part.items()} if objects else parts[-1]
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                made = self._make(self._random.choice(node[keyword]), depth)
                rest = {key: value for key, value in node.items() if key != keyword}
                beside = self._make(rest, depth) if "properties" in rest else None
                return {**beside, **made} if is_schema(beside) and is_schema(made) else made
        if "const" in node:
            return copy.deepcopy(node["const"])
        if "enum" in node:
            return copy.deepcopy(self._random.choice(node["enum"]))
        kind = self._random.choice(type_names(node) or ["object" if "properties" in node else "string"])
        return self._make_of_type(kind, node, depth)

    def _make_of_type(self, kind: str, node: Schema, depth: int) -> Any:
        random = self._random
        if kind == "object":
            return self._make_object(node, depth)
        if kind == "array":
            return self._make_array(node, depth)
        if kind in ("integer", "number"):
            return self._make_number(kind, node)
        if kind == "boolean":
            return random.random() < 0.5
        if kind == "null":
            return None
        low, high = node.get("minLength", 0), node.get("maxLength", 99)
        texts = [text for text in _TEXTS if low <= len(text) <= high]
        fitting = [text for text in texts if re.search(node.get("pattern", ""), text)] or texts or ["a" * low]
        return random.choice(fitting)

    def _make_number(self, kind: str, node: Schema) -> Any:
        low: float = node["minimum"] if "minimum" in node else node.get("exclusiveMinimum", -3)
        high: float = node["maximum"] if "maximum" in node else node.get("exclusiveMaximum", low + 10)
        step = node.get("multipleOf")
        if step is not None:
            return step * 2
        if kind == "number" and self._random.random() < 0.5:
            return low + (high - low) * 0.375
        return int(self._random.randint(int(low), max(int(low), int(high))))

    def _make_object(self, node: Schema, depth: int) -> dict[str, Any]:
        required = node.get("required", [])
        chance = 0.6 if depth < _DEPTH else 0.0
        made = {
            name: self._make(child, depth + 1)
            for name, child in node.get("properties", {}).items()
            if (name in required or self._random.random() < chance) and child != {"not": {}}
        }
        others = node.get("additionalProperties")
        if others not in (None, False, {"not": {}}) and self._random.random() < chance:
            made["more"] = self._make(others, depth + 1)
        names = node.get("propertyNames", {}).get("enum", [])
        return {key: value for key, value in made.items() if not names or key in names}

    def _make_array(self, node: Schema, depth: int) -> list[Any]:
        places: list[Any] = node.get("prefixItems") or []
        if isinstance(node.get("items"), list):
            places = node["items"]
        made = [self._make(place, depth + 1) for place in places]
        count = max(node.get("minItems", 0), self._random.randint(0, 2) if depth < _DEPTH else 0)
        if "items" in node and is_schema(node["items"]):
            made += [self._make(node["items"], depth + 1) for _ in range(count - len(made))]
        elif "items" not in node:
            made += [self._random.choice(_JUNK) for _ in range(count - len(made))]
        return made


def _places(value: Any) -> list[tuple[Any, Any]]:
    """List the places within a JSON value, each as the object or array that holds it, and its key there."""
    if isinstance(value, dict):
        pairs: list[tuple[Any, Any]] = [*value.items()]  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list):
        pairs = [*enumerate(value)]  # pyright: ignore[reportUnknownArgumentType]
    else:
        return []
    found: list[tuple[Any, Any]] = []
    for key, below in pairs:
        found.append((value, key))  # pyright: ignore[reportUnknownArgumentType]
        found += _places(below)
    return found
