"""Normalise a schema: from upstream's spelling to the form that both backends compile.

A chain of pure steps over plain dicts. The result is a JSON Schema document, too. Its definitions are
flat (a property is a reference, a scalar, or a list, map or union of these), and each has a member `x`:

- `kind`: `record` (an object), `open` (an object that keeps undeclared members), `union` (decoded by
  trying its members) or `alias` (everything else);
- `tag`: the constant property by which unions recognise a record, `[name, value]`;
- `names`: property → attribute name; `constants`: property → value; `closed`: no other members allowed;
- `defaults`: property → the value that constructors fill in (`defaults.py`);
- `origin`: the `[definition, property]` at which an inline type occurs.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from mcpspec_codegen import names
from mcpspec_codegen.budget import SCHEMA_STEPS, follow, spend
from mcpspec_codegen.consistency import check_consistency, remove_implied_types
from mcpspec_codegen.cycles import find_recursive
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.exclusive import replace_one_of
from mcpspec_codegen.identifiers import check_names
from mcpspec_codegen.inline import hoist_objects
from mcpspec_codegen.merge import merge_all_of
from mcpspec_codegen.messages import add_alternatives, inherit_envelope, reference_single_members
from mcpspec_codegen.nodes import (
    CHECKS,
    Schema,
    children,
    definitions_key,
    is_never,
    is_schema,
    map_children,
    pointer_text,
    ref_name,
    type_names,
)
from mcpspec_codegen.order import order_members
from mcpspec_codegen.spelling import complete_checks, respell, respell_definitions, with_checks
from mcpspec_codegen.typescript import Order
from mcpspec_codegen.unions import mark_unions

__all__ = ["canonicalise", "canonicalise_node", "merge_definitions", "normalise", "replace_json_values", "replace_refs"]

_META = "_meta"


def normalise(
    schema: Schema, file: str, alternatives: dict[str, list[str]] | None = None, order: Order | None = None
) -> Schema:
    """Return the flat form of a checked schema. Raises `SchemaError` if it cannot be compiled.

    `alternatives` are further results that a request may have: method → definitions. `order` is that of the members;
    without it, they stay as they are.
    """
    defs = merge_definitions(schema, file)
    defs = add_alternatives(defs, alternatives or {})
    check_consistency(defs, file)
    defs = defs if order is None else order_members(defs, order)
    defs = reference_single_members(defs)
    defs = inherit_envelope(defs)
    defs = hoist_objects(defs)
    defs = mark_kinds(defs)
    spend_repetitions(defs)
    defs = mark_unions(defs)
    defs = mark_members(defs, file)
    check_names(defs, file)
    return {"$defs": defs}


def merge_definitions(schema: Schema, file: str) -> dict[str, Schema]:
    """Return the definitions of a schema in one spelling, each with all of its members."""
    defs = replace_one_of(respell_definitions(schema[definitions_key(schema)]))
    defs = remove_implied_types(canonicalise({"$defs": defs}), file)
    return complete_checks(merge_all_of(replace_json_values(defs, file), file))


def canonicalise(schema: Schema) -> dict[str, Schema]:
    """Return the definitions in one spelling for all drafts."""
    return {name: canonicalise_node(node) for name, node in schema[definitions_key(schema)].items()}


def canonicalise_node(node: Any) -> Any:
    """Return a schema in one spelling. Formats are removed, since they do not change the type."""
    return _canonicalise(respell(node))


def _canonicalise(node: Any) -> Any:
    if isinstance(node, bool):
        return {} if node else False
    node = map_children(node, _canonicalise)
    if "$ref" in node:
        return {"$ref": "#/$defs/" + ref_name(node["$ref"])}
    node = _canonicalise_members(node)
    if "anyOf" in node and all("const" in member for member in node["anyOf"]):
        node["enum"] = [member["const"] for member in node.pop("anyOf")]
    if len(variants := _split_types(node)) > 1:
        return with_checks(_canonicalise({"anyOf": variants}), *node.get(CHECKS, []))
    if "anyOf" in node and (plain := _nullable(node["anyOf"])) is not None:
        node = with_checks(plain, *node.get(CHECKS, []))
    if node.get("properties") == {}:
        del node["properties"]
    if node.get("type") == "object" and not node.keys() & {"properties", "additionalProperties", "allOf", "anyOf"}:
        node["additionalProperties"] = {}
    return node


_NUMERIC = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
_OF_TYPE = {
    "object": {
        "properties",
        "required",
        "additionalProperties",
        "propertyNames",
        "patternProperties",
        "minProperties",
        "maxProperties",
    },
    "array": {"items", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "pattern"},
    "integer": _NUMERIC,
    "number": _NUMERIC,
}
"""The keywords that limit values of one type. They do not apply to the values of other types."""


def _split_types(node: Schema) -> list[Schema]:
    """Split a schema of several types into one for each, if a keyword limits values of some of them only."""
    types = type_names(node)
    keywords = set[str]().union(*_OF_TYPE.values())
    if len(types) < 2 or "allOf" in node or node.keys() & {"anyOf", "const", "enum"}:
        return [node]
    is_scalar = not {"object", "array"} & set(types)
    if is_scalar and (len({*types} - {"null"}) < 2 or not node.keys() & keywords):
        return [node]
    return [
        {
            key: value
            for key, value in {**node, "type": kind}.items()
            if key not in keywords - _OF_TYPE.get(kind, set()) | {CHECKS}
        }
        for kind in dict.fromkeys(types)
        if kind != "integer" or "number" not in types
    ]


def _canonicalise_members(node: Schema) -> Schema:
    """Spell the keywords for names and undeclared members of an object in one way."""
    node = dict(node)
    if "properties" in node:
        node["properties"] = {name: member for name, member in node["properties"].items() if not is_never(member)}
    if node.get("additionalProperties") == {"not": {}}:
        node["additionalProperties"] = False
    if node.get("propertyNames", {}) in ({"type": "string"}, {}):
        node.pop("propertyNames", None)
    if pattern := node.pop("patternProperties", None):
        node["additionalProperties"] = next(iter(pattern.values()))
    return node


def _nullable(members: list[Schema]) -> Schema | None:
    """Convert `anyOf` of a scalar and null to one scalar that may be null, since bounds do not apply to null."""
    null = {"type": "null"}
    others = [member for member in members if member != null]
    if (
        len(others) != 1
        or len(members) != 2
        or CHECKS in others[0]
        or others[0].get("type") not in ("string", "integer", "number", "boolean")
    ):
        return None
    if "enum" in others[0] or "const" in others[0]:
        return None
    return {**others[0], "type": [others[0]["type"], "null"]}


def replace_json_values(defs: dict[str, Schema], file: str) -> dict[str, Schema]:
    """Replace the definitions that describe any JSON value by recursion.

    Raises `SchemaError` for a definition that is itself, or one of its own alternatives, which says nothing.
    """
    recursive = find_recursive({name: _refs(node) for name, node in defs.items()})
    anything = _find_anything(defs, recursive)
    replaced = {
        name: {} if name in anything else replace_refs(node, anything) if name in recursive else node
        for name, node in defs.items()
    }
    itself = find_recursive({name: _list_alternatives(node) for name, node in replaced.items()})
    if name := next((name for name in defs if name in itself), None):
        raise SchemaError(file, pointer_text(("$defs", name)), _ITSELF)
    return replaced


def _list_alternatives(node: Any) -> set[str]:
    """Return the definitions that a schema is, or of which its values are, rather than parts of them."""
    if not is_schema(node):
        return set()
    found = {ref_name(node["$ref"])} if "$ref" in node else set[str]()
    return found.union(*(_list_alternatives(each) for key in ("anyOf", "allOf") for each in node.get(key, [])))


_ITSELF = "the definition is itself, or one of its own alternatives; refer to it from a member, an item or a value"
_JSON_TYPES = frozenset({"string", "number", "boolean", "null", "array", "object"})


def _find_anything(defs: dict[str, Schema], recursive: set[str]) -> set[str]:
    """Find the recursive definitions that accept any JSON value: all that are so, given that the others are."""
    found = recursive
    while wrong := {name for name in found if not _is_anything(follow(name, defs), found, defs, {name})}:
        found = found - wrong
    return found


def _is_anything(node: Any, anything: set[str], defs: dict[str, Schema], seen: set[str]) -> bool:
    return is_schema(node) and (not node or _whole_types(node, anything, defs, seen) >= _JSON_TYPES)


def _whole_types(node: Schema, anything: set[str], defs: dict[str, Schema], seen: set[str]) -> set[str]:
    """Return the types of which a schema accepts every value."""

    def is_anything(below: Any) -> bool:
        if is_schema(below) and ref_name(below.get("$ref", "")) in anything:
            return True
        return _is_anything(below, anything, defs, seen)

    if "$ref" in node:
        name = ref_name(node["$ref"])
        target = follow(name, defs)
        return set() if name in seen else _whole_types(target, anything, defs, {*seen, name})
    if node.keys() == {"anyOf"}:
        return set[str]().union(*(_whole_types(member, anything, defs, seen) for member in node["anyOf"]))
    if node.keys() == {"type"} or not node:
        return set(type_names(node) or _JSON_TYPES)
    below = {"array": "items", "object": "additionalProperties"}.get(str(node.get("type")))
    return {node["type"]} if below and node.keys() == {"type", below} and is_anything(node[below]) else set()


def replace_refs(node: Any, names: set[str]) -> Any:
    """Replace the references to some definitions by the schema of any value."""
    if not is_schema(node) or ref_name(node.get("$ref", "")) in names:
        return {} if is_schema(node) else node
    return map_children(node, lambda child: replace_refs(child, names))


def _nodes(node: Any) -> list[Schema]:
    if isinstance(node, bool):
        return []
    return [node, *(below for _, child in children(node) for below in _nodes(child))]


def _refs(node: Any) -> set[str]:
    return {ref_name(below["$ref"]) for below in _nodes(node) if "$ref" in below}


def mark_kinds(defs: dict[str, Schema]) -> dict[str, Schema]:
    """Return the definitions marked as records, open objects or aliases."""
    meta = {
        ref_name(node["properties"][_META]["$ref"])
        for node in defs.values()
        if "$ref" in node.get("properties", {}).get(_META, {})
    }
    return {
        name: {**node, "x": {**node.get("x", {}), **_kind(node, is_meta=name in meta)}} for name, node in defs.items()
    }


def _kind(node: Schema, *, is_meta: bool) -> Schema:
    is_checked = CHECKS in node
    if node.get("additionalProperties") is False:
        return {"kind": "open" if is_checked else "record", "closed": True}
    if "properties" not in node:
        return {"kind": ("union" if "anyOf" in node else "checked") if is_checked else "alias"}
    is_open = is_checked or "additionalProperties" in node or is_meta or _describes_schema(node)
    return {"kind": "open" if is_open else "record"}


def _describes_schema(node: Schema) -> bool:
    """Return whether the values of a definition are JSON Schemas, which may have any keyword."""
    properties = node["properties"]
    return "const" in properties.get("type", {}) and "properties" in properties


def spend_repetitions(defs: dict[str, Schema]) -> None:
    """Count the parts that aliases and unions repeat: types have them at each place of a reference."""
    sizes: dict[str, int] = {}

    def size(node: Any) -> int:
        if not is_schema(node):
            return 0
        if "$ref" not in node:
            return 1 + sum(size(child) for _, child in children(node))
        name = ref_name(node["$ref"])
        if name not in sizes:
            sizes[name] = 1  # of a definition that refers to itself, there
            sizes[name] = 1 if defs[name]["x"]["kind"] in ("record", "open") else size(defs[name])
        return sizes[name]

    for name, node in defs.items():
        spend(SCHEMA_STEPS * (size(node) - len(_nodes(node))), ("$defs", name))


_UNWRITABLE = re.compile(r'[\x00-\x1f"\\]')
"""Characters that msgspec does not allow in the name of a member."""


def mark_members(defs: dict[str, Schema], file: str) -> dict[str, Schema]:
    """Return the definitions with the attributes and the constants of every object."""
    return {
        name: _with_members(node, name, file) if node["x"]["kind"] in ("record", "open") else node
        for name, node in defs.items()
    }


def _with_members(node: Schema, name: str, file: str) -> Schema:
    properties = node.get("properties", {})
    in_dict = node["x"]["kind"] == "open"
    attributes = names.name_attributes(properties, in_dict=in_dict)
    by_name: dict[str, str] = {}
    for key, attribute in attributes.items():
        if not attribute.isidentifier() or attribute in by_name or _UNWRITABLE.search(key):
            other = by_name.get(attribute)
            reason = (
                f"`{other}` and `{key}` would both be named `{attribute}`" if other else f"`{key}` has no Python name"
            )
            raise SchemaError(file, f"/$defs/{name}/properties", reason)
        by_name[attribute] = key
    constants = {key: copy.copy(child["const"]) for key, child in properties.items() if "const" in child}
    return {**node, "properties": properties, "x": {**node["x"], "names": attributes, "constants": constants}}
