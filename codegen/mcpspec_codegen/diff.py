"""The changes between two schemas, as definitions, fields, methods and constants."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpspec_codegen.methods import MethodDefinition
from mcpspec_codegen.nodes import Schema, ref_name, type_names

__all__ = ["InterfaceTables", "describe_changes", "read_interface"]

_NAMES: Mapping[str, str] = {"array": "list", "object": "map"}


@dataclass(frozen=True, slots=True)
class InterfaceTables:
    """A schema as tables, name → text: one table for each kind of change."""

    definitions: dict[str, str]
    fields: dict[str, str]
    methods: dict[str, str]
    constants: dict[str, str]


def read_interface(document: Schema, methods: list[MethodDefinition], codes: dict[str, int]) -> InterfaceTables:
    """Read the tables off a normalised schema, its methods and its error codes."""
    defs = document["$defs"]
    objects = {name: node for name, node in defs.items() if "properties" in node}
    return InterfaceTables(
        definitions={name: _object_text(node) if name in objects else _type_text(node) for name, node in defs.items()},
        fields={
            f"{name}.{key}": _type_text(child) + ("" if key in node.get("required", []) else ", optional")
            for name, node in objects.items()
            for key, child in node["properties"].items()
            if "const" not in child
        },
        methods={method.name: _method_text(method) for method in methods},
        constants={
            **{name: str(code) for name, code in codes.items()},
            **{
                f"{name}.{key}": json.dumps(child["const"]) + ("" if key in node.get("required", []) else ", optional")
                for name, node in objects.items()
                for key, child in node["properties"].items()
                if "const" in child
            },
        },
    )


def describe_changes(old: InterfaceTables, new: InterfaceTables) -> str:
    """Describe additions, removals and changes; the text is empty without any.

    The fields of a definition that was added or removed are not listed.
    """
    touched = old.definitions.keys() ^ new.definitions.keys()
    known: Callable[[str], bool] = lambda name: name.partition(".")[0] not in touched  # noqa: E731
    sections = [
        _section("definitions", old.definitions, new.definitions),
        _section("fields", *({k: v for k, v in side.fields.items() if known(k)} for side in (old, new))),
        _section("methods", old.methods, new.methods),
        _section("constants", *({k: v for k, v in side.constants.items() if known(k)} for side in (old, new))),
    ]
    return "".join(sections)


def _section(title: str, old: dict[str, str], new: dict[str, str]) -> str:
    lines = [f"  + {name}{_colon(new[name])}" for name in sorted(new.keys() - old.keys())]
    lines += [f"  - {name}{_colon(old[name])}" for name in sorted(old.keys() - new.keys())]
    same = sorted(old.keys() & new.keys())
    lines += [
        f"  ~ {name}: {old[name] or 'object'} -> {new[name] or 'object'}" for name in same if old[name] != new[name]
    ]
    return "\n".join([title, *lines]) + "\n" if lines else ""


def _colon(text: str) -> str:
    return f": {text}" if text else ""


def _method_text(method: MethodDefinition) -> str:
    result = f" -> {method.result}" if method.result else ""
    return f"{method.kind} of {method.sender}, {method.params or 'no params'}{result}"


def _object_text(node: Schema) -> str:
    return "closed" if node["x"].get("closed") else "open" if node["x"]["kind"] == "open" else ""


def _type_text(node: Any) -> str:
    if "$ref" in node:
        return ref_name(node["$ref"])
    if "anyOf" in node:
        return " | ".join(_type_text(member) for member in node["anyOf"])
    if "enum" in node or "const" in node:
        return " | ".join(json.dumps(value) for value in node.get("enum", [node.get("const")]))
    if "items" in node:
        return f"list of {_type_text(node['items'])}" + _bounds(node)
    if node.get("additionalProperties"):
        return f"map of {_type_text(node['additionalProperties'])}"
    return " | ".join(_NAMES.get(name, name) for name in type_names(node) or ["any"]) + _bounds(node)


def _bounds(node: Schema) -> str:
    bounds = [f"{key} {value}" for key, value in node.items() if key.startswith(("m", "exclusive"))]
    return f" ({', '.join(bounds)})" if bounds else ""
