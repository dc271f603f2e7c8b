"""Reject schemas whose keywords contradict each other, or limit values that types cannot limit together.

These steps work on canonical definitions: before and after the parts of `allOf` are merged.
"""

from __future__ import annotations

from typing import Any

from mcpspec_codegen.budget import follow
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import (
    BOUNDS,
    Pointer,
    Schema,
    children,
    find_misplaced_constant,
    is_schema,
    map_children,
    pointer_text,
    ref_name,
    type_names,
    types_of_constants,
)
from mcpspec_codegen.syntax import find_contradiction

__all__ = ["check_consistency", "remove_implied_types"]


def remove_implied_types(defs: dict[str, Schema], file: str) -> dict[str, Schema]:
    """Remove the `type` beside each `anyOf`. Raises `SchemaError` if it excludes values of a member."""
    return {name: _without_types(node, ("$defs", name), defs, file) for name, node in defs.items()}


def _without_types(node: Any, at: Pointer, defs: dict[str, Schema], file: str) -> Any:
    if not is_schema(node):
        return node
    if "anyOf" in node and "type" in node:
        types = _types(node["anyOf"], defs, frozenset())
        if types is None or not types <= {*type_names(node), *(["integer"] if "number" in type_names(node) else [])}:
            text = "`type` beside `anyOf` excludes values of a member; state the type of each member instead"
            raise SchemaError(file, pointer_text((*at, "type")), text)
        node = {key: value for key, value in node.items() if key != "type"}
    places = iter([(*at, *below) for below, _ in children(node)])
    return map_children(node, lambda child: _without_types(child, next(places), defs, file))


def _types(members: list[Schema], defs: dict[str, Schema], seen: frozenset[str]) -> set[str] | None:
    """Return the types that the values of some schemas may have, or None if they may have any."""
    found: set[str] = set()
    for member in members:
        types = _member_types(member, defs, seen)
        if types is None:
            return None
        found |= types
    return found


def _member_types(node: Schema, defs: dict[str, Schema], seen: frozenset[str]) -> set[str] | None:
    if "$ref" in node:
        name = ref_name(node["$ref"])
        target = follow(name, defs)
        return None if name in seen else _member_types(target, defs, seen | {name})
    if "type" in node or "const" in node or "enum" in node:
        return set(type_names(node)) or types_of_constants(node)
    if "anyOf" in node:
        return _types(node["anyOf"], defs, seen)
    parts = [_member_types(part, defs, seen) for part in node.get("allOf", [])]
    return next((types for types in parts if types is not None), None)


_OBJECT = ("properties", "required", "additionalProperties", "propertyNames")


def check_consistency(defs: dict[str, Schema], file: str) -> None:
    """Raise `SchemaError` for keywords of which the types would ignore one, and for contradictions."""
    for name, node in defs.items():
        _check(node, ("$defs", name), file)


def _check(node: Any, at: Pointer, file: str) -> None:
    if not is_schema(node):
        return
    contradiction = find_contradiction(node) or ("", None)
    if reason := find_misplaced_constant(node) or contradiction[1] or _fault(node):
        raise SchemaError(file, pointer_text(at), reason)
    for below, child in children(node):
        _check(child, (*at, *below), file)


def _fault(node: Schema) -> str | None:
    """Describe the keyword that the types would ignore or apply to all values, if there is one."""
    types = type_names(node)
    for keywords, kind in ((_OBJECT, "object"), (("items",), "array")):
        found = next((keyword for keyword in keywords if keyword in node and node[keyword] != []), None)
        if found and types != [kind]:
            return f"`{found}` limits values of the type {kind} only; expected `type: {kind}` beside it"
    if "const" in node and "enum" in node:
        return "`const` beside `enum` is not supported; leave the values that fit both"
    if node.keys() & {"const", "enum"} and (bounds := sorted(node.keys() & BOUNDS)):
        return f"no constant fits `{bounds[0]}` beside it"
    if node.keys() & {"const", "enum"} and (beside := sorted(node.keys() & {*_OBJECT, "items", "anyOf"})):
        return f"`{beside[0]}` beside constants is not supported; leave the values that fit both"
    if "properties" in node and "propertyNames" in node:
        return "`propertyNames` beside `properties` is not supported"
    if node.get("required") and "propertyNames" in node:
        return "`required` beside `propertyNames` is not supported; use `properties`"
    if "properties" in node and node.get("additionalProperties", {}) not in ({}, False):
        return "a type for `additionalProperties` beside `properties` is not supported"
    return None
