"""Hoisting of inline objects: each gets a definition of its own."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator

from mcpspec_codegen import names
from mcpspec_codegen.nodes import BOUNDS, CHECKS, Schema, children, is_schema

__all__ = ["free_name", "hoist_objects", "name_variants"]


def hoist_objects(defs: dict[str, Schema]) -> dict[str, Schema]:
    """Replace every inline object by a reference: to an equal definition, or to a new one named by its place.

    Equal objects under one property name become one definition of that name. `params` are an
    exception, since they belong to their method.
    """
    return _Hoister(defs).run()


class _Hoister:
    def __init__(self, defs: dict[str, Schema]) -> None:
        self.official = defs
        self.out: dict[str, Schema] = {}
        self.twins = {
            _shape(node): name for name, node in reversed(defs.items()) if node.keys() & {"properties", "anyOf", CHECKS}
        }
        self.shared = _shared_names(defs)
        self.hoisted: dict[str, str] = {}
        """The names of the shared inline types that have a definition already."""

    def run(self) -> dict[str, Schema]:
        for name, node in self.official.items():
            self.out[name] = {}  # a definition stands before those that are hoisted out of it
            self.out[name] = self._inside(node, name, name)
        return self.out

    def _inside(self, node: Schema, place: str, owner: str, key: str = "") -> Schema:
        """Return a copy of a schema in which the schemas below it are flat."""
        node = dict(node)
        if "properties" in node:
            node["properties"] = {
                name: self._flat(child, place + names.to_pascal(name), owner, name)
                for name, child in node["properties"].items()
            }
        if "items" in node:
            node["items"] = self._flat(node["items"], place + "Item", owner, key, below=True)
        if isinstance(node.get("additionalProperties"), dict):
            node["additionalProperties"] = self._flat(
                node["additionalProperties"], place + "Value", owner, key, below=True
            )
        if "anyOf" in node:
            variants = zip(node["anyOf"], name_variants(node["anyOf"]), strict=True)
            node["anyOf"] = [self._variant(member, place + name, owner, key) for member, name in variants]
        return node

    def _variant(self, member: Schema, place: str, owner: str, key: str) -> Schema:
        if (twin := self.twins.get(_shape(member))) is not None:
            return {"$ref": f"#/$defs/{twin}"}
        return self._flat(member, place, owner, key, below=True)

    def _flat(self, node: Schema, place: str, owner: str, key: str, *, below: bool = False) -> Schema:
        if node.keys() & {"anyOf", CHECKS} and (twin := self.twins.get(_shape(node))) is not None:
            return {"$ref": f"#/$defs/{twin}"}
        # Templates write constraints on members and definitions, so a constrained type below them gets a definition.
        is_constrained = CHECKS in node or (below and not BOUNDS.isdisjoint(node))
        if "properties" not in node and node.get("additionalProperties") is not False and not is_constrained:
            return self._inside(node, place, owner, key)
        shared = self.shared.get((_shape(node), key))
        if shared is None or (name := self.hoisted.get(shared)) is None:
            name = free_name(shared or place, self.official, self.out)
            if shared is not None:
                self.hoisted[shared] = name
            self.out[name] = {}
            self.out[name] = {**self._inside(node, name, name), "x": {"origin": [owner, key]}}
        return {"$ref": f"#/$defs/{name}"}


def free_name(name: str, *taken: Container[str]) -> str:
    """Return the name of an inline type: with a number, if another definition has the name of its place."""
    free, count = name, 1
    while any(free in each for each in taken):
        count += 1
        free = f"{name}{count}"
    return free


def name_variants(members: list[Schema]) -> list[str]:
    """Name the variants of an inline union: by their constants, else by numbers; `Form`, `Form2` if those repeat."""
    found = [_name_variant(member, index) for index, member in enumerate(members)]
    return [
        name if (count := found[:index].count(name)) == 0 else f"{name}{count + 1}" for index, name in enumerate(found)
    ]


def _name_variant(member: Schema, index: int) -> str:
    properties = member.get("properties", {})
    consts = [node["const"] for _, node in sorted(properties.items()) if isinstance(node.get("const"), str)]
    return names.to_pascal(consts[-1]) if consts else f"Variant{index + 1}"


def _shape(node: Schema) -> str:
    return json.dumps(node, sort_keys=True)


def _shared_names(defs: dict[str, Schema]) -> dict[tuple[str, str], str]:
    """Name the inline objects that several definitions contain: shape and property → name.

    The name is that of the property, or of the shortest place if the property's is taken or generic (`_meta`).
    """
    places: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for name, node in defs.items():
        for key, child, place in _inline_objects(node, name):
            places.setdefault((_shape(child), key), set()).add((name, place))
    shared: dict[tuple[str, str], str] = {}
    for (shape, key), found in places.items():
        if len({name for name, _ in found}) > 1:
            bare = names.to_pascal(key)
            shortest = min((place for _, place in found), key=lambda place: (len(place), place))
            taken = key.startswith("_") or bare in defs or bare in shared.values()
            shared[shape, key] = shortest if taken else bare
    return shared


def _inline_objects(node: Schema, place: str) -> Iterator[tuple[str, Schema, str]]:
    """Yield property name, schema and place of each inline object except `params`."""
    for pointer, child in children(node):
        if not is_schema(child):
            continue
        key = str(pointer[-1]) if pointer[0] == "properties" else ""
        below = place + names.to_pascal(key)
        if "properties" in child and key not in ("", "params"):
            yield key, child, below
        yield from _inline_objects(child, below)
