"""Restore what a generator of JSON Schema has lost: references, optional members, and objects that stay open.

Generators that start from types of another language write the definitions that a type refers to into it, write a
member that may be undefined as one of any value, and close every object, although their parsers ignore unknown members.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import Schema, is_schema, map_children, pointer_text, ref_name
from mcpspec_codegen.normalise import canonicalise_node, replace_json_values, replace_refs

__all__ = ["GeneratedFacts", "drop_format_patterns", "hoist_definitions", "restore"]


class GeneratedFacts(TypedDict):
    """Facts about a schema that a generator has written."""

    extends: str
    """The revision whose definitions are written inline."""
    copies: dict[str, str]
    """Pointer of an inline type, below the definitions → the definition of the revision that it stands for.

    For types that differ in details from those of the revision; equal ones are found.
    """


def hoist_definitions(schema: Schema, key: str, file: str) -> Schema:
    """Return a schema in which the definitions that others contain stand beside them, where references expect them."""
    hoisted: dict[str, Any] = {}
    definitions = {name: _without_definitions(node, hoisted, file) for name, node in schema[key].items()}
    if clashing := sorted(name for name in hoisted.keys() & definitions.keys() if hoisted[name] != definitions[name]):
        raise SchemaError(file, pointer_text((key, clashing[0])), "a definition within another has the same name")
    return {**schema, key: {**definitions, **hoisted}}


def _without_definitions(node: Any, hoisted: dict[str, Any], file: str) -> Any:
    if not is_schema(node):
        return node
    for key in ("$defs", "definitions"):
        for name, below in node.get(key, {}).items():
            found = _without_definitions(below, hoisted, file)
            if hoisted.setdefault(name, found) != found:
                raise SchemaError(file, "", f"two definitions within others are named `{name}`, and differ")
    rest = {key: value for key, value in node.items() if key not in ("$defs", "definitions")}
    return map_children(rest, lambda child: _without_definitions(child, hoisted, file), with_checks=True)


def drop_format_patterns(node: Any) -> Any:
    """Return a schema without patterns beside a format, which generators write to spell the format out."""
    if not is_schema(node):
        return node
    kept = {key: value for key, value in node.items() if key != "pattern" or "format" not in node}
    return map_children(kept, drop_format_patterns, with_checks=True)


def restore(
    own: Mapping[str, Schema], base: Mapping[str, Schema], copies: Mapping[str, str], file: str
) -> dict[str, Schema]:
    """Return canonical definitions with references to each other, and to the `base` definitions that they contain.

    Raises `SchemaError` for a copy that the schema or the revision does not have.
    """
    own = replace_json_values(dict(own), file)
    anything = {name for name, node in own.items() if not node}
    own = {name: replace_refs(node, anything) for name, node in own.items() if name not in anything}
    opened = {name: canonicalise_node(_open(node)) for name, node in own.items()}
    restorer = _Restorer(opened, base, copies)
    restored = {name: restorer.inside(node, name) for name, node in opened.items()}
    if unused := sorted(copies.keys() - restorer.used):
        reason = f"generated: no inline type is there, or {base and copies[unused[0]]} is no definition to refer to"
        raise SchemaError(file, "/" + unused[0], reason)
    return restored


def _open(node: Any) -> Any:
    """Return a schema whose objects take unknown members, and whose members may be undefined where they may be any."""
    if not is_schema(node):
        return node
    optional = {name for name, member in node.get("properties", {}).items() if _may_be_undefined(member)}
    node = map_children(node, _open)
    if "allOf" in node and all(_is_choice(part) for part in node["allOf"]):
        return _join(node["allOf"])
    if node.get("additionalProperties") is False:
        del node["additionalProperties"]
    if "anyOf" in node and len(defined := [member for member in node["anyOf"] if member != {}]) < len(node["anyOf"]):
        node = defined[0] if len(defined) == 1 else {**node, "anyOf": defined}
    if "required" in node and "properties" not in node and "propertyNames" in node:
        del node["required"]  # names of a map: those of members that may be undefined
    elif optional:
        node["required"] = [name for name in node.get("required", []) if name not in optional]
    return node


def _is_choice(part: Schema) -> bool:
    return "anyOf" in part and all("properties" in option for option in part["anyOf"])


def _join(parts: list[Schema]) -> Schema:
    """Return one object for a choice of members beside other choices. Since objects are open, no choice excludes any.

    Required are the members that all options of a part require.
    """
    options = [option for part in parts for option in part["anyOf"]]
    properties = {name: member for option in options for name, member in option["properties"].items()}
    required = [
        name
        for part in parts
        for name in part["anyOf"][0].get("required", [])
        if all(name in option.get("required", []) for option in part["anyOf"])
    ]
    return {"type": "object", "properties": properties, "required": required}


def _may_be_undefined(member: Any) -> bool:
    return is_schema(member) and len(member.get("anyOf", [])) > 1 and {} in member["anyOf"]


class _Restorer:
    def __init__(self, own: Mapping[str, Schema], base: Mapping[str, Schema], copies: Mapping[str, str]) -> None:
        self.base = base
        self.copies = copies
        self.used: set[str] = set()
        self.own_shapes = _index_shapes(own, own)
        self.base_shapes = _index_shapes(base, base)

    def inside(self, node: Any, place: str) -> Any:
        """Return a copy of a schema in which the types below it are references where they can be."""
        if not is_schema(node):
            return node
        made: Schema = {}
        for key, value in node.items():
            if key == "properties":
                made[key] = {name: self.flat(child, f"{place}/{name}", name) for name, child in value.items()}
            elif key in ("anyOf", "allOf"):
                made[key] = [self.flat(child, f"{place}/{index}") for index, child in enumerate(value)]
            elif key in ("items", "additionalProperties"):
                made[key] = self.flat(value, f"{place}/{key}")
            else:
                made[key] = value
        return made

    def flat(self, node: Any, place: str, key: str = "") -> Any:
        name = self._find(node, place, key) if is_schema(node) else None
        return self.inside(node, place) if name is None else {"$ref": f"#/$defs/{name}"}

    def _find(self, node: Schema, place: str, key: str) -> str | None:
        """Find the definition that an inline type is a copy of, if it is one and only one."""
        if (stated := self.copies.get(place)) in self.base and "$ref" not in node:
            self.used.add(place)
            return stated
        shape = _shape(node)
        for shapes in (self.own_shapes, self.base_shapes):
            found = [name for name in shapes.get(shape, []) if key != "params" or not name.endswith("Result")]
            if len(found) == 1:
                return found[0]
        return None


def _index_shapes(defs: Mapping[str, Schema], known: Mapping[str, Schema]) -> dict[str, list[str]]:
    """Return the names of definitions by their shape. Types that are no more than a scalar are left out."""
    shapes: dict[str, list[str]] = {}
    for name, node in defs.items():
        whole = _expand(node, known)
        if whole.keys() & {"properties", "anyOf", "propertyNames"} or len(whole.get("enum", [])) > 1:
            shapes.setdefault(_shape(whole), []).append(name)
    return shapes


def _expand(node: Any, defs: Mapping[str, Schema]) -> Any:
    """Return a schema with the definitions that it refers to in place of the references."""
    if not is_schema(node):
        return node
    if "$ref" in node:
        return _expand(defs[ref_name(node["$ref"])], defs)
    return canonicalise_node(map_children(node, lambda child: _expand(child, defs)))


_SAFE_INTEGER = 2**53 - 1
"""The bound that generators write for every integer."""


def _shape(node: Any) -> str:
    """Return a text that equal types have in common, however a generator orders and limits them."""
    return json.dumps(_plain(node), sort_keys=True)


def _plain(node: Any) -> Any:
    if not is_schema(node):
        return node
    made = map_children(node, _plain)
    if made.get("type") == "integer":
        made["type"] = "number"
    if "properties" in made and made.get("additionalProperties") in (False, {}):
        del made["additionalProperties"]
    for bound in [key for key in ("minimum", "maximum") if key in made and abs(made[key]) == _SAFE_INTEGER]:
        del made[bound]
    return {key: _sorted(value) if key in ("required", "enum", "anyOf") else value for key, value in made.items()}


def _sorted(values: Iterable[Any]) -> list[Any]:
    return sorted(values, key=lambda value: json.dumps(value, sort_keys=True))
