"""Describe types, members and methods in a line, and what has changed about a type."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final

from typedmcp_cli.comparison.containment import list_types, list_values
from typedmcp_cli.comparison.interfaces import MethodShape, Node, is_node, ref_name

__all__ = ["describe_change", "describe_member", "describe_method", "describe_type"]


def describe_type(node: Node) -> str:
    """Describe a type, such as `list of (TextContent | string)`."""
    if "properties" in node:
        others = node.get("additionalProperties", True)
        if others in (True, {}):
            return "open object" if "additionalProperties" in node else "object"
        return "closed object" if others is False else f"object, other members {_grouped(others)}"
    return " | ".join(_list_options(node))


def describe_member(node: Node, *, is_required: bool) -> str:
    """Describe a member of an object."""
    return describe_type(node) + ("" if is_required else ", optional")


def describe_method(method: MethodShape) -> str:
    """Describe a method, such as `client request, PingParams -> EmptyResult`."""
    sender = "client or server" if method.sender == "both" else method.sender
    kind = "input request" if method.kind == "input" else method.kind
    params = method.params or "no params"
    optional = "" if method.params_required or method.params is None else ", optional"
    result = f" -> {method.result}" if method.result else ""
    return f"{sender} {kind}, {params}{optional}{result}"


def describe_change(old: Node, new: Node, old_types: Mapping[str, Node], new_types: Mapping[str, Node]) -> str:
    """Describe the change of a type: the options that a union has gained and lost, else both types.

    The text is empty if they differ in order alone.
    """
    for key, word in (("items", "items"), ("additionalProperties", "values")):
        if key in old and key in new and _is_same_but(key, old, new):
            change = describe_change(old[key], new[key], old_types, new_types)
            return f"{word} {change}" if change else ""
    common = {*_list_options(old)} & {*_list_options(new)}
    before = _list_options(_spread(old, old_types, common))
    after = _list_options(_spread(new, new_types, common))
    if {*before} == {*after}:
        return ""
    if {*before}.isdisjoint(after):
        return f"{describe_type(old)} => {describe_type(new)}"
    gained = [f"+ {option}" for option in after if option not in before]
    return ", ".join([*gained, *(f"- {option}" for option in before if option not in after)])


def _is_same_but(key: str, old: Node, new: Node) -> bool:
    rest = [{name: value for name, value in node.items() if name != key} for node in (old, new)]
    return rest[0] == rest[1] and all(is_node(node[key]) for node in (old, new))


def _spread(node: Node, types: Mapping[str, Node], kept: Collection[str]) -> Node:
    """Replace the names of unions by their options, except those that are kept."""
    if "anyOf" in node:
        return {"anyOf": [_spread(option, types, kept) for option in node["anyOf"]]}
    name = ref_name(node.get("$ref", ""))
    if name in kept or "anyOf" not in types.get(name, {}):
        return node
    return _spread(types[name], types, {*kept, name})


def _list_options(node: Node) -> list[str]:
    """Describe each option of a union, or the only one."""
    if "anyOf" in node:
        return list(dict.fromkeys(text for option in node["anyOf"] for text in _list_options(option)))
    if "$ref" in node:
        return [ref_name(node["$ref"])]
    if (values := list_values(node)) is not None:
        return [json.dumps(value, ensure_ascii=False) for value in values]
    return [_describe_plain(kind, node) for kind in list_types(node) or ["any"]]


def _describe_plain(kind: str, node: Node) -> str:
    bounds = [f"{words} {node[key]}" for key, (words, kinds) in _BOUNDS.items() if key in node and kind in kinds]
    limits = f" ({', '.join(bounds)})" if bounds else ""
    if kind == "array":
        return f"list of {_grouped(node.get('items', {}))}{limits}"
    if kind == "object" and node.get("additionalProperties"):
        return f"map of {_grouped(node['additionalProperties'])}{limits}"
    return kind + limits


def _grouped(node: Node | bool) -> str:
    text = "any" if isinstance(node, bool) else describe_type(node)
    return f"({text})" if " | " in text else text


_NUMBERS: Final = ("integer", "number")
_BOUNDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "minimum": ("at least", _NUMBERS), "exclusiveMinimum": ("more than", _NUMBERS),
    "maximum": ("at most", _NUMBERS), "exclusiveMaximum": ("less than", _NUMBERS),
    "multipleOf": ("multiple of", _NUMBERS),
    "minLength": ("length at least", ("string",)), "maxLength": ("length at most", ("string",)),
    "pattern": ("pattern", ("string",)), "minItems": ("length at least", ("array",)),
    "maxItems": ("length at most", ("array",)),
    "minProperties": ("size at least", ("object",)), "maxProperties": ("size at most", ("object",)),
}  # fmt: skip
