"""From upstream's schema to the form that both backends compile.

A chain of pure steps over plain dicts. What comes out is again a JSON Schema document, all of whose
definitions stand under `$defs` and are flat (a property holds a reference, a scalar, or a list, map or
union of these), with one extra member `x` on each definition:

- `kind`: `record` (an object), `open` (an object that keeps members it does not declare), `union`
  (decoded by trying its members) or `alias` (everything else);
- `tag`: the constant property by which unions find a record, `[name, value]`;
- `names`: property → attribute name; `constants`: property → value; `closed`: no other members allowed;
- `origin`: the `[definition, property]` that an inline type was found at.
"""

from __future__ import annotations

import copy
import keyword
import re
from typing import Any

from codegen import names
from codegen.errors import SchemaError
from codegen.inline import hoist_objects
from codegen.merge import merge_all_of
from codegen.messages import add_alternatives, inherit_envelope, single_member_unions
from codegen.nodes import (
    ANNOTATIONS,
    Schema,
    children,
    definitions_key,
    map_children,
    pointer_text,
    ref_name,
    type_names,
)
from codegen.unions import mark_unions

__all__ = ["canonical", "json_values", "normalise"]

_META = "_meta"


def normalise(schema: Schema, file: str, alternatives: dict[str, list[str]] | None = None) -> Schema:
    """The flat form of a checked schema. Raises `SchemaError` for what cannot be compiled.

    `alternatives` are results that a request may have beside its own: method → definitions.
    """
    defs = canonical(schema)
    defs = add_alternatives(defs, alternatives or {})
    defs = json_values(defs, file)
    defs = merge_all_of(defs, file)
    defs = single_member_unions(defs)
    defs = inherit_envelope(defs)
    defs = hoist_objects(defs, file)
    mark_kinds(defs)
    mark_unions(defs, file)
    mark_members(defs, file)
    check_names(defs, file)
    return {"$defs": defs}


_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_TAKEN = frozenset(
    {
        "Any", "ClassVar", "Literal", "TypeAlias", "TYPE_CHECKING", "TypeAliasType", "TypingAnnotated",
        "ClosedModel", "ConstantStruct", "DecodeError", "Field", "MISSING", "Meta", "Model", "OpenObject",
        "Struct", "UNSET", "UnsetType",
    }
)  # fmt: skip
"""What the generated modules import; `Annotated` is there too, but may be a definition."""


def check_names(defs: dict[str, Schema], file: str) -> None:
    """Definitions become classes and aliases: their names must be free and look like it."""
    for name in defs:
        if not _NAME.fullmatch(name):
            raise SchemaError(file, pointer_text(("$defs", name)), "a definition's name must look like `ToolResult`")
        if name in _TAKEN or keyword.iskeyword(name):
            raise SchemaError(file, pointer_text(("$defs", name)), f"`{name}` is a name that is taken")


def canonical(schema: Schema) -> dict[str, Schema]:
    """Definitions in one spelling, whatever the draft; without formats, since a wire type changes nothing."""
    return {name: _canonical(node) for name, node in schema[definitions_key(schema)].items()}


def _canonical(node: Any) -> Any:
    if isinstance(node, bool):
        return {} if node else False
    node = map_children({key: value for key, value in node.items() if key not in _DROPPED}, _canonical)
    if "$ref" in node:
        return {"$ref": "#/$defs/" + ref_name(node["$ref"])}
    if node.get("additionalProperties") == {"not": {}}:
        node["additionalProperties"] = False
    if node.get("propertyNames", {}) in ({"type": "string"}, {}):
        node.pop("propertyNames", None)
    if "anyOf" in node and all("const" in member for member in node["anyOf"]):
        node["enum"] = [member["const"] for member in node.pop("anyOf")]
    if "anyOf" in node and (plain := _nullable(node["anyOf"])) is not None:
        node = plain
    if node.get("properties") == {}:
        del node["properties"]
    if node.get("type") == "object" and not node.keys() & {"properties", "additionalProperties", "allOf", "anyOf"}:
        node["additionalProperties"] = {}
    return node


def _nullable(members: list[Schema]) -> Schema | None:
    """`anyOf` of a scalar and null as one scalar that may be null: bounds do not concern null."""
    null = {"type": "null"}
    others = [member for member in members if member != null]
    if len(others) != 1 or len(members) != 2 or others[0].get("type") not in ("string", "integer", "number", "boolean"):
        return None
    if "enum" in others[0] or "const" in others[0]:
        return None
    return {**others[0], "type": [others[0]["type"], "null"]}


_DROPPED = ANNOTATIONS | {"$schema", "$id", "format", "default"}


def json_values(defs: dict[str, Schema], file: str) -> dict[str, Schema]:
    """The definitions that spell out "any JSON" by recursion, replaced by what they mean.

    Any other recursion has no exact type in msgspec and is an error.
    """
    defs = dict(defs)
    for name in list(defs):
        if name not in (cycle := _reachable(defs, name)):
            continue
        if any("properties" in node for member in cycle for node in _nodes(defs[member])):
            raise SchemaError(file, f"/$defs/{name}", "a recursion other than that of JSON values")
        defs[name] = _any_json(defs[name], name, file)
    return defs


def _any_json(node: Schema, name: str, file: str) -> Schema:
    if node.get("type") == "object":
        return {"type": "object", "additionalProperties": {}}
    if node.get("type") == "array":
        return {"type": "array", "items": {}}
    scalars = {kind for member in node.get("anyOf", []) for kind in type_names(member)}
    if not {"string", "boolean", "number", "null"} <= scalars:
        raise SchemaError(file, f"/$defs/{name}", "a recursive definition that leaves out some JSON values")
    return {}


def _nodes(node: Any) -> list[Schema]:
    if isinstance(node, bool):
        return []
    return [node, *(below for _, child in children(node) for below in _nodes(child))]


def _refs(node: Any) -> list[str]:
    return [ref_name(below["$ref"]) for below in _nodes(node) if "$ref" in below]


def _reachable(defs: dict[str, Schema], start: str) -> set[str]:
    seen: set[str] = set()
    todo = _refs(defs[start])
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += _refs(defs[name])
    return seen


def mark_kinds(defs: dict[str, Schema]) -> None:
    """Sort definitions into records, open objects and the rest."""
    meta = {
        ref_name(node["properties"][_META]["$ref"])
        for node in defs.values()
        if "$ref" in node.get("properties", {}).get(_META, {})
    }
    for name, node in defs.items():
        extra = node.setdefault("x", {})
        if node.get("additionalProperties") is False:
            extra.update(kind="record", closed=True)
        elif "properties" in node:
            is_open = "additionalProperties" in node or name in meta or _describes_schema(node)
            extra["kind"] = "open" if is_open else "record"
        else:
            extra["kind"] = "alias"


def _describes_schema(node: Schema) -> bool:
    """Whether instances are themselves JSON Schemas of objects, which may use any keyword."""
    properties = node["properties"]
    return "const" in properties.get("type", {}) and "properties" in properties


def mark_members(defs: dict[str, Schema], file: str) -> None:
    """Name the attributes and find the constants of every object."""
    for name, node in defs.items():
        extra = node["x"]
        if extra["kind"] not in ("record", "open"):
            continue
        properties = node.setdefault("properties", {})
        in_dict = extra["kind"] == "open"
        extra["names"] = {key: names.attribute_name(key, in_dict=in_dict) for key in properties}
        by_name: dict[str, str] = {}
        for key, attribute in extra["names"].items():
            if not attribute.isidentifier() or attribute in by_name:
                other = by_name.get(attribute)
                reason = (
                    f"`{other}` and `{key}` would both be named `{attribute}`"
                    if other
                    else f"`{key}` has no Python name"
                )
                raise SchemaError(file, f"/$defs/{name}/properties", reason)
            by_name[attribute] = key
        extra["constants"] = {key: copy.copy(child["const"]) for key, child in properties.items() if "const" in child}
