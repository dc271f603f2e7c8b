"""Hypothesis strategies for instances of the definitions of a schema."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis_jsonschema import from_schema  # pyright: ignore[reportUnknownVariableType]

from mcpspec.support.objects import is_object
from mcpspec_codegen.merge import merge_all_of
from mcpspec_codegen.nodes import map_children, ref_name
from mcpspec_codegen.normalise import canonicalise, replace_json_values
from tests import official

__all__ = ["definitions", "fuzzed", "instances", "narrow"]

DEPTH = 2


@cache
def definitions(version: str) -> dict[str, Any]:
    """Return the definitions of a revision, in one spelling and without `allOf`."""
    schema, _ = official.patched_schema(version)
    return merge_all_of(replace_json_values(canonicalise(schema), version), version)


def instances(version: str, name: str, depth: int = DEPTH) -> Any:
    """Return a strategy for values that a definition accepts."""
    return cast(Any, from_schema(narrow(version, name, depth)))


def fuzzed(strategy: Any, examples: int) -> Callable[[Callable[[Any], None]], Callable[[], None]]:
    """Run a check with a number of values, the same in each run."""

    def decorate(check: Callable[[Any], None]) -> Callable[[], None]:
        chosen: Any = settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=[*cast(Any, HealthCheck)],
            phases=[Phase.generate],
        )
        made: Callable[[], None] = chosen(given(value=strategy)(check))
        return made

    return decorate


def narrow(version: str, name: str, depth: int = DEPTH) -> Any:
    """Return a schema for some instances of a definition, small enough to generate them.

    Objects have no undeclared members, and deeper than `depth` references no optional ones; lists are short.
    """
    defs = definitions(version)
    return _narrow(defs[name], defs, depth)


def _narrow(node: Any, defs: dict[str, Any], depth: int) -> Any:
    if not is_object(node):
        return node
    if "$ref" in node:
        return _narrow(defs[ref_name(node["$ref"])], defs, depth - 1)
    if "properties" in node:
        required = node.get("required", [])
        kept = {key: child for key, child in node["properties"].items() if depth > 0 or key in required}
        node = {**node, "properties": kept, "additionalProperties": False}
    node = map_children(node, lambda child: _narrow(child, defs, depth))
    if not node:
        return {"type": ["null", "boolean", "integer", "string"]}
    if node.get("type") == "array":
        node["maxItems"] = min(2, node.get("maxItems", 2))
    return node
