"""Spell schemas of draft-07 as those of JSON Schema 2020-12, whose keywords say the same by other names."""

from __future__ import annotations

from typing import Any

from mcpspec_codegen.nodes import Schema, children, definitions_key, is_schema, map_children, pointer_text, ref_name

__all__ = ["is_draft_07", "list_ignored_siblings", "modernise"]

_BESIDE_REFERENCE = frozenset({"$defs", "definitions", "description", "title", "default"})


def is_draft_07(document: Schema) -> bool:
    """Return whether a document is of draft-07 or older. Without `$schema`, its `definitions` say so."""
    stated = document.get("$schema")
    return "draft-0" in stated if isinstance(stated, str) else definitions_key(document) == "definitions"


def modernise(node: Any, *, old: bool) -> Any:
    """Return a schema below the root in the spelling of 2020-12, given whether it is `old`.

    Draft-07 ignores what is beside a `$ref`; since 2019-09, both hold.
    """
    if not is_schema(node):
        return node
    node = map_children({key: value for key, value in node.items() if key != "$schema"}, _Change(old), with_checks=True)
    if "$ref" in node:
        kept = {key: value for key, value in node.items() if not old or key in _BESIDE_REFERENCE}
        return {**kept, "$ref": "#/$defs/" + ref_name(node["$ref"])}
    return _without_dependencies(_with_prefix(node))


class _Change:
    """`modernise` as a function of a schema alone."""

    def __init__(self, old: bool) -> None:
        self.old = old

    def __call__(self, node: Any) -> Any:
        return modernise(node, old=self.old)


def _with_prefix(node: Schema) -> Schema:
    """Spell the items by their places, and those after them, as `prefixItems` and `items`."""
    if not isinstance(node.get("items"), list):
        return {key: value for key, value in node.items() if key != "additionalItems"}  # it means nothing there
    rest = {key: value for key, value in node.items() if key not in ("items", "additionalItems")}
    others = {"items": node["additionalItems"]} if "additionalItems" in node else {}
    return {**rest, **({"prefixItems": node["items"]} if node["items"] else {}), **others}


def _without_dependencies(node: Schema) -> Schema:
    """Spell `dependencies` by what they are: names of members, or schemas."""
    if "dependencies" not in node:
        return node
    given: dict[str, Any] = node["dependencies"]
    names: dict[str, Any] = {name: other for name, other in given.items() if isinstance(other, list)}
    schemas = {name: other for name, other in given.items() if name not in names}
    rest = {key: value for key, value in node.items() if key != "dependencies"}
    found = {"dependentRequired": names, "dependentSchemas": schemas}
    return rest | {key: {**node.get(key, {}), **value} for key, value in found.items() if value}


def list_ignored_siblings(document: Schema) -> list[str]:
    """Describe the keywords beside references that draft-07 ignores, and 2020-12 does not."""
    places = _find_siblings(document, "") if is_draft_07(document) else []
    text = "draft-07 ignores what is beside a `$ref`; declare 2020-12 in `$schema`, or use `allOf`"
    return [f"ignored: `{places[0]}`" + _more(len(places) - 1) + f": {text}"] if places else []


def _more(count: int) -> str:
    return f" and {count} more" if count else ""


def _find_siblings(node: Any, at: str) -> list[str]:
    if not is_schema(node):
        return []
    beside = sorted(node.keys() - _BESIDE_REFERENCE - {"$ref", "$comment", "examples"}) if "$ref" in node else []
    found = [f"{at}/{key}" for key in beside]
    return found + [
        place
        for below, child in children(node, with_checks=True)
        for place in _find_siblings(child, at + pointer_text(below))
    ]
