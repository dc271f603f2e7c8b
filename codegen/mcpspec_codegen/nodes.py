"""Walk JSON Schema: some keywords contain schemas, others contain values.

MCP has *properties* named `type`, `title`, `description`, `enum`, …, so a walk has to distinguish a
schema from a map of properties. All other modules walk with these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mcpspec_codegen.errors import Pointer, pointer_text, split_pointer

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = [
    "ANNOTATIONS",
    "BOUNDS",
    "CHECKS",
    "CHECK_LISTS",
    "CHECK_MAPS",
    "CHECK_SINGLE",
    "LISTS",
    "MAPS",
    "SINGLE",
    "Pointer",
    "Schema",
    "children",
    "constants",
    "definitions_key",
    "find_misplaced_constant",
    "is_never",
    "is_schema",
    "map_children",
    "pointer_text",
    "ref_name",
    "references",
    "split_pointer",
    "type_names",
    "types_of_constants",
]

Schema: TypeAlias = dict[str, Any]

ANNOTATIONS = frozenset({"description", "title", "examples", "$comment", "deprecated", "readOnly", "writeOnly"})
"""Keywords that describe values for people, which are not part of the interface."""

MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
LISTS = frozenset({"anyOf", "oneOf", "allOf"})
SINGLE = frozenset({"items", "additionalProperties", "propertyNames", "not"})
"""Keywords that contain schemas from which types are made."""
CHECK_MAPS = frozenset({"dependentSchemas", "dependencies"})
CHECK_LISTS = frozenset({"prefixItems"})
CHECK_SINGLE = frozenset({"additionalItems", "contains", "if", "then", "else"})
"""Keywords that contain schemas to which values are only compared."""
CHECKS = "checks"
"""The keyword of canonical schemas that lists what types cannot express: parts of the schema, as JSON Schema."""
BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern"}) | {
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
}  # fmt: skip
"""Keywords that limit a value, which both libraries have."""


def is_schema(node: object) -> TypeIs[Schema]:
    """Return whether a node is a schema, and not a boolean in place of one."""
    return isinstance(node, dict)


def is_never(node: object) -> bool:
    """Return whether no value fits a schema, so that a member of it has to be absent."""
    if not is_schema(node):
        return node is False
    return node.get("not") in ({}, True) and not node.keys() - ANNOTATIONS - {"not"}


def type_names(node: Schema) -> list[str]:
    """List the types that a schema names: none, one or several."""
    types: str | list[str] = node.get("type", [])
    return [types] if isinstance(types, str) else types


def types_of_constants(node: Schema) -> set[str]:
    """Return the types of the constants that a schema lists in `const` or `enum`."""
    return {_CONSTANT_TYPES[type(value)] for value in constants(node) or ()}


def find_misplaced_constant(node: Schema) -> str | None:
    """Describe a constant that is not of the type beside it: no value would fit both."""
    types = {*type_names(node)}
    for value in constants(node) or () if types else ():
        kind = _CONSTANT_TYPES[type(value)]
        kind = "integer" if isinstance(value, float) and value.is_integer() else kind
        if kind not in types | ({"integer"} if "number" in types else set[str]()):
            return f"the constant {value!r} is of type {kind}, not {' or '.join(sorted(types))}"
    return None


def constants(node: Schema) -> list[Any] | None:
    """Return the values that a schema lists in `enum` or `const`; None if it has neither."""
    if "const" in node:
        return [node["const"]]
    found: list[Any] | None = node.get("enum")
    return found


_CONSTANT_TYPES = {
    str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", list: "array", dict: "object",
}  # fmt: skip


def children(node: Schema, *, with_checks: bool = False) -> Iterator[tuple[Pointer, Any]]:
    """Yield the schemas directly below a schema, each with its pointer from there.

    Without those to which values are only compared, unless `with_checks`.
    """
    maps, lists, single = _WITH_CHECKS if with_checks else _STRUCTURE
    for key, value in node.items():
        if key in maps:
            yield from (((key, name), child) for name, child in value.items())
        elif key in lists or (key in single and isinstance(value, list)):
            yield from (((key, index), child) for index, child in enumerate(cast("list[Any]", value)))
        elif key in single:
            yield (key,), value


def map_children(node: Schema, change: Callable[[Any], Any], *, with_checks: bool = False) -> Schema:
    """Return a copy of a schema with `change` applied to each schema directly below it, as `children` yields them."""
    maps, lists, single = _WITH_CHECKS if with_checks else _STRUCTURE
    copy: Schema = {}
    for key, value in node.items():
        if key in maps:
            copy[key] = {name: change(child) for name, child in value.items()}
        elif key in lists or (key in single and isinstance(value, list)):
            copy[key] = [change(child) for child in cast("list[Any]", value)]
        else:
            copy[key] = change(value) if key in single else value
    return copy


_STRUCTURE = MAPS, LISTS, SINGLE
_WITH_CHECKS = MAPS | CHECK_MAPS, LISTS | CHECK_LISTS, SINGLE | CHECK_SINGLE


def references(node: Any) -> set[str]:
    """Return the names of the definitions that a canonical schema refers to, also in its checks."""
    if not is_schema(node):
        return set()
    found = {ref_name(node["$ref"])} if "$ref" in node else set[str]()
    below = [child for _, child in children(node, with_checks=True)] + node.get(CHECKS, [])
    return found.union(*map(references, below))


def definitions_key(document: Schema) -> str:
    """Return the keyword of a document's definitions, which differs between draft-07 and 2020-12."""
    return "definitions" if "definitions" in document else "$defs"


def ref_name(ref: str) -> str:
    """Return the name of the definition that a local reference leads to."""
    return ref.rpartition("/")[2]
