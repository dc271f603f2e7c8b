"""Replace `oneOf` by `anyOf`, which accepts the same values if no value fits two of the members.

Members count as exclusive if their types differ, if their constants differ, or if they are objects that a required
member tells apart. Anything else is rejected: the types cannot express "exactly one of these".
"""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

from mcpspec_codegen.budget import spend
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import Pointer, Schema, children, is_schema, map_children, pointer_text, ref_name, type_names

__all__ = ["replace_one_of"]

_MAX_DEPTH = 8
"""Depth to which members are compared. Deeper differences do not count, and recursion ends."""
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def replace_one_of(defs: dict[str, Schema], file: str) -> dict[str, Schema]:
    """Return the definitions without `oneOf`. Raises `SchemaError` if a value may fit two members of one."""
    for name, node in defs.items():
        _check(node, ("$defs", name), defs, file)
    return {name: _replace(node) for name, node in defs.items()}


def _replace(node: Any) -> Any:
    if not is_schema(node):
        return node
    return {"anyOf" if key == "oneOf" else key: value for key, value in map_children(node, _replace).items()}


def _check(node: Any, at: Pointer, defs: dict[str, Schema], file: str) -> None:
    if not is_schema(node):
        return
    members: list[Any] = node.get("oneOf", [])
    for (first, left), (second, right) in combinations(enumerate(members), 2):
        if not _are_exclusive(left, right, defs, (*at, "oneOf")):
            text = f"a value may fit members {first} and {second}; use `anyOf`, or tell them apart by a constant"
            raise SchemaError(file, pointer_text((*at, "oneOf")), text)
    for below, child in children(node):
        _check(child, (*at, *below), defs, file)


def _are_exclusive(left: Any, right: Any, defs: dict[str, Schema], at: Pointer, depth: int = 0) -> bool:
    """Return whether it is certain that no value fits both schemas. `at` is the place of the `oneOf`."""
    spend(1, at)
    if depth > _MAX_DEPTH or not (is_schema(left) and is_schema(right)):
        return False
    for one, other in ((left, right), (right, left)):
        if "$ref" in one:
            return _are_exclusive(defs[ref_name(one["$ref"])], other, defs, at, depth + 1)
        if members := one.get("anyOf") or one.get("oneOf"):
            return all(_are_exclusive(member, other, defs, at, depth + 1) for member in members)
        if any(_are_exclusive(part, other, defs, at, depth + 1) for part in one.get("allOf", [])):
            return True
    return _differ(left, right) or _are_exclusive_objects(left, right, defs, at, depth)


def _differ(left: Schema, right: Schema) -> bool:
    """Return whether two schemas have no type, or no constant, in common."""
    first, second = _constants(left), _constants(right)
    if first is not None and second is not None:
        return first.isdisjoint(second)
    types, others = _types(left), _types(right)
    return bool(types and others) and types.isdisjoint(others)


def _constants(node: Schema) -> set[str] | None:
    values = node.get("enum", [node["const"]] if "const" in node else None)
    return None if values is None else {json.dumps(value) for value in values}


def _types(node: Schema) -> set[str]:
    constants = node.get("enum", [node["const"]] if "const" in node else [])
    types = set(type_names(node)) or {_JSON_TYPES[type(value)] for value in constants}
    return types | {"integer"} if "number" in types else types


def _are_exclusive_objects(left: Schema, right: Schema, defs: dict[str, Schema], at: Pointer, depth: int) -> bool:
    if type_names(left) != ["object"] or type_names(right) != ["object"]:
        return False
    shared = set(left.get("required", [])) & set(right.get("required", []))
    known, others = left.get("properties", {}), right.get("properties", {})
    if any(
        key in known and key in others and _are_exclusive(known[key], others[key], defs, at, depth + 1)
        for key in shared
    ):
        return True
    return _lacks(left, right) or _lacks(right, left)


def _lacks(closed: Schema, other: Schema) -> bool:
    """Return whether a closed object has no place for a required member of another."""
    if closed.get("additionalProperties") not in (False, {"not": {}}):
        return False
    return any(key not in closed.get("properties", {}) for key in other.get("required", []))
