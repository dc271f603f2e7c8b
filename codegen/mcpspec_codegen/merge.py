"""Merge the parts of `allOf` into one object.

Supports only the forms that MCP's schemas use: parts that are objects, or unions of objects, which are multiplied out.
"""

from __future__ import annotations

import math
from typing import Any

from mcpspec_codegen.bounds import apply_bounds
from mcpspec_codegen.budget import SCHEMA_STEPS, spend
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import (
    BOUNDS,
    CHECKS,
    Schema,
    children,
    constants,
    is_schema,
    map_children,
    pointer_text,
    ref_name,
    type_names,
    types_of_constants,
)
from mcpspec_codegen.spelling import with_checks

__all__ = ["merge_all_of"]

_TEXT = 100
"""Characters of constants and names that count as one schema."""


def merge_all_of(defs: dict[str, Schema], file: str) -> dict[str, Schema]:
    """Return the definitions without `allOf`."""
    merger = _Merger(defs, file)
    return {name: merger.definition(name) for name in defs}


class _Merger:
    def __init__(self, defs: dict[str, Schema], file: str) -> None:
        self.defs = defs
        self.file = file
        self.merged: dict[str, Schema] = {}
        self.pending: set[str] = set()
        self.sizes: dict[int, int] = {}
        """Sizes by the id of the schema, which `merged` or `defs` keeps."""

    def definition(self, name: str) -> Schema:
        """Return a definition without `allOf`. What it has more than before counts as steps."""
        if name in self.pending:
            raise self._error(
                name, "a part of `allOf` leads back to the definition that contains it; write out its members there"
            )
        if name not in self.merged:
            self.pending.add(name)
            merged = self.inside(self.defs[name], name)
            growth = self._size(merged) - self._size(self.defs[name])
            spend(SCHEMA_STEPS * max(0, growth), ("$defs", name))
            self.merged[name] = merged
            self.pending.remove(name)
        return self.merged[name]

    def _size(self, node: Any) -> int:
        """Count the schemas in a schema, and long texts in it. A part that is shared counts at each of its places."""
        if not is_schema(node):
            return 1
        if id(node) not in self.sizes:
            texts = (node.get("const"), node.get("enum"), [*node.get("properties", ())])
            own = 1 + len(str(texts)) // _TEXT
            self.sizes[id(node)] = own + sum(self._size(child) for _, child in children(node))
        return self.sizes[id(node)]

    def inside(self, node: Any, place: str) -> Any:
        if isinstance(node, bool):
            return node
        node = map_children(node, lambda child: self.inside(child, place))
        if "allOf" not in node:
            return node
        rest = {key: value for key, value in node.items() if key != "allOf"}
        parts = [*node["allOf"], rest] if rest else node["allOf"]
        return self._all_of([self._resolve(part) for part in parts], place)

    def _all_of(self, parts: list[Schema], place: str) -> Schema:
        """Return the schema that combines all parts."""
        try:
            branches = self._multiply(parts, place)
        except _DisjointError as error:
            raise self._error(place, error.reason) from error
        return branches[0] if len(branches) == 1 else {"anyOf": branches}

    def _error(self, place: str, reason: str) -> SchemaError:
        return SchemaError(self.file, pointer_text(("$defs", place)), reason)

    def _resolve(self, part: Schema) -> Schema:
        while "$ref" in part:
            part = self.definition(ref_name(part["$ref"]))
        return part

    def _multiply(self, parts: list[Schema], place: str) -> list[Schema]:
        """Combine each member of a union with each of the others. Combinations that no value fits are left out."""
        branches: list[Schema] = [{}]
        for part in parts:
            options = [self._resolve(option) for option in part["anyOf"]] if "anyOf" in part else [part]
            checks: list[Schema] = part.get(CHECKS, []) if "anyOf" in part else []
            branches = self._fitting(branches, [with_checks(option, *checks) for option in options], place)
        return branches

    def _fitting(self, branches: list[Schema], options: list[Schema], place: str) -> list[Schema]:
        found: list[Schema] = []
        fault: _DisjointError | None = None
        for branch in branches:
            for option in options:
                try:
                    is_union = "anyOf" in option  # one that was a definition of its own
                    found += (
                        self._multiply([branch, option], place) if is_union else [self._both(branch, option, place)]
                    )
                except _DisjointError as error:
                    fault = fault or error
        if fault is not None and not found:
            raise fault
        return found

    def _both(self, left: Schema, right: Schema, place: str) -> Schema:
        """Return the schema that combines both. Raises `_DisjointError` if no value fits both."""
        if not left or left == right:
            return right
        merged = {**left, **right}
        spend(SCHEMA_STEPS + len(left.get("properties", ())) + len(right.get("properties", ())), ("$defs", place))
        required = {*left.get("required", []), *right.get("required", [])}
        for key in sorted(left.keys() & right.keys() - {"const", "enum"}):
            merged[key] = self._keyword(key, left[key], right[key], required, place)
        merged = _with_constants(merged, left, right)
        for part, other in ((left, right), (right, left)):
            if part.get("additionalProperties", {}) != {}:
                merged["additionalProperties"] = self._others(part, other, place)
        # The result is open only if every part with members is: a base type is open for the sake of its subtypes.
        is_less_open = any("properties" in part and "additionalProperties" not in part for part in (left, right))
        if is_less_open and merged.get("additionalProperties") == {}:
            del merged["additionalProperties"]
        return merged

    def _others(self, part: Schema, other: Schema, place: str) -> Any:
        """Return the schema of a part for members it does not declare, if the other part declares none of them."""
        excluded = [name for name in other.get("properties", {}) if name not in part.get("properties", {})]
        if excluded:
            text = f"`additionalProperties` of a part of `allOf` limits `{excluded[0]}`, which another part declares"
            raise self._error(place, text)
        return part["additionalProperties"]

    def _keyword(self, key: str, left: Any, right: Any, required: set[str], place: str) -> Any:
        if left == right or (key == "additionalProperties" and right == {}):
            return left
        if key == "additionalProperties" and left == {}:
            return right
        if key == "properties":
            shared = {
                name: self._member(left[name], right[name], place, is_required=name in required)
                for name in left.keys() & right.keys()
            }
            return {**left, **right, **shared}
        if key == "items":
            return self._member(left, right, place, is_required=False)
        if (made := _combine(key, left, right)) is None:
            reason = f"the parts of `allOf` differ in `{key}`"
            raise _DisjointError(reason) if key == "type" else self._error(place, reason)
        return made

    def _member(self, left: Schema, right: Schema, place: str, *, is_required: bool) -> Schema:
        if not left or left == right:
            return right
        if not right:
            return left
        is_scalar = {"properties", "anyOf"}.isdisjoint(left.keys() | right.keys())
        if is_scalar and left.items() <= right.items():
            return right
        if is_scalar and right.items() <= left.items():
            return left
        try:
            branches = self._multiply([self._resolve(left), self._resolve(right)], place)
        except _DisjointError as error:
            reason = "the parts of `allOf` give one property two types"
            raise (_DisjointError(reason) if is_required else self._error(place, reason)) from error
        return branches[0] if len(branches) == 1 else {"anyOf": branches}


class _DisjointError(Exception):
    """No value fits two schemas."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _combine(key: str, left: Any, right: Any) -> Any:
    """Return the value of a keyword that says what two values of it say together; None if there is none."""
    if key == "required":
        return [*left, *(name for name in right if name not in left)]
    if key == CHECKS:
        return [*left, *(check for check in right if check not in left)]
    if key == "type":
        return _common_types(left, right)
    if key == "multipleOf" and isinstance(left, int) and isinstance(right, int):
        return math.lcm(left, right)
    if key in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"):
        return max(left, right)
    return min(left, right) if key in BOUNDS - {"multipleOf", "pattern"} else None


def _common_types(left: str | list[str], right: str | list[str]) -> str | list[str] | None:
    """Return the types of two keywords `type` that both have. Integers are numbers."""
    names, others = type_names({"type": left}), type_names({"type": right})
    wide, other_wide = ({*found, *(["integer"] if "number" in found else [])} for found in (names, others))
    common = [name for name in [*names, *others] if name in wide and name in other_wide]
    common = [*dict.fromkeys(name for name in common if name != "integer" or "number" not in common)]
    return (common[0] if len(common) == 1 else common) or None


def _with_constants(merged: Schema, left: Schema, right: Schema) -> Schema:
    """Return a combined schema with the constants that both parts allow."""
    known, others = constants(left), constants(right)
    if known is None and others is None:
        return merged
    kept = known if others is None else others if known is None else [value for value in known if value in others]
    assert kept is not None
    types = {*type_names(merged), *(["integer"] if "number" in type_names(merged) else [])}
    kept = [value for value in kept if not types or types_of_constants({"const": value}) <= types]
    if not kept:
        raise _DisjointError("the parts of `allOf` have no constant in common")
    rest = {key: value for key, value in merged.items() if key not in ("const", "enum")}
    made = apply_bounds({**rest, **({"const": kept[0]} if len(kept) == 1 else {"enum": kept})})
    if made.keys() & BOUNDS and not any(isinstance(value, list | dict) for value in kept):
        raise _DisjointError("the parts of `allOf` have constants, and bounds that none of them fits")
    return made
