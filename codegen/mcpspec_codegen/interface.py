"""The interface that a package is rendered from: a normalised schema, its methods, and what it says about itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcpspec_codegen.methods import MethodDefinition
from mcpspec_codegen.nodes import Schema, references
from mcpspec_codegen.prose import Prose

__all__ = ["Inherited", "Interface", "find_inherited", "restore_origins", "select_reachable"]


@dataclass(frozen=True, slots=True)
class Inherited:
    """The names that a package imports from the package of the revision that it extends."""

    package: str = ""
    definitions: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    """Names on the wire."""


@dataclass(frozen=True, slots=True)
class Interface:
    """Everything that the modules of a package are rendered from."""

    title: str
    document: Schema
    methods: list[MethodDefinition]
    codes: dict[str, int]
    prose: Prose
    identity: Mapping[str, str | tuple[str, ...]]
    """Constants that name the revision or extension."""
    command: str = "make generate"
    """The command that wrote the package."""
    note: str = ""
    """A paragraph for the docstring of the package."""
    inherited: Inherited = Inherited()

    @property
    def own_definitions(self) -> dict[str, Schema]:
        """The definitions that the package has classes for."""
        return {name: node for name, node in self.document["$defs"].items() if name not in self.inherited.definitions}


def find_inherited(package: str, base: Interface, document: Schema, methods: list[MethodDefinition]) -> Inherited:
    """Find what an extended schema leaves as it is in a revision: definitions with all that they refer to, methods."""
    defs, known = document["$defs"], base.document["$defs"]
    changed = {name for name, node in defs.items() if node != known.get(name)}
    while more := {name for name in defs.keys() - changed if not changed.isdisjoint(references(defs[name]))}:
        changed |= more
    same = [method for method in methods if method in base.methods]
    return Inherited(
        package,
        frozenset(defs.keys() - changed),
        frozenset(method.name for method in same if changed.isdisjoint(method.definitions)),
    )


def restore_origins(document: Schema, base: Schema) -> None:
    """Note where the inline types of a revision were, which are definitions of a schema that extends it."""
    for name, node in base["$defs"].items():
        if "origin" in node["x"] and "origin" not in document["$defs"][name]["x"]:
            document["$defs"][name]["x"]["origin"] = node["x"]["origin"]


def select_reachable(document: Schema, own: Iterable[str]) -> Schema:
    """Return a normalised schema with the definitions of some names, and with those that they refer to."""
    defs: dict[str, Schema] = document["$defs"]
    reached = set(own) & defs.keys()
    while more := {name for found in reached for name in references(defs[found])} - reached:
        reached |= more
    return {**document, "$defs": {name: node for name, node in defs.items() if name in reached}}
