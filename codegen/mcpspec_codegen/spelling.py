"""Separate what types can express from what has to be checked, in a spelling of one form for each meaning.

What no type of both libraries can express stands in the keyword `checks`, as a list of parts of the schema, all of
which a value has to pass. The rest of the schema admits at least the values that the whole of it does.
"""

from __future__ import annotations

from typing import Any

from mcpspec_codegen.bounds import apply_bounds
from mcpspec_codegen.nodes import (
    ANNOTATIONS,
    CHECKS,
    Schema,
    constants,
    is_never,
    is_schema,
    map_children,
    ref_name,
    type_names,
    types_of_constants,
)
from mcpspec_codegen.syntax import UNEVALUATED, is_ignored

__all__ = ["ANY_NAME", "as_check", "complete_checks", "join_checks", "respell", "respell_definitions", "with_checks"]

ANY_NAME = frozenset({"", ".*", "^.*$", "^(.*)$"})
"""Patterns that all names match."""
_DROPPED = ANNOTATIONS | UNEVALUATED | {"$schema", "$id", "format", "default"}
_CHECKED = frozenset(
    {
        "contains", "minContains", "maxContains", "uniqueItems", "not", "if", "then", "else", "dependentRequired",
        "dependentSchemas",
    }
)  # fmt: skip
"""Keywords that no type expresses."""
_MERGED = frozenset(
    {
        "properties", "additionalProperties", "patternProperties", "propertyNames", "items", "prefixItems", "allOf",
        "anyOf", "oneOf", "const", "enum",
    }
)  # fmt: skip
"""Keywords that change what type a reference beside them is."""
_CONDITIONS = _CHECKED | {"required", "minProperties", "maxProperties", "anyOf", "oneOf", "allOf"}
"""Keywords of which a schema may be made that only compares values of a type."""


def respell_definitions(defs: dict[str, Schema]) -> dict[str, Schema]:
    """Return the definitions with what types cannot express in `checks`."""
    return {name: respell(node) for name, node in defs.items()}


def respell(node: Any) -> Any:
    """Return a schema, and those below it, with what types cannot express in `checks`."""
    if not is_schema(node):
        return {} if node is True else node
    if len(node) == 1 and not node.keys().isdisjoint(("type", "$ref")):
        return node
    node = {key: value for key, value in node.items() if key not in _DROPPED and not is_ignored(key)}
    for step in (_split_reference, _split_union, _split_constants, _split_array, _split_object, _split_rest):
        node = step(node)
    return map_children(node, respell)


def with_checks(node: Schema, *checks: Schema) -> Schema:
    """Return a schema with more checks."""
    found = [check for check in checks if check]
    return {**node, CHECKS: [*node.get(CHECKS, []), *found]} if found else node


def _split(node: Schema, keywords: Any) -> tuple[Schema, Schema]:
    """Return the parts of a schema without and with some keywords."""
    return (
        {key: value for key, value in node.items() if key not in keywords},
        {key: value for key, value in node.items() if key in keywords},
    )


def as_check(node: Any) -> Any:
    """Return a schema as one to which values are compared: without what says nothing about them."""
    if not is_schema(node):
        return node
    kept = {key: value for key, value in node.items() if key not in _DROPPED and not is_ignored(key)}
    made = map_children(kept, as_check, with_checks=True)
    return {**made, "$ref": "#/$defs/" + ref_name(made["$ref"])} if "$ref" in made else made


def _check(node: Schema) -> Schema:
    check: Schema = as_check(node)
    return check


def _split_reference(node: Schema) -> Schema:
    """Spell what is beside a reference as a part of `allOf`, or as a check if it leaves the type as it is."""
    if "$ref" not in node or node.keys() == {"$ref"}:
        return node
    rest, reference = _split(node, {"$ref"})
    if rest.keys() & _MERGED:
        return {"allOf": [reference, rest]}
    rest, kept = _split(rest, {"type", "$defs", "definitions", CHECKS})
    return with_checks({**kept, "anyOf": [reference]}, _check(rest))


def _split_union(node: Schema) -> Schema:
    """Spell a union beside other keywords as a part of `allOf`, or as a check if its members name no types."""
    unions = [key for key in ("anyOf", "oneOf") if key in node]
    for union in unions:
        if node.keys() & {"type", "properties", "$ref"} and all(map(_is_condition, node[union])):
            rest, check = _split(node, {union})
            node = with_checks(rest, _check(check))
    found = [key for key in unions if key in node]
    beside = node.keys() - {*found, "type", "$defs", "definitions", CHECKS, *_CHECKED}
    if not found or (not beside and len(found) == 1):
        return node
    rest, parts = _split(node, {*found, "allOf"})
    listed = [{key: parts[key]} for key in found] + parts.get("allOf", [])
    return {"allOf": [*listed, rest] if rest else listed}


def _is_condition(node: Any) -> bool:
    if not is_schema(node):
        return False
    kept = node.keys() - _DROPPED
    below = [part for key in ("anyOf", "oneOf", "allOf") for part in node.get(key, [])]
    return bool(kept) and kept <= _CONDITIONS and all(map(_is_condition, below))


def _split_constants(node: Schema) -> Schema:
    """Spell constants that no `Literal` has as their types and a check. Bounds leave some of the others."""
    values = constants(node := apply_bounds(node))
    if values is None or _are_literals(values):
        return node
    rest, check = _split(node, {"const", "enum"})
    types = sorted(types_of_constants(node))
    types = [kind for kind in types if kind != "integer" or "number" not in types]
    stated: Schema = {"type": types if len(types) > 1 else types[0]}
    if types == ["array"]:
        stated["items"] = {}
    if {"true" if value is True else "false" if value is False else "" for value in values} == {"true", "false"}:
        return {**rest, "type": "boolean"}
    return with_checks({**rest, **stated}, check)


def _are_literals(values: list[Any]) -> bool:
    """Return whether both libraries compare values with these constants exactly."""
    if not {type(value) for value in values} <= {str, int, type(None)}:
        return False
    # Pydantic takes `true` for 1 where there are texts, too.
    return not ({0, 1} & {*values}) or not any(isinstance(value, str) for value in values)


def _split_array(node: Schema) -> Schema:
    """Spell items by their places as a list of any of them, with a check of the places."""
    if node.get("items") is False and "prefixItems" not in node:
        rest, _ = _split(node, {"items"})
        return {**rest, "items": {}, "maxItems": 0}
    if "prefixItems" not in node:
        return node
    rest, check = _split(node, {"prefixItems", "items"})
    others = check.get("items", True)
    if others is False:
        rest["maxItems"] = min(len(check["prefixItems"]), rest.get("maxItems", len(check["prefixItems"])))
    listed = [*check["prefixItems"], *([] if others is False else [others])]
    options = [option for index, option in enumerate(listed) if option not in listed[:index]]
    is_any = any(option in (True, {}) for option in options)
    rest["items"] = {} if is_any else options[0] if len(options) == 1 else {"anyOf": options}
    return with_checks(rest, _check({key: value for key, value in check.items() if value is not False}))


def _split_object(node: Schema) -> Schema:
    """Spell types of members that depend on their names as a check. The object keeps such members as they are."""
    node = _split_absent(_split_patterns(node))
    if "propertyNames" in node and not _lists_names(node["propertyNames"]):
        rest, check = _split(node, {"propertyNames"})
        node = with_checks(rest, {} if check["propertyNames"] in ({}, True, {"type": "string"}) else _check(check))
    others = node.get("additionalProperties", {})
    if node.get("properties") and is_schema(others) and not is_never(others) and _says_something(others):
        names: Schema = dict.fromkeys(node["properties"], True)
        node = with_checks(node, _check({"properties": names, "additionalProperties": others}))
        return {**node, "additionalProperties": {}}
    return node


def _split_absent(node: Schema) -> Schema:
    """Spell members that have to be absent as a check. A closed object needs none."""
    properties: dict[str, Any] = node.get("properties", {})
    if not (absent := [name for name, member in properties.items() if is_never(member)]):
        return node
    kept = {name: member for name, member in properties.items() if name not in absent}
    rest, _ = _split(node, {"properties"})
    node = {**rest, "properties": kept} if kept else {"additionalProperties": {}, **rest}
    is_closed = node.get("additionalProperties") in (False, {"not": {}})
    return node if is_closed else with_checks(node, {"properties": dict.fromkeys(absent, False)})


def _says_something(node: Schema) -> bool:
    return any(key not in _DROPPED and not is_ignored(key) for key in node)


def _split_patterns(node: Schema) -> Schema:
    patterns = node.get("patternProperties")
    if patterns is None:
        return node
    if len(patterns) == 1 and ANY_NAME & patterns.keys() and not {"properties", "additionalProperties"} & node.keys():
        return node
    rest, check = _split(node, {"patternProperties", "additionalProperties"})
    check["properties"] = dict.fromkeys(node.get("properties", ()), True)
    return with_checks({**rest, "additionalProperties": {}}, _check(check))


def _lists_names(names: Any) -> bool:
    """Return whether a schema of names lists them as constants."""
    members: list[Any] = names.get("anyOf", [names]) if is_schema(names) else []
    listed = [constants(member) if is_schema(member) else None for member in members]
    return bool(listed) and all(found is not None for found in listed)


def _split_rest(node: Schema) -> Schema:
    """Move the keywords that no type expresses to the checks."""
    rest, check = _split(node, _CHECKED)
    if is_never(node):
        return node
    if check.get("uniqueItems") is False:
        del check["uniqueItems"]
    if "multipleOf" in rest and not _is_whole(rest):
        check["multipleOf"] = rest.pop("multipleOf")
    return with_checks(rest, _check(check))


def _is_whole(node: Schema) -> bool:
    """Return whether both libraries divide numbers exactly: integers by integers."""
    return isinstance(node["multipleOf"], int) and {*type_names(node)} <= {"integer", "null"}


def complete_checks(defs: dict[str, Schema]) -> dict[str, Schema]:
    """Return merged definitions in which the limits of names and members are checks where types do not express them."""
    return {name: _complete(node) for name, node in defs.items()}


def _complete(node: Any) -> Any:
    if not is_schema(node):
        return node
    node = map_children(node, _complete)
    if "object" not in type_names(node):
        return node
    counted = {"minProperties", "maxProperties", "propertyNames"} if "properties" in node else {"required"}
    rest, check = _split(node, counted)
    check = {key: value for key, value in check.items() if value != []}
    return with_checks(rest if check else node, check)


def join_checks(node: Schema) -> Schema | None:
    """Return the checks of a definition as one schema; None if it has none."""
    found: list[Schema] = node.get(CHECKS, [])
    if found and node["x"].get("closed"):
        names = dict.fromkeys(node["properties"], True)
        found = [*found, {"properties": names, "additionalProperties": False}]
    joined: Schema = {}
    for check in found:
        if joined.keys() & check.keys() or _depend(joined, check):
            return {"allOf": found}
        joined |= check
    return joined or None


_GROUPS = (
    {"properties", "patternProperties", "additionalProperties"}, {"prefixItems", "items"}, {"if", "then", "else"},
    {"contains", "minContains", "maxContains"},
)  # fmt: skip
"""Keywords whose meaning depends on those beside them."""


def _depend(left: Schema, right: Schema) -> bool:
    return any(group & left.keys() and group & right.keys() for group in _GROUPS)
