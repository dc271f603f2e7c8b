"""Replace `oneOf` by `anyOf`, which accepts the same values if no value fits two of the members.

Members count as exclusive if their types differ, if their constants differ, or if they are objects that a required
member tells apart. Anything else becomes a check: the types cannot express "exactly one of these".
"""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

from mcpspec_codegen.budget import SCHEMA_STEPS, spend
from mcpspec_codegen.nodes import (
    Pointer,
    Schema,
    constants,
    is_schema,
    map_children,
    ref_name,
    type_names,
    types_of_constants,
)
from mcpspec_codegen.spelling import as_check, with_checks

__all__ = ["replace_one_of"]

_MAX_DEPTH = 8
"""Depth to which members are compared. Deeper differences do not count, and recursion ends."""


def replace_one_of(defs: dict[str, Schema]) -> dict[str, Schema]:
    """Return the definitions without `oneOf`."""
    return {name: _replace(node, ("$defs", name), defs) for name, node in defs.items()}


def _replace(node: Any, at: Pointer, defs: dict[str, Schema]) -> Any:
    if not is_schema(node):
        return node
    members: list[Any] = node.get("oneOf", [])
    pairs = combinations(members, 2)
    is_exclusive = all(_are_exclusive(left, right, defs, at) for left, right in pairs)
    changed = map_children(node, lambda child: _replace(child, at, defs))
    made = {"anyOf" if key == "oneOf" else key: value for key, value in changed.items()}
    return made if is_exclusive else with_checks(made, as_check({"oneOf": members}))


def _are_exclusive(left: Any, right: Any, defs: dict[str, Schema], at: Pointer, depth: int = 0) -> bool:
    """Return whether it is certain that no value fits both schemas. `at` is the place of the `oneOf`."""
    if depth > _MAX_DEPTH:
        return False
    spend(SCHEMA_STEPS, at)
    parts, others = _list_parts(left, defs, at, depth), _list_parts(right, defs, at, depth)
    for one, other, opposite in [
        *((part, right, others) for part in parts), *((part, left, parts) for part in others),
    ]:  # fmt: skip
        spend(len(opposite), at)
        if any(_differ(one, each) for each in opposite):
            return True
        members = one.get("anyOf") or one.get("oneOf")
        if members and all(_are_exclusive(member, other, defs, at, depth + 1) for member in members):
            return True
    return _are_exclusive_objects(parts, others, defs, at, depth)


def _list_parts(node: Any, defs: dict[str, Schema], at: Pointer, depth: int) -> list[Schema]:
    """List schemas all of which a value of a schema fits: itself, or the parts of `allOf`, and what they refer to."""
    spend(1, at)
    if not is_schema(node) or depth > _MAX_DEPTH:
        return []
    below = [defs[ref_name(node["$ref"])]] if "$ref" in node else node.get("allOf", [])
    return [node, *(part for each in below for part in _list_parts(each, defs, at, depth + 1))]


def _differ(left: Schema, right: Schema) -> bool:
    """Return whether two schemas have no type, or no constant, in common."""
    first, second = _constants(left), _constants(right)
    if first is not None and second is not None:
        return first.isdisjoint(second)
    types, others = _types(left), _types(right)
    return bool(types and others) and types.isdisjoint(others)


def _constants(node: Schema) -> set[str] | None:
    values = constants(node)
    return None if values is None else {json.dumps(value) for value in values}


def _types(node: Schema) -> set[str]:
    types = set(type_names(node)) or types_of_constants(node)
    return types | {"integer"} if "number" in types else types


def _are_exclusive_objects(
    left: list[Schema], right: list[Schema], defs: dict[str, Schema], at: Pointer, depth: int
) -> bool:
    """Return whether a required member tells two objects apart, of which these are the parts."""
    if not all(any(type_names(part) == ["object"] for part in parts) for parts in (left, right)):
        return False
    shared = _required(left) & _required(right)
    if any(
        _are_exclusive(member, other, defs, at, depth + 1)
        for key in sorted(shared)
        for member in _members(left, key)
        for other in _members(right, key)
    ):
        return True
    return _lacks(left, _required(right)) or _lacks(right, _required(left))


def _required(parts: list[Schema]) -> set[str]:
    return {name for part in parts for name in part.get("required", [])}


def _members(parts: list[Schema], key: str) -> list[Any]:
    return [part["properties"][key] for part in parts if key in part.get("properties", {})]


def _lacks(parts: list[Schema], required: set[str]) -> bool:
    """Return whether a part is a closed object without a place for a member that another object requires."""
    closed = [part for part in parts if part.get("additionalProperties") in (False, {"not": {}})]
    return any(not required <= part.get("properties", {}).keys() for part in closed)
