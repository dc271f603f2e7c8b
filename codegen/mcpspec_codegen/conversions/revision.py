"""A revision as conversions see it: object types by name, their members, and which values fit where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

from mcpspec_codegen.comparison.containment import Containment
from mcpspec_codegen.comparison.descriptions import describe_type
from mcpspec_codegen.everyday import ProtocolDefaults, simplify
from mcpspec_codegen.methods import MethodDefinition
from mcpspec_codegen.nodes import CHECKS, Schema, ref_name

__all__ = [
    "ConversionFacts",
    "RecordMember",
    "Revision",
    "adds_checks",
    "describe",
    "fits",
    "members_of_record",
    "without_facts",
]


class ConversionFacts(TypedDict):
    """Facts about conversion that do not follow from the types of two revisions."""

    renamed_types: dict[str, str]
    """Types, with their names in older revisions."""
    renamed_members: dict[str, str]
    """Members, as `Type.member` in Python names, with their names in older revisions."""
    replaced_content: dict[str, str]
    """Types of content that older revisions lack, with the text that replaces the content there."""
    decided: dict[str, str]
    """Methods, members and types of older revisions that need no conversion, with the reason."""


_ALIASES = ("alias", "union", "checked")
"""Kinds of definitions that stand for another type."""


@dataclass(frozen=True)
class Revision:
    """A revision as far as conversions need it."""

    version: str
    package: str
    definitions: dict[str, Schema]
    methods: Mapping[str, MethodDefinition]
    is_modern: bool
    everyday: dict[str, Schema] = field(repr=False)
    """The definitions of the everyday types."""

    @classmethod
    def of(
        cls, version: str, package: str, document: Schema, methods: list[MethodDefinition], defaults: ProtocolDefaults,
        *, is_modern: bool,
    ) -> Revision:  # fmt: skip
        """Collect a revision from its normalised document."""
        everyday = simplify(document, defaults)["$defs"]
        return cls(version, package, document["$defs"], {m.name: m for m in methods}, is_modern, everyday)

    def resolve(self, node: Schema) -> Schema:
        """Follow the references to aliases, up to an object type or a node without a reference."""
        while (name := self.name_of(node)) is not None and self.definitions[name]["x"]["kind"] in _ALIASES:
            node = self.definitions[name]
        return node

    def recursive_name(self, node: Schema) -> str | None:
        """Return the alias that refers to itself, if a node is a reference to one, also by way of other aliases."""
        while (name := self.name_of(node)) is not None:
            node = self.definitions[name]
            if node["x"].get("recursive"):
                return name
        return None

    def name_of(self, node: Schema) -> str | None:
        """Return the definition that a node refers to, if it is a reference."""
        return ref_name(node["$ref"]) if "$ref" in node else None

    def is_kind(self, name: str | None, *kinds: str) -> bool:
        """Return whether a definition is of one of these kinds."""
        return name is not None and name in self.definitions and self.definitions[name]["x"]["kind"] in kinds

    def object_name(self, node: Schema) -> str | None:
        """Return the name of the object type that a node is, after aliases, if it is one."""
        name = self.name_of(self.resolve(node))
        return name if self.is_kind(name, "record", "open") else None

    def options(self, node: Schema) -> list[Schema]:
        """Return the members of a union, those of unions in it included; any other node alone."""
        node = self.resolve(node)
        if "anyOf" not in node:
            return [node]
        return [option for member in node["anyOf"] for option in self.options(member)]


class RecordMember(NamedTuple):
    """A member of a record."""

    name: str
    node: Schema
    is_required: bool
    constant: Any
    """The value that it always has, or None."""
    default: Any
    """The value that constructors fill in, or that absence stands for; None if neither is known."""


def members_of_record(revision: Revision, name: str, *, everyday: bool = False) -> dict[str, RecordMember]:
    """Return the members of a record that constructors take, by their Python names."""
    node = (revision.everyday if everyday else revision.definitions)[name]
    extra = node["x"]
    known = {**extra.get("defaults", {}), **extra.get("absent", {})}
    tag = extra["tag"][0] if "tag" in extra else None
    return {
        extra["names"][wire]: RecordMember(
            extra["names"][wire],
            child,
            wire in node.get("required", ()),
            extra["constants"].get(wire),
            known.get(wire),
        )
        for wire, child in node["properties"].items()
        if wire != tag
    }


def without_facts(node: Schema) -> Schema:
    return {key: value for key, value in node.items() if key != "x"}


def fits(source: Schema, target: Schema) -> bool:
    """Return whether every value of a node without objects is one of another node."""
    return Containment({}, {}).accepts(without_facts(target), without_facts(source))


def adds_checks(source: Schema, target: Schema) -> bool:
    """Return whether a node has a check that another one lacks."""
    return any(check not in source.get(CHECKS, []) for check in target.get(CHECKS, []))


def describe(node: Schema) -> str:
    return describe_type(without_facts(node))
