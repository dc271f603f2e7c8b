"""Defaults that constructors fill in, so that handlers need not write the same values in every result.

Decoding never fills them in: the members stay required. The values are in `schema/supplement.json`.
"""

from __future__ import annotations

from typing import TypeAlias

from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import Schema, pointer_text, type_names

__all__ = ["Defaults", "add_defaults", "check_defaults"]

Defaults: TypeAlias = dict[str, dict[str, str | int | bool]]
"""Definition → member → value."""


_KINDS = {"bool": "boolean", "int": "integer", "str": "string"}


def add_defaults(document: Schema, defaults: Defaults) -> Schema:
    """Return a normalised document whose definitions state their defaults, as member → value.

    The first entry for a member also holds for the other definitions that require it with the same JSON types and allow
    the value, such as those that TypeScript derives from `Result`. A definition's own entry takes precedence.
    """
    defs = document["$defs"]
    return {"$defs": {name: _with_defaults(name, node, defs, defaults) for name, node in defs.items()}}


def _with_defaults(name: str, node: Schema, defs: dict[str, Schema], defaults: Defaults) -> Schema:
    found: dict[str, str | int | bool] = {}
    for definition in dict.fromkeys([name, *defaults]):
        for member, value in defaults.get(definition, {}).items():
            holds = all(_explain(value, each, member, defs) is None for each in (definition, name))
            if holds and _types(node, member) == _types(defs[definition], member):
                found.setdefault(member, value)
    return {**node, "x": {**node["x"], "defaults": found}} if found else node


def _required(node: Schema, member: str) -> Schema | None:
    """Return the type of a member that a definition requires."""
    found: Schema | None = node.get("properties", {}).get(member) if member in node.get("required", []) else None
    return found


def _types(node: Schema, member: str) -> list[str]:
    return type_names(node["properties"][member])


def check_defaults(documents: list[Schema], defaults: Defaults, file: str) -> None:
    """Raise `SchemaError` for a default that holds in none of the documents that have its definition."""
    for definition, members in defaults.items():
        known = [document["$defs"] for document in documents if definition in document["$defs"]]
        for member, value in members.items():
            reasons = [_explain(value, definition, member, defs) for defs in known]
            if reasons and None not in reasons:
                at = pointer_text(("constructor_defaults", definition, member))
                raise SchemaError(file, at, f"{reasons[-1]}, in any version")


def _explain(value: str | float, definition: str, member: str, defs: dict[str, Schema]) -> str | None:
    """Return why a default does not hold, or None if it does."""
    if definition not in defs:
        return f"there is no definition `{definition}`"
    if (node := _required(defs[definition], member)) is None:
        return f"`{definition}` requires no member `{member}`"
    kind = _KINDS[type(value).__name__]
    fits = (
        kind in type_names(node)
        and value in node.get("enum", [value])
        and value == node.get("const", value)
        and not (isinstance(value, int) and value < node.get("minimum", value))
    )
    return None if fits else f"{value!r} does not fit `{definition}.{member}`"
