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
import json
import re
from collections.abc import Iterator
from typing import Any

from codegen import names
from codegen.errors import SchemaError
from codegen.merge import merge_all_of
from codegen.nodes import (
    ANNOTATIONS,
    BOUNDS,
    Schema,
    children,
    definitions_key,
    is_schema,
    map_children,
    pointer_text,
    ref_name,
    type_names,
)
from codegen.unions import mark_unions

__all__ = [
    "CLIENT",
    "INPUT_REQUEST",
    "NOTIFICATION",
    "REQUEST",
    "SERVER",
    "alternative_name",
    "direct_members",
    "normalise",
]

CLIENT, SERVER = "Client", "Server"
REQUEST, NOTIFICATION = "Request", "Notification"
INPUT_REQUEST = "InputRequest"
"""The names by which upstream's schemas say who sends what: `ClientRequest`, `ServerNotification`, …"""

_DIRECTIONS = [side + kind for kind in (REQUEST, NOTIFICATION) for side in (CLIENT, SERVER)]
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
        if name in _TAKEN:
            raise SchemaError(file, pointer_text(("$defs", name)), f"`{name}` is a name that the generated modules use")


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


def alternative_name(base: str) -> str:
    """The union of a request's own result and its alternatives: `CallTool` → `CallToolRequestResult`."""
    return f"{base}{REQUEST}Result"


def add_alternatives(defs: dict[str, Schema], alternatives: dict[str, list[str]]) -> dict[str, Schema]:
    """Unions for the requests that may have other results than their own."""
    unions = {}
    for name, node in defs.items():
        if others := alternatives.get(node.get("properties", {}).get("method", {}).get("const")):
            base = name.removesuffix(REQUEST)
            members = [f"{base}Result", *others]
            unions[alternative_name(base)] = {"anyOf": [{"$ref": f"#/$defs/{member}"} for member in members]}
    return {**defs, **unions}


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


def single_member_unions(defs: dict[str, Schema]) -> dict[str, Schema]:
    """A direction union of one message that upstream wrote out in place becomes a reference to the message."""
    defs = dict(defs)
    for union in _DIRECTIONS:
        node = defs.get(union, {})
        twins = [name for name, other in defs.items() if name != union and other == node]
        if "properties" in node and twins:
            defs[union] = {"$ref": f"#/$defs/{twins[0]}"}
    return defs


def inherit_envelope(defs: dict[str, Schema]) -> dict[str, Schema]:
    """Older messages leave `jsonrpc`, `id` and `_meta` to their base types: write them out, optional as there."""
    defs = dict(defs)
    for union in _DIRECTIONS:
        kind = REQUEST if union.endswith(REQUEST) else NOTIFICATION
        envelope = defs.get("JSONRPC" + kind)
        for name in direct_members(defs, union):
            if envelope and "jsonrpc" not in defs.get(name, {}).get("properties", {"jsonrpc": {}}):
                defs[name] = _with_envelope(defs[name], envelope)
    return defs


def direct_members(defs: dict[str, Schema], union: str) -> list[str]:
    """The definitions that a direction union names; none where a revision has no such union."""
    node = defs.get(union, {})
    return [ref_name(member["$ref"]) for member in node.get("anyOf", [node]) if "$ref" in member]


def _with_envelope(message: Schema, envelope: Schema) -> Schema:
    inherited = {key: node for key, node in envelope["properties"].items() if key in ("jsonrpc", "id")}
    properties = {**inherited, **message["properties"]}
    meta = envelope["properties"].get("params", {}).get("properties", {}).get(_META)
    params = properties.get("params", {})
    if meta is not None and "properties" in params and _META not in params["properties"]:
        properties["params"] = {**params, "properties": {_META: meta, **params["properties"]}}
    return {**message, "properties": properties}


def hoist_objects(defs: dict[str, Schema], file: str) -> dict[str, Schema]:
    """Every inline object gets a definition: that of an equal named one, or one named by its place.

    An object that stands at several places under one property name is one type of that name, but
    for `params`, which belong to their method.
    """
    return _Hoister(defs, file).run()


class _Hoister:
    def __init__(self, defs: dict[str, Schema], file: str) -> None:
        self.file = file
        self.official = defs
        self.out: dict[str, Schema] = {}
        self.twins = {
            _shape(node): name for name, node in reversed(defs.items()) if node.keys() & {"properties", "anyOf"}
        }
        self.shared = _shared_names(defs)

    def run(self) -> dict[str, Schema]:
        for name, node in self.official.items():
            self.out[name] = {}  # holds the definition's place before those hoisted out of it
            self.out[name] = self._inside(node, name, name)
        return self.out

    def _inside(self, node: Schema, place: str, owner: str, key: str = "") -> Schema:
        """A schema with the schemas below it flattened."""
        node = dict(node)
        if "properties" in node:
            node["properties"] = {
                name: self._flat(child, place + names.pascal(name), owner, name)
                for name, child in node["properties"].items()
            }
        if "items" in node:
            node["items"] = self._flat(node["items"], place + "Item", owner, key, below=True)
        if isinstance(node.get("additionalProperties"), dict):
            node["additionalProperties"] = self._flat(
                node["additionalProperties"], place + "Value", owner, key, below=True
            )
        if "anyOf" in node:
            node["anyOf"] = [
                self._variant(member, place, index, owner, key) for index, member in enumerate(node["anyOf"])
            ]
        return node

    def _variant(self, member: Schema, place: str, index: int, owner: str, key: str) -> Schema:
        if (twin := self.twins.get(_shape(member))) is not None:
            return {"$ref": f"#/$defs/{twin}"}
        return self._flat(member, place + _variant_suffix(member, index), owner, key, below=True)

    def _flat(self, node: Schema, place: str, owner: str, key: str, *, below: bool = False) -> Schema:
        if "anyOf" in node and (twin := self.twins.get(_shape(node))) is not None:
            return {"$ref": f"#/$defs/{twin}"}
        # Constraints are written on members and definitions: what is constrained below them gets a definition.
        is_constrained = below and not BOUNDS.isdisjoint(node)
        if "properties" not in node and node.get("additionalProperties") is not False and not is_constrained:
            return self._inside(node, place, owner, key)
        shared = self.shared.get((_shape(node), key))
        name = shared or place
        if name in self.official or (name in self.out and not shared):
            raise SchemaError(self.file, f"/$defs/{owner}", f"the inline type {name} would hide another one")
        if name not in self.out:
            self.out[name] = {}
            self.out[name] = {**self._inside(node, name, name), "x": {"origin": [owner, key]}}
        return {"$ref": f"#/$defs/{name}"}


def _variant_suffix(member: Schema, index: int) -> str:
    """What tells an inline union member apart: its constant, else its number."""
    properties = member.get("properties", {})
    consts = [node["const"] for node in properties.values() if isinstance(node.get("const"), str)]
    return names.pascal(consts[-1]) if consts else f"Variant{index + 1}"


def _shape(node: Schema) -> str:
    return json.dumps(node, sort_keys=True)


def _shared_names(defs: dict[str, Schema]) -> dict[tuple[str, str], str]:
    """Names for the inline objects that stand in several definitions: shape and property → name.

    Named by the property alone, or by the shortest place where that is taken or generic (`_meta`).
    """
    places: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for name, node in defs.items():
        for key, child, place in _inline_objects(node, name):
            places.setdefault((_shape(child), key), set()).add((name, place))
    shared: dict[tuple[str, str], str] = {}
    for (shape, key), found in places.items():
        if len({name for name, _ in found}) > 1:
            bare = names.pascal(key)
            shortest = min((place for _, place in found), key=lambda place: (len(place), place))
            taken = key.startswith("_") or bare in defs or bare in shared.values()
            shared[shape, key] = shortest if taken else bare
    return shared


def _inline_objects(node: Schema, place: str) -> Iterator[tuple[str, Schema, str]]:
    """Property name, schema and place of each object written in place, but for `params`."""
    for pointer, child in children(node):
        if not is_schema(child):
            continue
        key = str(pointer[-1]) if pointer[0] == "properties" else ""
        below = place + names.pascal(key)
        if "properties" in child and key not in ("", "params"):
            yield key, child, below
        yield from _inline_objects(child, below)


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
