"""Walk and check JSON Schema: some keywords contain schemas, others contain values.

MCP has *properties* named `type`, `title`, `description`, `enum`, …, so a walk has to distinguish a
schema from a map of properties. All other modules walk with these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mcpspec_codegen.budget import SCHEMA_STEPS, spend
from mcpspec_codegen.errors import Pointer, SchemaError, pointer_text

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = [
    "ANNOTATIONS",
    "BOUNDS",
    "Pointer",
    "Schema",
    "check",
    "children",
    "definitions_key",
    "find_misplaced_constant",
    "is_never",
    "is_schema",
    "map_children",
    "pointer_text",
    "ref_name",
    "type_names",
    "types_of_constants",
]

Schema: TypeAlias = dict[str, Any]

ANNOTATIONS = frozenset({"description", "title", "examples", "$comment", "deprecated", "readOnly", "writeOnly"})
"""Keywords that describe values for people, which are not part of the interface."""

_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf"})
_SINGLE = frozenset({"items", "additionalProperties", "propertyNames", "not"})
_VALUES = frozenset(
    {
        "$schema", "$id", "$ref", "type", "const", "enum", "format", "pattern", "required", "default",
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
        "minLength", "maxLength", "minItems", "maxItems",
    }
)  # fmt: skip
_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})


def is_schema(node: object) -> TypeIs[Schema]:
    """Return whether a node is a schema, and not a boolean in place of one."""
    return isinstance(node, dict)


def is_never(node: object) -> bool:
    """Return whether no value fits a schema, so that a member of it has to be absent."""
    return is_schema(node) and node.get("not") == {} and not node.keys() - ANNOTATIONS - {"not"}


def type_names(node: Schema) -> list[str]:
    """List the types that a schema names: none, one or several."""
    types: str | list[str] = node.get("type", [])
    return [types] if isinstance(types, str) else types


def types_of_constants(node: Schema) -> set[str]:
    """Return the types of the constants that a schema lists in `const` or `enum`."""
    return {_CONSTANT_TYPES[type(value)] for value in _constants(node)}


def find_misplaced_constant(node: Schema) -> str | None:
    """Describe a constant that is not of the type beside it: no value would fit both."""
    types = {"integer" if kind == "number" else kind for kind in type_names(node)}
    for value in _constants(node) if types else []:
        if (kind := _CONSTANT_TYPES[type(value)]) not in types:
            return f"the constant {value!r} is of type {kind}, not {' or '.join(sorted(types))}"
    return None


def _constants(node: Schema) -> list[Any]:
    return [*node.get("enum", []), *([node["const"]] if "const" in node else [])]


_CONSTANT_TYPES = {str: "string", int: "integer", type(None): "null"}


def children(node: Schema) -> Iterator[tuple[Pointer, Any]]:
    """Yield the schemas directly below a schema, each with its pointer from there."""
    for key, value in node.items():
        if key in _MAPS:
            yield from (((key, name), child) for name, child in value.items())
        elif key in _LISTS:
            yield from (((key, index), child) for index, child in enumerate(value))
        elif key in _SINGLE:
            yield (key,), value


def map_children(node: Schema, change: Callable[[Any], Any]) -> Schema:
    """Return a copy of a schema with `change` applied to each schema directly below it."""
    copy: Schema = {}
    for key, value in node.items():
        if key in _MAPS:
            copy[key] = {name: change(child) for name, child in value.items()}
        elif key in _LISTS:
            copy[key] = [change(child) for child in value]
        else:
            copy[key] = change(value) if key in _SINGLE else value
    return copy


def definitions_key(document: Schema) -> str:
    """Return the keyword of a document's definitions, which differs between draft-07 and 2020-12."""
    return "definitions" if "definitions" in document else "$defs"


def ref_name(ref: str) -> str:
    """Return the name of the definition that a local reference leads to."""
    return ref.rpartition("/")[2]


def check(document: Any, file: str, others: Iterable[str] = ()) -> None:
    """Raise `SchemaError` unless the compiler knows everything in a document.

    `others` are the names of definitions outside of the document, to which its references may lead.
    """
    if not is_schema(document):
        raise SchemaError(file, "", "expected a JSON object")
    definitions: object = document.get(definitions_key(document))
    if not is_schema(definitions) or not definitions:
        raise SchemaError(file, "", "expected a schema with `$defs` or `definitions`")
    _check_node(document, (), {*definitions, *others}, definitions_key(document), file)


_MAX_DEPTH = 128
"""Longest pointer to a schema, in parts. What Python can recurse into depends on its version."""


def _check_node(node: Any, at: Pointer, names: set[str], key: str, file: str) -> None:
    def fail(reason: str, *below: str | int) -> SchemaError:
        return SchemaError(file, pointer_text((*at, *below)), reason)

    spend(SCHEMA_STEPS, at, file)
    if len(at) > _MAX_DEPTH:
        raise SchemaError(file, "", "nested too deeply")
    if isinstance(node, bool):
        if at[-1:] == ("additionalProperties",):
            return
        raise fail("a boolean schema is supported under `additionalProperties` only")
    if not is_schema(node):
        raise fail(f"expected a schema, got {type(node).__name__}")
    for keyword, value in node.items():
        if keyword not in ANNOTATIONS | _VALUES:
            _check_shape(keyword, value, fail)
    if "pattern" in node and "format" not in node:
        raise fail("unknown keyword `pattern`; it is understood beside the `format` that it spells out", "pattern")
    names = _add_nested(names, node) if at else names
    _check_values(node, names, key, fail)
    _check_combinations(node, at, fail)
    for below, child in children(node):
        _check_node(child, (*at, *below), names, key, file)


def _add_nested(names: set[str], node: Schema) -> set[str]:
    """Return the names of definitions with those that a schema contains."""
    nested = [node[key] for key in ("$defs", "definitions") if key in node]
    return names.union(*nested) if nested else names


Fail: TypeAlias = Callable[..., SchemaError]


def _check_shape(keyword: str, value: object, fail: Fail) -> None:
    """Raise an error unless a keyword is one that contains schemas, and contains a map, a list or one of them."""
    if keyword not in _MAPS | _LISTS | _SINGLE:
        raise fail(f"unknown keyword `{keyword}`", keyword)
    if not isinstance(value, dict if keyword in _MAPS else list if keyword in _LISTS else dict | bool):
        raise fail(f"`{keyword}` has the wrong type", keyword)
    if keyword in _LISTS and not value:
        raise fail(f"`{keyword}` is empty; expected at least one schema", keyword)


def _check_values(node: Schema, names: set[str], key: str, fail: Fail) -> None:
    """Raise an error if a keyword has a value of the wrong type."""
    ref, prefix = node.get("$ref"), f"#/{key}/"
    if "$ref" in node and not (isinstance(ref, str) and ref.startswith(prefix) and ref.removeprefix(prefix) in names):
        raise fail(f"`$ref` leads to no definition: {ref!r}", "$ref")
    types: object = node.get("type", "string")
    if not _are_names([types] if isinstance(types, str) else types) or any(t not in _TYPES for t in type_names(node)):
        raise fail(f"unknown type {types!r}", "type")
    if types == []:
        raise fail("`type` is empty; expected at least one type", "type")
    required: object = node.get("required", [])
    if not _are_names(required):
        raise fail("`required` must be a list of names", "required")
    _check_constants(node, fail)
    for keyword in BOUNDS & node.keys():
        _check_bound(keyword, node, fail)


def _check_constants(node: Schema, fail: Fail) -> None:
    """Raise an error for constants that no type can have, or that do not fit the type beside them."""
    if "const" in node and "enum" in node:
        raise fail("`const` beside `enum` is not supported; leave the values that fit both", "enum")
    enum: object = node.get("enum", [node.get("const")])
    if not (isinstance(enum, list) and enum):
        raise fail("`enum` must be a non-empty list", "enum")
    if any(isinstance(value, bool | float | list | dict) for value in cast("list[object]", enum)):
        raise fail("a constant must be a string, an integer or null", "enum" if "enum" in node else "const")
    for value in cast("list[object]", enum):
        if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
            text = f"the constant {value} is out of range; expected an integer of 64 bits"
            raise fail(text, "enum" if "enum" in node else "const")
    if reason := find_misplaced_constant(node):
        raise fail(reason)


def _check_bound(keyword: str, node: Schema, fail: Fail) -> None:
    """Raise an error for a bound that is no number, or that limits no value of the schema's type."""
    bound: object = node[keyword]
    is_length = keyword.startswith(("min", "max")) and not keyword.endswith("imum")
    if isinstance(bound, bool) or not isinstance(bound, int if is_length else int | float):
        raise fail(f"`{keyword}` must be {'an integer' if is_length else 'a number'}", keyword)
    if not (0 if is_length else -_LARGEST) <= bound < _LARGEST:
        raise fail(f"`{keyword}` is out of range", keyword)
    kinds = ["array"] if keyword.endswith("Items") else ["string"] if is_length else ["integer", "number"]
    if not set(kinds) & set(type_names(node)):
        raise fail(f"`{keyword}` limits nothing; expected it beside the type {' or '.join(kinds)}", keyword)


_LARGEST = 2**63
"""Bounds are below it: msgspec compares integers of 64 bits."""


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in cast("list[object]", value))


BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) | {
    "minLength", "maxLength", "minItems", "maxItems",
}  # fmt: skip
"""Keywords that limit a value."""

_IGNORED = ANNOTATIONS | {"$schema", "$id", "default", "format"}


def _check_combinations(node: Schema, at: Pointer, fail: Fail) -> None:
    """Raise an error for combinations in which the compiler would ignore one keyword."""
    keywords = node.keys() - _IGNORED
    if "$ref" in keywords and len(keywords) > 1:
        raise fail(f"`{min(keywords - {'$ref'})}` beside `$ref` is not supported", "$ref")
    for union in {"anyOf", "oneOf"} & keywords:
        if beside := keywords - {union, "type", "$defs", "definitions"}:
            raise fail(f"`{min(beside)}` beside `{union}` is not supported", union)
    if "patternProperties" in keywords:
        _check_patterns(node, fail)
    if "propertyNames" in keywords:
        _check_names(node["propertyNames"], fail)
    is_absent_member = at[-2:-1] == ("properties",) and is_never(node)
    if "not" in keywords and at[-1:] != ("additionalProperties",) and not is_absent_member:
        raise fail("`not` is supported as `{not: {}}` for a member, or for all undeclared ones", "not")
    properties: dict[str, Any] = node.get("properties", {})
    known = [name for name, member in properties.items() if not is_never(member)]
    known += [] if properties else _list_names(node.get("propertyNames"))
    if unknown := [name for name in node.get("required", []) if name not in known]:
        raise fail(f"`required` names an unknown property: {unknown[0]!r}", "required")
    others: object = node.get("additionalProperties", {})
    others = {key: value for key, value in others.items() if key not in _IGNORED} if is_schema(others) else others
    if node.get("properties") and others not in (True, False, {}, {"not": {}}):
        raise fail("a type for `additionalProperties` beside `properties` is not supported", "additionalProperties")


def _check_names(names: Any, fail: Fail) -> None:
    """Raise an error unless the names of members are any text, or some constants."""
    if is_schema(names) and _list_names(names):
        return
    keywords = names.keys() - _IGNORED if is_schema(names) else {"not"}
    if not keywords <= {"type", "enum"} or names.get("type", "string") != "string":
        raise fail("the names of members can be limited by `enum` only", "propertyNames")
    if not _are_names(names.get("enum", [])):
        raise fail("expected the names of members", "propertyNames", "enum")


def _list_names(names: Any) -> list[str]:
    """List the names of members if a schema lists them as constants."""
    if not is_schema(names):
        return []
    members: list[Any] = names.get("anyOf", [names])
    return [name for member in members if is_schema(member) for name in _constants(member) if isinstance(name, str)]


_ANY_NAME = frozenset({"", ".*", "^.*$", "^(.*)$"})


def _check_patterns(node: Schema, fail: Fail) -> None:
    """Raise an error unless there is only one pattern, which fits all names: its type is that of all members."""
    for pattern in node["patternProperties"].keys() - _ANY_NAME:
        text = "the type of a member cannot depend on a pattern; use `properties` or `additionalProperties`"
        raise fail(text, "patternProperties", pattern)
    if len(node["patternProperties"]) != 1 or {"properties", "additionalProperties"} & node.keys():
        raise fail("`patternProperties` is supported alone, and with one pattern", "patternProperties")
