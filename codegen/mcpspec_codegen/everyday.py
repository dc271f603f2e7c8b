"""The everyday face of an interface: types that people write and read every day, beside the exact ones.

Members that are optional are None, or have the default that the protocol states for them. JSON Schemas and `_meta` are
plain dicts. Everything else is as in the exact types, from which both are rendered by the same templates.
"""

from __future__ import annotations

from typing import TypeAlias

from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import CHECKS, Schema, pointer_text, ref_name

__all__ = ["ProtocolDefaults", "check_protocol_defaults", "simplify"]

ProtocolDefaults: TypeAlias = dict[str, dict[str, str | int | bool]]
"""Definition → optional member → the value that its absence means."""

_META = "_meta"
_ANY_OBJECT: Schema = {"type": "object", "additionalProperties": {}}


def simplify(document: Schema, defaults: ProtocolDefaults) -> Schema:
    """Return a normalised document with plain objects for schemas and `_meta`, and with the protocol's defaults."""
    defs: dict[str, Schema] = document["$defs"]
    metas = {
        ref_name(node["properties"][_META]["$ref"])
        for node in defs.values()
        if "$ref" in node.get("properties", {}).get(_META, {})
    }
    simplified = {
        name: _as_dict(node) if name in metas or _is_schema(node) else _with_defaults(node, defaults.get(name, {}))
        for name, node in defs.items()
    }
    return {**document, "$defs": simplified}


def _is_schema(node: Schema) -> bool:
    """Return whether the values of a definition are JSON Schemas."""
    members = node.get("properties", {})
    is_typed = "const" in members.get("type", {}) and "properties" in members
    return node["x"]["kind"] == "open" and (is_typed or "$schema" in members)


def _as_dict(node: Schema) -> Schema:
    kept = {key: node["x"][key] for key in ("origin",) if key in node["x"]}
    if CHECKS in node:
        return {**_ANY_OBJECT, CHECKS: node[CHECKS], "x": {"kind": "checked", **kept}}
    return {**_ANY_OBJECT, "x": {"kind": "alias", **kept}}


def _with_defaults(node: Schema, defaults: dict[str, str | int | bool]) -> Schema:
    found = {
        member: value
        for member, value in defaults.items()
        if member in node.get("properties", {}) and member not in node.get("required", [])
    }
    return {**node, "x": {**node["x"], "absent": found}} if found else node


def check_protocol_defaults(documents: list[Schema], defaults: ProtocolDefaults, file: str) -> None:
    """Raise `SchemaError` for a default of a member that no document has as an optional one."""
    for definition, members in defaults.items():
        known = [document["$defs"][definition] for document in documents if definition in document["$defs"]]
        for member in members:
            if known and not any(_with_defaults(node, {member: 0}) is not node for node in known):
                at = pointer_text(("protocol_defaults", definition, member))
                raise SchemaError(file, at, f"`{definition}` has no optional member `{member}`, in any version")
