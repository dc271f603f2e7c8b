"""Find descriptions that do not hold for a version, since they were written for others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mcpspec_codegen.models import list_owners
from mcpspec_codegen.nodes import Schema, children, is_schema, type_names
from mcpspec_codegen.source import Descriptions

__all__ = ["find_contradictions", "list_terms"]

_TERM = re.compile(r"`([^`]+)`")
_ABSENT = re.compile(r"\bwhen absent\b|\babsent on\b")
_NULL = re.compile(r"\bnull\b")
_ALWAYS = re.compile(r"\balways `([^`]+)`")


def list_terms(document: Schema) -> set[str]:
    """List what a description may name in backticks: definitions, members, constants, and types of JSON."""
    return {*document["$defs"], *(term for node in document["$defs"].values() for term in _terms(node))}


def _terms(node: Any) -> Iterator[str]:
    if is_schema(node):
        yield from node.get("properties", {})
        yield from (str(value) for value in (*node.get("enum", []), node.get("const")))
        yield from type_names(node)
        for _, child in children(node):
            yield from _terms(child)


def find_contradictions(document: Schema, descriptions: Descriptions, terms: set[str]) -> list[str]:
    """List the definitions and members whose description contradicts the schema, each with the reason."""
    defs = document["$defs"]
    found: list[str] = []
    for name, node in defs.items():
        owners = list_owners(name, defs)
        unknown = _unknown_terms(descriptions.of_definition(name) or "", terms)
        found += [f"{name} (the present one {reason})" for reason in unknown]
        for key in node["x"].get("names", {}):
            text = descriptions.of_property(owners, key) or ""
            required = key in node.get("required", [])
            reasons = [*_unknown_terms(text, terms), *_member_faults(text, node["properties"][key], required=required)]
            found += [f"{name}.{key} (the present one {reason})" for reason in reasons]
    return found


def _unknown_terms(text: str, terms: set[str]) -> Iterator[str]:
    for term in _TERM.findall(text):
        if term not in terms:
            yield f"names `{term}`, which the schema does not have"


def _member_faults(text: str, node: Schema, *, required: bool) -> Iterator[str]:
    if required and _ABSENT.search(text):
        yield "says what absence means, but the member is required"
    if _NULL.search(text) and "null" not in _types(node):
        yield "says what null means, but the member is never null"
    if (stated := _ALWAYS.search(text)) and stated[1] != str(node.get("const")):
        yield f"says that the value is always `{stated[1]}`"
    named, values = set(_TERM.findall(text)), {str(value) for value in node.get("enum", [])}
    if named & values and (rest := sorted(values - named)):
        yield f"names some values, but not `{rest[0]}`"


def _types(node: Schema) -> list[str]:
    return [*type_names(node), *(name for member in node.get("anyOf", []) for name in type_names(member))]
