"""Decide whether a type certainly has all values of another one.

A sender is taken to send no member that its type does not name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from typedmcp_cli.comparison.interfaces import Node, ref_name

__all__ = ["ANNOTATIONS", "Containment", "list_types", "list_values"]


class Containment:
    """Compares types of two interfaces. Types of the same name count as equal: they are compared by themselves."""

    def __init__(self, wide: Mapping[str, Node], narrow: Mapping[str, Node]) -> None:
        self._wide = wide
        self._narrow = narrow
        self._known: dict[tuple[str, str], bool] = {}

    def accepts(self, wide: Node, narrow: Node) -> bool:
        """Return whether one type certainly has all values of the other. False means that it may lack some."""
        self._known = {}
        return self._accepts(wide, narrow)

    def _accepts(self, wide: Node, narrow: Node) -> bool:
        if wide == narrow or not wide.keys() - ANNOTATIONS:
            return True
        if "$ref" in wide or "$ref" in narrow:
            return self._accepts_named(wide, narrow)
        if parts := _split(narrow):
            return all(self._accepts(wide, part) for part in parts)
        if "anyOf" in wide:
            return any(self._accepts(option, narrow) for option in wide["anyOf"])
        return self._accepts_plain(wide, narrow)

    def _accepts_named(self, wide: Node, narrow: Node) -> bool:
        if wide.get("$ref") == narrow.get("$ref"):
            return True
        pair = (json.dumps(wide, sort_keys=True), json.dumps(narrow, sort_keys=True))
        if pair not in self._known:
            self._known[pair] = True  # while it is looked at: a type may refer to itself
            self._known[pair] = self._accepts(_resolve(wide, self._wide), _resolve(narrow, self._narrow))
        return self._known[pair]

    def _accepts_plain(self, wide: Node, narrow: Node) -> bool:
        if (values := list_values(wide)) is not None:
            narrow_values = _all_values(narrow)
            return narrow_values is not None and {*map(json.dumps, narrow_values)} <= {*map(json.dumps, values)}
        if "const" in narrow:
            narrow = _describe_value(narrow["const"])
        kind = narrow.get("type")
        if "type" in wide and not _has_type(wide, kind):
            return False
        applied = [key for key in wide.keys() - ANNOTATIONS - {"type"} if kind in _APPLIES.get(key, (kind,))]
        return all(self._keeps(key, wide, narrow) for key in applied)

    def _keeps(self, key: str, wide: Node, narrow: Node) -> bool:
        """Return whether a keyword of the wide type holds for the narrow one."""
        if key in _BOUNDS:
            return any(_BOUNDS[key][other](narrow[other], wide[key]) for other in _BOUNDS[key] if other in narrow)
        if key == "items":
            return self._accepts(wide[key], narrow.get(key, {}))
        if key == "required":
            return {*wide[key]} <= {*narrow.get(key, [])}
        if key == "properties":
            return all(
                self._accepts(member, narrow["properties"][name])
                for name, member in wide[key].items()
                if name in narrow.get("properties", {})
            )
        if key == "additionalProperties":
            return self._keeps_others(wide, narrow)
        return key in narrow and wide[key] == narrow[key]

    def _keeps_others(self, wide: Node, narrow: Node) -> bool:
        """Return whether the members that the wide type does not name may be as they are in the narrow one."""
        others = wide["additionalProperties"]
        if others is True or others == {}:
            return True
        known = wide.get("properties", {})
        named = [member for name, member in narrow.get("properties", {}).items() if name not in known]
        rest = narrow.get("additionalProperties", {})
        if others is False:
            return not named and rest is False
        return all(self._accepts(others, member) for member in named) and (
            rest is False or self._accepts(others, {} if rest is True else rest)
        )


ANNOTATIONS: Final = {"title", "description", "default", "examples", "deprecated", "$comment", "discriminator"}
"""Keywords that limit no values."""

_NUMBERS: Final = ("integer", "number")
_APPLIES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _NUMBERS),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), ("string",)),
    **dict.fromkeys(("items", "minItems", "maxItems", "uniqueItems", "prefixItems", "contains"), ("array",)),
    **dict.fromkeys(
        ("properties", "required", "additionalProperties", "propertyNames", "minProperties", "maxProperties"),
        ("object",),
    ),
}
"""Keyword → the types whose values it limits."""


def _at_least(found: float, wanted: float) -> bool:
    return found >= wanted


def _at_most(found: float, wanted: float) -> bool:
    return found <= wanted


def _above(found: float, wanted: float) -> bool:
    return found > wanted


def _below(found: float, wanted: float) -> bool:
    return found < wanted


_BOUNDS: Final[Mapping[str, Mapping[str, Callable[[float, float], bool]]]] = {
    "minimum": {"minimum": _at_least, "exclusiveMinimum": _at_least},
    "maximum": {"maximum": _at_most, "exclusiveMaximum": _at_most},
    "exclusiveMinimum": {"exclusiveMinimum": _at_least, "minimum": _above},
    "exclusiveMaximum": {"exclusiveMaximum": _at_most, "maximum": _below},
    **{key: {key: _at_least} for key in ("minLength", "minItems", "minProperties")},
    **{key: {key: _at_most} for key in ("maxLength", "maxItems", "maxProperties")},
}
"""Bound → the bounds of the narrow type that imply it, each with the comparison."""


def _resolve(node: Node, types: Mapping[str, Node]) -> Node:
    return types.get(ref_name(node["$ref"]), _NOTHING) if "$ref" in node else node


_NOTHING: Final[Node] = {"not": {}}


def _split(node: Node) -> list[Node]:
    """Split a type of several options into these; empty if it is one already."""
    if "anyOf" in node:
        return list(node["anyOf"])
    if "enum" in node:
        return [{"const": value} for value in node["enum"]]
    if isinstance(node.get("type"), list):
        return [{**node, "type": kind} for kind in node["type"]]
    return []


def list_types(node: Node) -> list[str]:
    """List the JSON types that a schema names."""
    found = node.get("type", [])
    return [found] if isinstance(found, str) else [*found]


def list_values(node: Node) -> list[Any] | None:
    """List the values of an enumeration or a constant; None for another type."""
    return [node["const"]] if "const" in node else node.get("enum")


def _all_values(node: Node) -> list[Any] | None:
    """List the values of a type that has a few; None for another type."""
    if node.get("type") == "boolean" and "const" not in node:
        return [True, False]
    return [None] if node.get("type") == "null" else list_values(node)


def _has_type(node: Node, kind: str | None) -> bool:
    types = list_types(node)
    return kind in types or (kind == "integer" and "number" in types)


def _describe_value(value: Any) -> Node:
    """Return a type of which a value is one."""
    kind = next((name for name, of_kind in _JSON_TYPES.items() if type(value) is of_kind), "")
    if kind == "string":
        return {"type": kind, "minLength": len(value), "maxLength": len(value)}
    return {"type": kind, "minimum": value, "maximum": value} if kind in _NUMBERS else {"type": kind}


_JSON_TYPES: Final[Mapping[str, type[Any]]] = {
    "string": str, "boolean": bool, "integer": int, "number": float, "null": type(None), "array": list, "object": dict,
}  # fmt: skip
