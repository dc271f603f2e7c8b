"""Merge the parts of `allOf` into one object.

Supports only the forms that MCP's schemas use: parts that are objects, or unions of objects, which are multiplied out.
"""

from __future__ import annotations

from typing import Any

from mcpspec_codegen.budget import SCHEMA_STEPS, spend
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import Schema, children, is_schema, map_children, pointer_text, ref_name

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
        self.sizes: dict[int, int] = {}
        """Sizes by the id of the schema, which `merged` or `defs` keeps."""

    def definition(self, name: str) -> Schema:
        """Return a definition without `allOf`. What it has more than before counts as steps."""
        if name not in self.merged:
            merged = self.inside(self.defs[name], name)
            growth = self._size(merged) - self._size(self.defs[name])
            spend(SCHEMA_STEPS * max(0, growth), ("$defs", name))
            self.merged[name] = merged
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
        branches = self._multiply([self._resolve(part) for part in parts], place)
        return branches[0] if len(branches) == 1 else {"anyOf": branches}

    def _resolve(self, part: Schema) -> Schema:
        while "$ref" in part:
            part = self.definition(ref_name(part["$ref"]))
        return part

    def _multiply(self, parts: list[Schema], place: str) -> list[Schema]:
        branches: list[Schema] = [{}]
        for part in parts:
            options = [self._resolve(option) for option in part["anyOf"]] if "anyOf" in part else [part]
            branches = [self._both(branch, option, place) for branch in branches for option in options]
        return branches

    def _both(self, left: Schema, right: Schema, place: str) -> Schema:
        """Return the object schema that combines both."""
        if not left:
            return right
        merged = {**left, **right}
        spend(SCHEMA_STEPS + len(left.get("properties", ())) + len(right.get("properties", ())), ("$defs", place))
        for key in left.keys() & right.keys():
            merged[key] = self._keyword(key, left[key], right[key], place)
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
            raise SchemaError(self.file, pointer_text(("$defs", place)), text)
        return part["additionalProperties"]

    def _keyword(self, key: str, left: Any, right: Any, place: str) -> Any:
        if left == right or (key == "additionalProperties" and right == {}):
            return left
        if key == "additionalProperties" and left == {}:
            return right
        if key == "properties":
            return {
                **left,
                **right,
                **{name: self._member(left[name], right[name], place) for name in left.keys() & right.keys()},
            }
        if key == "required":
            return [*left, *(name for name in right if name not in left)]
        raise SchemaError(self.file, pointer_text(("$defs", place)), f"the parts of `allOf` differ in `{key}`")

    def _member(self, left: Schema, right: Schema, place: str) -> Schema:
        if not left or left == right:
            return right
        if not right:
            return left
        if not {"properties", "anyOf"}.isdisjoint(left.keys() | right.keys()):
            branches = self._multiply([self._resolve(left), self._resolve(right)], place)
            return branches[0] if len(branches) == 1 else {"anyOf": branches}
        if left.items() <= right.items():
            return right
        if right.items() <= left.items():
            return left
        raise SchemaError(self.file, pointer_text(("$defs", place)), "the parts of `allOf` give one property two types")
