"""Check that the compiler knows everything in a schema, and that every keyword has a value of its kind.

What passes is in the types, or in a check of their values, or is ignored and reported (`list_ignored`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import Any, TypeAlias, cast

from mcpspec_codegen.budget import SCHEMA_STEPS, spend
from mcpspec_codegen.errors import Pointer, SchemaError
from mcpspec_codegen.identifiers import decode_name
from mcpspec_codegen.nodes import (
    ANNOTATIONS,
    CHECK_LISTS,
    CHECK_MAPS,
    CHECK_SINGLE,
    LISTS,
    MAPS,
    SINGLE,
    Schema,
    children,
    constants,
    definitions_key,
    find_misplaced_constant,
    is_never,
    is_schema,
    pointer_text,
    type_names,
    types_of_constants,
)

__all__ = ["UNEVALUATED", "check", "find_contradiction", "is_ignored", "list_ignored"]

_IGNORED = frozenset(
    {
        "$anchor", "$vocabulary", "contentEncoding", "contentMediaType", "contentSchema", "defaultSnippets",
        "deprecationMessage", "discriminator", "enumDescriptions", "errorMessage", "example", "externalDocs",
        "markdownDescription", "markdownEnumDescriptions", "patternErrorMessage", "tsEnumNames", "tsType", "xml",
    }
)  # fmt: skip
"""Keywords that do not limit values, beside those for people. They are reported."""
_REFUSED = {
    "$dynamicAnchor": "name the definition in a `$ref`",
    "$dynamicRef": "name the definition in a `$ref`",
    "$recursiveRef": "name the definition in a `$ref`",
    "nullable": "write null as one of the types",
    "unevaluatedItems": "write `items` beside `prefixItems`",
    "unevaluatedProperties": "write `additionalProperties` in an object with all properties",
}
"""Keywords that limit values and are not compiled, with what to write instead."""
UNEVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})
"""Keywords that limit nothing if they are true."""
_COUNTS = frozenset(
    {
        "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
        "maxContains",
    }
)  # fmt: skip
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_SUBSCHEMAS = MAPS | LISTS | SINGLE | CHECK_MAPS | CHECK_LISTS | CHECK_SINGLE
_OTHERS = frozenset(
    {
        "$schema", "$id", "$ref", "type", "const", "enum", "format", "pattern", "required", "default", "multipleOf",
        "uniqueItems", "dependentRequired",
    }
)  # fmt: skip
_KNOWN = ANNOTATIONS | _IGNORED | _REFUSED.keys() | _COUNTS | _NUMBERS | _SUBSCHEMAS | _OTHERS
_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
_MAX_DEPTH = 128
"""Longest pointer to a schema, in parts. What Python can recurse into depends on its version."""
_LARGEST = 2**63
"""Bounds are below it: msgspec compares integers of 64 bits."""

Fail: TypeAlias = Callable[..., SchemaError]


def is_ignored(keyword: str) -> bool:
    """Return whether a keyword does not limit values, and is for nobody whom the types are for."""
    return keyword in _IGNORED or keyword.startswith(_OF_TOOLS)


_OF_TOOLS = ("x-", "_")
"""Beginnings of the names of keywords that some tool has added, such as `_enum` for values among others."""


def check(document: Any, file: str, others: Iterable[str] = ()) -> None:
    """Raise `SchemaError` unless the compiler knows everything in a document.

    `others` are the names of definitions outside of the document, to which its references may lead.
    """
    if not is_schema(document):
        raise SchemaError(file, "", "expected a JSON object")
    definitions: object = document.get(definitions_key(document))
    if not is_schema(definitions) or not definitions:
        raise SchemaError(file, "", "expected a schema with `$defs` or `definitions`")
    _Checker({*definitions, *others}, definitions_key(document), file).check(document, ())


def list_ignored(document: Schema, used: Collection[str] = ()) -> list[str]:
    """Describe the keywords of a document that the types ignore, though no reader of the schema would.

    Those of definitions that are `used` otherwise are left out.
    """
    found: dict[str, list[str]] = {}
    for at, keyword in _ignored_keywords(document, ()):
        if keyword in used and len(at) == _IN_DEFINITION:
            continue
        found.setdefault(keyword, []).append(pointer_text(at))
    return [
        f"ignored: `{keyword}` at {places[0]}" + (f" and {len(places) - 1} more" if len(places) > 1 else "")
        for keyword, places in sorted(found.items())
    ]


_IN_DEFINITION = 3
"""Length of a pointer to a keyword of a definition."""


def _ignored_keywords(node: Any, at: Pointer) -> Iterator[tuple[Pointer, str]]:
    if is_schema(node):
        yield from (((*at, key), key) for key in node if is_ignored(key))
        for below, child in children(node, with_checks=True):
            yield from _ignored_keywords(child, (*at, *below))


class _Checker:
    """The checks of one document, in which the definitions have these names."""

    def __init__(self, names: set[str], key: str, file: str) -> None:
        self.names = names
        self.key = key
        self.file = file

    def check(self, node: Any, at: Pointer, *, loose: bool = False) -> None:
        """Check a schema and those below it. `loose` ones are only compared with values, and may name no type."""

        def fail(reason: str, *below: str | int) -> SchemaError:
            return SchemaError(self.file, pointer_text((*at, *below)), reason)

        spend(SCHEMA_STEPS, at, self.file)
        if len(at) > _MAX_DEPTH:
            raise SchemaError(self.file, "", "nested too deeply")
        if isinstance(node, bool):
            if node or loose or at[-1:] in (("additionalProperties",), ("items",)) or at[-2:-1] == ("properties",):
                return
            raise fail("no value fits `false`; it is supported for members, items, and members without a name")
        if not is_schema(node):
            raise fail(f"expected a schema, got {type(node).__name__}")
        for keyword, value in node.items():
            _check_shape(keyword, value, fail)
        self._check_reference(node, fail)
        _check_values(node, fail)
        is_member = at[-2:-1] == ("properties",)
        if not loose:
            _check_limits(node, fail)
            _check_combinations(node, fail)
        names = _add_nested(self.names, node) if at else self.names
        below = self if names is self.names else _Checker(names, self.key, self.file)
        for keys, child in children(node, with_checks=True):
            if isinstance(child, list) and keys[0] == "dependencies":
                continue
            is_check = keys[0] in _COMPARED or (keys[0] == "not" and not (is_member and is_never(node)))
            below.check(child, (*at, *keys), loose=loose or is_check)

    def _check_reference(self, node: Schema, fail: Fail) -> None:
        if "$ref" not in node:
            return
        ref, prefix = node["$ref"], f"#/{self.key}/"
        if not (isinstance(ref, str) and ref.startswith(prefix)):
            hint = f"; expected `{prefix}…`, so name there what it leads to" if self.names else ""
            raise fail(f"`$ref` leads to no definition: {ref!r}{hint}", "$ref")
        if not {ref.removeprefix(prefix), decode_name(ref.removeprefix(prefix))} & self.names:
            raise fail(f"`$ref` leads to no definition: {ref!r}", "$ref")


_COMPARED = CHECK_MAPS | CHECK_LISTS | CHECK_SINGLE | {"patternProperties", "propertyNames"}


def _add_nested(names: set[str], node: Schema) -> set[str]:
    """Return the names of definitions with those that a schema contains."""
    nested = [node[key] for key in ("$defs", "definitions") if key in node]
    return names.union(*nested) if nested else names


def _check_shape(keyword: str, value: object, fail: Fail) -> None:
    """Raise an error for an unknown keyword, or for one whose schemas are not in a map, a list or by themselves."""
    if keyword in _REFUSED and not (keyword in UNEVALUATED and value is True):
        raise fail(f"`{keyword}` is not supported; {_REFUSED[keyword]}", keyword)
    if keyword not in _KNOWN and not keyword.startswith(_OF_TOOLS):
        close = get_close_matches(keyword, _KNOWN - _REFUSED.keys(), 1)
        hint = f"did you mean `{close[0]}`?" if close else "one of your own has a name that begins with `x-`"
        raise fail(f"unknown keyword `{keyword}`; {hint}", keyword)
    if keyword not in _SUBSCHEMAS:
        return
    is_map, is_list = keyword in MAPS | CHECK_MAPS, keyword in LISTS | CHECK_LISTS
    kinds: tuple[type, ...] = (dict,) if is_map else (list,) if is_list else (dict, bool)
    if not isinstance(value, (*kinds, list) if keyword == "items" else kinds):
        raise fail(f"`{keyword}` has the wrong type", keyword)
    if is_list and not value:
        raise fail(f"`{keyword}` is empty; expected at least one schema", keyword)


def _check_values(node: Schema, fail: Fail) -> None:
    """Raise an error if a keyword has a value of the wrong type."""
    if node.keys() <= {"$ref"}:
        return
    types: object = node.get("type", "string")
    if not _are_names([types] if isinstance(types, str) else types) or any(t not in _TYPES for t in type_names(node)):
        raise fail(f"unknown type {types!r}", "type")
    if types == []:
        raise fail("`type` is empty; expected at least one type", "type")
    if not _are_names(node.get("required", [])):
        raise fail("`required` must be a list of names", "required")
    dependent: object = node.get("dependentRequired", {})
    if not (is_schema(dependent) and all(_are_names(names) for names in dependent.values())):
        raise fail("`dependentRequired` must map names to lists of names", "dependentRequired")
    if not isinstance(node.get("uniqueItems", True), bool):
        raise fail("`uniqueItems` must be true or false", "uniqueItems")
    for pattern in [node["pattern"]] if "pattern" in node else []:
        _check_pattern(pattern, fail, "pattern")
    for pattern in node.get("patternProperties", ()):
        _check_pattern(pattern, fail, "patternProperties", pattern)
    _check_constants(node, fail)
    for keyword in sorted((_COUNTS | _NUMBERS | {"multipleOf"}) & node.keys()):
        _check_number(keyword, node[keyword], fail)


def _check_pattern(pattern: object, fail: Fail, *below: str) -> None:
    if not isinstance(pattern, str):
        raise fail(f"`{below[0]}` must be a text", *below)
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise fail(f"not a pattern that Python understands: {error}", *below) from error


def _check_constants(node: Schema, fail: Fail) -> None:
    """Raise an error for constants that do not fit the type beside them, or no number of msgspec."""
    if "const" in node and "enum" in node:
        raise fail("`const` beside `enum` is not supported; leave the values that fit both", "enum")
    if not isinstance(node.get("enum", [None]), list) or node.get("enum") == []:
        raise fail("`enum` must be a non-empty list", "enum")
    for value in constants(node) or ():
        if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
            text = f"the constant {value} is out of range; expected an integer of 64 bits"
            raise fail(text, "enum" if "enum" in node else "const")
    if reason := find_misplaced_constant(node):
        raise fail(reason)


def _check_number(keyword: str, value: object, fail: Fail) -> None:
    is_count = keyword in _COUNTS
    if isinstance(value, float) and value.is_integer() and is_count:
        raise fail(f"`{keyword}` must be an integer, without a decimal point", keyword)
    if isinstance(value, bool) or not isinstance(value, int if is_count else int | float):
        raise fail(f"`{keyword}` must be {'an integer' if is_count else 'a number'}", keyword)
    if not (0 if is_count else -_LARGEST) <= value < _LARGEST or (keyword == "multipleOf" and value <= 0):
        raise fail(f"`{keyword}` is out of range", keyword)


_LIMITED = {
    **dict.fromkeys(("minLength", "maxLength", "pattern"), ("string",)),
    **dict.fromkeys(("minItems", "maxItems", "uniqueItems", "contains", "prefixItems"), ("array",)),
    **dict.fromkeys(("minProperties", "maxProperties", "dependentRequired", "dependentSchemas"), ("object",)),
    **dict.fromkeys((*_NUMBERS, "multipleOf"), ("integer", "number")),
}
"""Keyword → the types whose values it limits."""


def _check_limits(node: Schema, fail: Fail) -> None:
    """Raise an error for a keyword that limits no value of the schema's type, and for one that excludes all."""
    if len(node) == 1 and not node.keys().isdisjoint(("type", "$ref", "const")):
        return
    has_type = "type" in node or not {"$ref", "anyOf", "oneOf", "allOf"} & node.keys()
    for keyword in sorted(_LIMITED.keys() & node.keys()) if has_type else ():
        kinds = _LIMITED[keyword]
        if not set(kinds) & ({*type_names(node)} or types_of_constants(node)):
            raise fail(f"`{keyword}` limits nothing; expected it beside the type {' or '.join(kinds)}", keyword)
    for keyword, needed in (("then", "if"), ("else", "if"), ("minContains", "contains"), ("maxContains", "contains")):
        if keyword in node and needed not in node:
            raise fail(f"`{keyword}` limits nothing; expected it beside `{needed}`", keyword)
    if (found := find_contradiction(node)) is not None:
        raise fail(found[1], found[0])


_PAIRS = [(f"min{noun}", f"max{noun}") for noun in ("Length", "Items", "Properties", "Contains")]


def find_contradiction(node: Schema) -> tuple[str, str] | None:
    """Find a keyword that excludes what another one requires, so that no value fits. Also describe the fault."""
    for least, most in _PAIRS:
        if least in node and most in node and node[least] > node[most]:
            return least, f"`{least}` {node[least]} is more than `{most}` {node[most]}: no value fits"
    for least in ("minimum", "exclusiveMinimum"):
        for most in ("maximum", "exclusiveMaximum"):
            if least in node and most in node and _is_empty(node, least, most):
                return least, f"no value fits `{least}` {node[least]} beside `{most}` {node[most]}"
    if len({*node.get("required", [])}) > node.get("maxProperties", _LARGEST):
        return "maxProperties", f"`maxProperties` is {node['maxProperties']}, and more members are required"
    return None


def _is_empty(node: Schema, least: str, most: str) -> bool:
    """Return whether no number is between two bounds."""
    is_exclusive = [bound.startswith("exclusive") for bound in (least, most)]
    low, high = node[least], node[most]
    if {*type_names(node)} - {"null"} == {"integer"}:
        low = -(-low // 1) + (is_exclusive[0] and low == low // 1)
        high = high // 1 - (is_exclusive[1] and high == high // 1)
        return bool(low > high)
    return bool(low > high or (low == high and any(is_exclusive)))


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in cast("list[object]", value))


def _check_combinations(node: Schema, fail: Fail) -> None:
    """Raise an error for what is most likely a mistake: a required member without a schema."""
    properties: dict[str, Any] = node.get("properties", {})
    names = node.get("propertyNames", {})
    limited = constants(names) if is_schema(names) else None
    if is_schema(names) and limited is None and all(map(is_schema, names.get("anyOf", [{}]))):
        members = [constants(member) for member in names.get("anyOf", ())]
        limited = None if not members or None in members else [name for found in members for name in found or ()]
    if not (properties or limited) or "$ref" in node or "allOf" in node:
        return
    known = [name for name, member in properties.items() if not is_never(member)] or limited or []
    if unknown := [name for name in node.get("required", []) if name not in known]:
        text = f"`required` names an unknown property: {unknown[0]!r}; declare it, as `{{}}` for any value"
        raise fail(text, "required")
