"""Choose tags for unions, and mark the unions that msgspec cannot decode by itself.

msgspec distinguishes the members of a union by JSON type, and several objects by a *tag*: a constant
member that all of them have. Other unions become `union` definitions: both backends decode them by
trying their members, best match first.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from mcpspec_codegen import names
from mcpspec_codegen.cycles import find_recursive
from mcpspec_codegen.inline import free_name
from mcpspec_codegen.nodes import CHECKS, Schema, children, is_schema, ref_name, references, type_names

__all__ = ["find_common_tag", "list_members", "mark_unions"]

_STRING, _LIST, _OBJECT, _CUSTOM, _ANY = "string", "list", "object", "custom", "any"


def mark_unions(defs: dict[str, Schema]) -> dict[str, Schema]:
    """Return the definitions with tags, and with the unions without one marked; inline ones get a definition.

    The functions below change these copies, since each choice depends on those before it.
    """
    defs = {name: {**node, "x": {**node["x"]}} for name, node in defs.items()}
    for name in _find_recursive_aliases(defs):
        defs[name]["x"] |= {"kind": "union" if "anyOf" in defs[name] else "checked", "recursive": True}
    _choose_tags(defs)
    for name in list(defs):
        if "anyOf" in defs[name] and CHECKS not in defs[name] and not _is_native(defs[name], defs):
            defs[name]["x"]["kind"] = "union"
    for name in list(defs):
        node = defs[name]
        if node["x"]["kind"] == "union":
            defs[name] = {**node, "anyOf": _hoist_members(node, name, [name, ""], defs)}
        else:
            defs[name] = _hoist_below(node, name, [name, ""], defs)
    for node in defs.values():
        if "anyOf" in node and node["x"]["kind"] == "alias" and (tag := find_common_tag(node, defs)):
            node["discriminator"] = {"propertyName": tag}
    return defs


def list_members(node: Schema, defs: dict[str, Schema]) -> list[Schema]:
    """List the members of a union and of the unions in it. A definition that is not a union is its own member.

    So is one with checks, since it rejects values of its members, and one of lists or maps of itself.
    """
    if "$ref" in node:
        target = defs[ref_name(node["$ref"])]
        is_leaf = target.get("x", {}).get("kind") in ("record", "open", "checked") or CHECKS in target
        return [node] if is_leaf else list_members(target, defs)
    if "anyOf" in node:
        return [leaf for member in node["anyOf"] for leaf in list_members(member, defs)]
    return [node]


def _find_recursive_aliases(defs: dict[str, Schema]) -> set[str]:
    """Return the aliases that refer to themselves without an object between, which are types of their own."""
    aliases = {name for name, node in defs.items() if node["x"]["kind"] not in ("record", "open")}
    return find_recursive({name: references(defs[name]) & aliases for name in aliases})


def _records(node: Schema, defs: dict[str, Schema]) -> list[str]:
    names = [ref_name(member["$ref"]) for member in list_members(node, defs) if "$ref" in member]
    return [name for name in names if defs[name]["x"]["kind"] in ("record", "open")]


def _all_unions(node: Any) -> list[Schema]:
    if not is_schema(node):
        return []
    return [*([node] if "anyOf" in node else []), *(u for _, child in children(node) for u in _all_unions(child))]


def _string_constants(node: Schema) -> dict[str, str]:
    required = node.get("required", [])
    return {
        key: child["const"]
        for key, child in node.get("properties", {}).items()
        if key in required and isinstance(child.get("const"), str)
    }


def _choose_tags(defs: dict[str, Schema]) -> None:
    for node in defs.values():
        if (method := _string_constants(node).get("method")) is not None:
            node["x"]["tag"] = ["method", method]
    for union in [union for node in list(defs.values()) for union in _all_unions(node)]:
        records = list(dict.fromkeys(_records(union, defs)))
        if len(records) < 2 or any(defs[name]["x"]["kind"] != "record" for name in records):
            continue
        for key in _distinguishing(records, defs):
            if all(defs[name]["x"].get("tag", [key])[0] == key for name in records):
                for name in records:
                    defs[name]["x"]["tag"] = [key, defs[name]["properties"][key]["const"]]
                break


def _distinguishing(records: list[str], defs: dict[str, Schema]) -> list[str]:
    """List the constant members that all records have, each with a different value."""
    constants = [_string_constants(defs[name]) for name in records]
    shared = [key for key in constants[0] if all(key in found for found in constants)]
    return sorted(key for key in shared if len({found[key] for found in constants}) == len(records))


def find_common_tag(node: Schema, defs: dict[str, Schema]) -> str | None:
    """Return the tag by which Pydantic can distinguish the members, or None unless each object has one of its own."""
    leaves = list_members(node, defs)
    if len(leaves) < 2 or any("$ref" not in leaf for leaf in leaves):
        return None
    names = {ref_name(leaf["$ref"]) for leaf in leaves}
    tags = {tuple(defs[name]["x"].get("tag", ["", ""])) for name in names}
    keys = {key for key, _ in tags}
    return (keys.pop() or None) if len(keys) == 1 and len(tags) == len(names) else None


def _is_native(node: Schema, defs: dict[str, Schema]) -> bool:
    """Return whether msgspec can decode a union by itself, with its tags enforced."""
    leaves = list_members(node, defs)
    kinds = Counter(kind for leaf in leaves for kind in _kinds(leaf, defs))
    records = _records(node, defs)
    if kinds[_ANY]:
        return True
    if kinds[_CUSTOM] or kinds[_LIST] > 1 or kinds[_STRING] > 1:
        return False
    if kinds[_OBJECT] == 1 and records and "tag" in defs[records[0]]["x"]:
        return False  # msgspec would accept a lone tagged Struct without its tag
    return kinds[_OBJECT] < 2 or (kinds[_OBJECT] == len(records) and find_common_tag({"anyOf": [
        {"$ref": name} for name in records]}, defs) is not None)  # fmt: skip


def _kinds(leaf: Schema, defs: dict[str, Schema]) -> list[str]:
    if "$ref" in leaf:
        target = defs[ref_name(leaf["$ref"])]
        return [_OBJECT if target.get("x", {}).get("kind") == "record" else _CUSTOM]
    if "const" in leaf or "enum" in leaf:
        return sorted(
            {_STRING if isinstance(v, str) else type(v).__name__ for v in leaf.get("enum", [leaf.get("const")])}
        )
    return [_LIST if name == "array" else name for name in type_names(leaf) or [_ANY]]


_SUFFIX = {"items": "Item", "additionalProperties": "Value"}


def _hoist_below(node: Schema, place: str, origin: list[str], defs: dict[str, Schema]) -> Schema:
    node = dict(node)
    if "properties" in node:
        node["properties"] = {
            key: _hoist(child, place + names.to_pascal(key), [origin[0], key], defs)
            for key, child in node["properties"].items()
        }
        return node
    for key, suffix in _SUFFIX.items():
        if isinstance(node.get(key), dict):
            node[key] = _hoist(node[key], place + suffix, origin, defs)
    if "anyOf" in node:
        node["anyOf"] = _hoist_members(node, place, origin, defs)
    return node


def _hoist_members(union: Schema, place: str, origin: list[str], defs: dict[str, Schema]) -> list[Schema]:
    # A reference in a union stays, since msgspec enforces tags there.
    return [
        member if "$ref" in member else _hoist(member, place + "Variant", origin, defs) for member in union["anyOf"]
    ]


def _hoist(node: Schema, place: str, origin: list[str], defs: dict[str, Schema]) -> Schema:
    """Replace each untagged union, and each lone tagged object, by a reference to a definition."""
    lone_tagged = "$ref" in node and _is_lone_tagged(node, defs)
    if not lone_tagged and ("anyOf" not in node or _is_native(node, defs)):
        return _hoist_below(node, place, origin, defs)
    union = {"anyOf": [node]} if lone_tagged else node
    union = {"anyOf": _hoist_members(union, place, origin, defs), "x": {"kind": "union", "origin": origin}}
    for name, other in defs.items():
        is_union = other.get("x", {}).get("kind") == "union" and CHECKS not in other
        if is_union and other["anyOf"] == union["anyOf"]:
            return {"$ref": f"#/$defs/{name}"}
    name = free_name(place, defs)
    defs[name] = union
    return {"$ref": f"#/$defs/{name}"}


def _is_lone_tagged(node: Schema, defs: dict[str, Schema]) -> bool:
    """Return whether a reference leads to a single tagged record, which msgspec would accept without its tag."""
    target = defs[ref_name(node["$ref"])]
    while "$ref" in target:
        target = defs[ref_name(target["$ref"])]
    return "tag" in target.get("x", {})
