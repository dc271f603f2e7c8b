"""Add definitions of one's own to those of a revision.

A definition with a new name is added. One with the name of a definition of the protocol adds to it: members to a
union, values to an enumeration, properties to an object. Anything else would change what the protocol says, and is
rejected by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import ANNOTATIONS, Schema, ref_name
from mcpspec_codegen.normalise import canonicalise_node

__all__ = ["Fail", "extend"]

Fail: TypeAlias = Callable[..., SchemaError]
"""Returns the error for a reason and a pointer: the name of a definition, and keys below it."""

_OBJECT = frozenset({"type", "properties", "required", "additionalProperties"})
_IGNORED = ANNOTATIONS | {"$schema", "default", "format"}


def extend(
    base: dict[str, Schema], own: dict[str, Schema], spelled: dict[str, Schema], fail: Fail
) -> dict[str, Schema]:
    """Return the definitions of a revision with own ones added.

    `spelled` are the revision's definitions as its schema spells them, since own schemas may contain copies of them.
    """
    return base | {
        name: _Addition(name, base[name], spelled.get(name, base[name]), node, fail).result() if name in base else node
        for name, node in own.items()
    }


class _Addition:
    """An own definition with the name of a definition of the protocol."""

    def __init__(self, name: str, base: Schema, spelled: Schema, own: Schema, fail: Fail) -> None:
        self.name = name
        self.base = base
        self.spelled = canonicalise_node(spelled)
        self.own = own
        self._fail = fail

    def fail(self, reason: str, *below: str | int) -> SchemaError:
        return self._fail(reason, self.name, *below)

    def result(self) -> Schema:
        """Return the definition of the protocol with the additions; unchanged if the own one is a copy."""
        if canonicalise_node(self.own) in (self.base, self.spelled):
            return self.base
        if "anyOf" in self.base or "$ref" in self.base:
            return self._with_members()
        if "enum" in self.base or "const" in self.base:
            return self._with_values()
        if self.base.get("type") == "object":
            return self._with_properties()
        raise self.fail(f"`{self.name}` is a type of the protocol, to which nothing can be added; choose another name")

    def _with_members(self) -> Schema:
        keyword = next((key for key in ("anyOf", "oneOf", "$ref") if key in self.own), None)
        if keyword is None or self.own.keys() - {keyword, "type"} - _IGNORED:
            raise self.fail(f"`{self.name}` is a union of the protocol; expected `anyOf` with the members to add")
        known = self.base.get("anyOf", [self.base])
        given = [self.own] if keyword == "$ref" else self.own[keyword]
        added = [member for member in map(canonicalise_node, given) if member not in known]
        stated = {"type": self.own["type"]} if "type" in self.own else {}  # it has to be that of all members
        return {**stated, "anyOf": [*known, *self._some(added)]}

    def _with_values(self) -> Schema:
        if not self.own.keys() & {"enum", "const"} or self.own.keys() - {"enum", "const", "type"} - _IGNORED:
            raise self.fail(f"`{self.name}` is an enumeration of the protocol; expected `enum` with the values to add")
        self._check_type(self.own, ())
        known, given = ([*node.get("enum", [node.get("const")])] for node in (self.base, self.own))
        added = self._some([value for value in given if value not in known])
        return {**{key: value for key, value in self.base.items() if key != "const"}, "enum": [*known, *added]}

    def _with_properties(self) -> Schema:
        known = {**self.base, "properties": dict(self.base.get("properties", {}))}
        known["required"] = [*self.base.get("required", [])]
        for part, at in self._parts():
            self._add(part, at, known)
        self._some(known["properties"].keys() - self.base.get("properties", {}).keys())
        return known

    def _parts(self) -> list[tuple[Schema, tuple[str | int, ...]]]:
        """List the schemas that hold the properties to add, each with its pointer."""
        if "allOf" not in self.own:
            return [(self.own, ())]
        parts = [(part, ("allOf", index)) for index, part in enumerate(self.own["allOf"])]
        added = [(part, at) for part, at in parts if ref_name(part.get("$ref", "")) != self.name]
        if len(added) == len(parts):
            raise self.fail(f"expected `$ref` to the protocol's `{self.name}` as a part of `allOf`", "allOf")
        rest = {key: value for key, value in self.own.items() if key != "allOf"}
        return [*added, (rest, ())]

    def _add(self, part: Schema, at: tuple[str | int, ...], known: Schema) -> None:
        if unknown := part.keys() - _OBJECT - _IGNORED:
            text = f"`{min(unknown)}` adds nothing to the object `{self.name}` of the protocol; expected `properties`"
            raise self.fail(text, *at, min(unknown))
        self._check_type(part, at)
        others = canonicalise_node(part).get("additionalProperties")
        if "additionalProperties" in part and others != self.base.get("additionalProperties"):
            raise self.fail(f"differs from the protocol's `{self.name}`", *at, "additionalProperties")
        for key, node in part.get("properties", {}).items():
            self._add_property(key, node, at, known)
        for key in part.get("required", []):
            if key in self.base.get("properties", {}) and key not in self.base.get("required", []):
                raise self.fail(f"`{key}` is optional in the protocol's `{self.name}`", *at, "required")
            if key not in known["required"]:
                known["required"].append(key)

    def _check_type(self, part: Schema, at: tuple[str | int, ...]) -> None:
        if "type" in part and part["type"] not in (self.base.get("type"), [self.base.get("type")]):
            raise self.fail(f"`type` differs from that of the protocol's `{self.name}`", *at, "type")

    def _add_property(self, key: str, node: Any, at: tuple[str | int, ...], known: Schema) -> None:
        spellings = [types[key] for types in (known["properties"], self.spelled.get("properties", {})) if key in types]
        if not spellings:
            known["properties"][key] = node
        elif canonicalise_node(node) not in spellings:
            text = f"the protocol's `{self.name}` has a member `{key}` of another type; only members can be added"
            raise self.fail(text, *at, "properties", key)

    def _some(self, added: Any) -> Any:
        """Return what is added. Raises `SchemaError` for nothing, which may be meant as a narrower type."""
        if not added:
            raise self.fail(f"adds nothing to the protocol's `{self.name}`; leave it out, or choose another name")
        return added
