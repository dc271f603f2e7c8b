"""A schema that is being edited, with what edits have in common: places to choose, names, references, removal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, TypeAlias, TypeVar

from mcpspec_codegen.nodes import definitions_key, is_schema, ref_name
from tests.codegen.helpers import Schema

__all__ = ["Edit", "NoPlaceError", "Plan", "closed", "is_message", "member_of", "nodes", "objects"]

T = TypeVar("T")


class NoPlaceError(Exception):
    """The schema has no place for an edit."""


class Plan:
    """A schema, which edits change in place, and the source of their choices."""

    def __init__(self, schema: Schema, random: Random) -> None:
        self.schema = schema
        self.random = random

    @property
    def key(self) -> str:
        """The keyword of the definitions."""
        return definitions_key(self.schema)

    @property
    def defs(self) -> Schema:
        found: Schema = self.schema[self.key]
        return found

    def pick(self, options: Sequence[T]) -> T:
        """Choose one of some options. Raises `NoPlaceError` if there are none."""
        if not options:
            raise NoPlaceError
        return self.random.choice(options)

    def ref(self, name: str) -> Schema:
        return {"$ref": f"#/{self.key}/{name}"}

    def target(self, node: Schema) -> Schema:
        """Return the definition that a node refers to, or the node."""
        found: Schema = self.defs.get(ref_name(node["$ref"]), {}) if "$ref" in node else node
        return found

    def fresh(self, stem: str) -> str:
        """Return a name that no definition has."""
        number = 1
        name = stem
        while name in self.defs:
            number += 1
            name = f"{stem}{number}"
        return name

    def records(self) -> list[str]:
        """List the definitions that are objects with declared members, and no messages."""
        return [name for name, node in self.defs.items() if node.get("properties") and not is_message(node)]

    def members(self, *, required: bool | None = None) -> list[tuple[str, str]]:
        """List members of objects as `(definition, member)`, without constants and `_meta`."""
        return [
            (owner, name)
            for owner in self.records()
            for name, node in self.defs[owner]["properties"].items()
            if name != "_meta" and "const" not in node
            if required is None or required == (name in self.defs[owner].get("required", []))
        ]

    def unions(self) -> list[str]:
        """List the definitions that are unions of definitions."""
        return [name for name, node in self.defs.items() if len(_references(node)) > 1]

    def rename(self, old: str, new: str) -> None:
        """Give a definition another name, at its place, with all references to it."""
        named = {new if name == old else name: node for name, node in self.defs.items()}
        text = json.dumps({**self.schema, self.key: named})
        renamed = json.loads(text.replace(f'"#/{self.key}/{old}"', f'"#/{self.key}/{new}"'))
        self.schema.clear()
        self.schema.update(renamed)

    def remove(self, *names: str) -> None:
        """Remove definitions, and everything that cannot be without them. Raises `NoPlaceError` if that is too much."""
        gone = {*names}
        while True:
            kept = {name: _prune(node, gone, self.key) for name, node in self.defs.items() if name not in gone}
            if not (more := {name for name, node in kept.items() if node is None}):
                break
            gone |= more
        if gone & {"ClientRequest", "Result", "RequestId", "EmptyResult"} or len(gone) > 40:
            raise NoPlaceError
        self.schema[self.key] = kept


Edit: TypeAlias = Callable[[Plan], str]
"""A function that changes a schema, and returns one line that says how."""


def is_message(node: Schema) -> bool:
    """Return whether a definition is a request, a notification or a response, which a person edits with its method."""
    properties = node.get("properties", {})
    return "method" in properties or "jsonrpc" in properties


def member_of(plan: Plan, owner: str, name: str) -> Schema:
    found: Schema = plan.defs[owner]["properties"][name]
    return found


def objects(node: Any) -> Iterator[Schema]:
    """Yield all parts of a schema that are objects with declared members."""
    return (part for part in nodes(node) if part.get("properties"))


def nodes(node: Any) -> Iterator[Schema]:
    """Yield a JSON value, and all objects within it."""
    if isinstance(node, list):
        for item in node:  # pyright: ignore[reportUnknownVariableType]
            yield from nodes(item)
    elif is_schema(node):
        yield node
        for value in node.values():
            yield from nodes(value)


def closed(defs: Schema, name: str) -> set[str]:
    """Return a definition, and all that it refers to directly or not."""
    found: set[str] = set()
    pending = [name]
    while pending:
        if (each := pending.pop()) not in found and each in defs:
            found.add(each)
            pending += [ref_name(node["$ref"]) for node in nodes(defs[each]) if isinstance(node.get("$ref"), str)]
    return found


def _references(node: Schema) -> list[str]:
    members: list[Schema] = node["anyOf"] if "anyOf" in node else node.get("oneOf", [])
    return [ref_name(member["$ref"]) for member in members if "$ref" in member]


def _prune(node: Schema, gone: set[str], key: str) -> Schema | None:
    """Return a part of a schema without the parts that refer to some definitions; None if nothing is left of it."""
    if "$ref" in node:
        return None if ref_name(node["$ref"]) in gone else node
    node = dict(node)
    for keyword in {"anyOf", "oneOf", "allOf"} & node.keys():
        pruned = [_prune(member, gone, key) for member in node[keyword]]
        if not (kept := [member for member in pruned if member is not None]):
            return None
        node[keyword] = kept
    for keyword in ("items", "additionalProperties"):
        if is_schema(below := node.get(keyword)):
            node[keyword] = _prune(below, gone, key)
            if node[keyword] is None:
                return None
    return _prune_members(node, gone, key) if "properties" in node else node


def _prune_members(node: Schema, gone: set[str], key: str) -> Schema | None:
    """Return an object without the members that refer to some definitions. A response is nothing without its result."""
    members = {name: _prune(child, gone, key) for name, child in node["properties"].items()}
    if members.get("result", {}) is None:
        return None
    node["properties"] = {name: child for name, child in members.items() if child is not None}
    required = [name for name in node.get("required", []) if members.get(name, {}) is not None]
    return {**node, "required": required} if required else {k: v for k, v in node.items() if k != "required"}
