"""Estimates of the time that a validator may take for a schema, before the schema is used.

A schema of a server may keep a client's validator busy, or fill its memory. jsonschema-rs 0.60 takes time that doubles
with each definition in a chain such as `{"allOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}]}`. Measured: with 28
definitions, which are 2 KB of JSON, one check takes 4.3 s, and with 40 it would take hours. With `anyOf` in place of
`allOf`, 18 definitions make one explanation of an error take 15 s and 2.3 GB. The estimate rejects them in less than
1 ms, and adds 0.03 ms to the compilation of a small schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin

from typedmcp_schemas.definitions import JsonSchema
from typedmcp_schemas.error_text import format_path_part, format_value
from typedmcp_schemas.json_types import is_array, is_object

__all__ = [
    "META_SCHEMAS", "ExternalReferenceError", "SchemaCost", "SchemaPath", "SchemaRejectedError",
    "UnsupportedDialectError", "estimate_cost", "format_path",
]  # fmt: skip

SchemaPath: TypeAlias = tuple[str | int, ...]

META_SCHEMAS: Final = "//json-schema.org/draft"
"""The beginning of the addresses of the drafts' own schemas, without the scheme."""

_MAX_DEPTH: Final = 150
"""Schemas within one another, references followed."""

_LIST_KEYWORDS: Final = ("allOf", "anyOf", "oneOf")
_SCHEMA_KEYWORDS: Final = (
    "not", "if", "then", "else", "additionalProperties", "unevaluatedProperties", "propertyNames", "items",
    "additionalItems", "unevaluatedItems", "contains", "contentSchema",
)  # fmt: skip
_MAP_KEYWORDS: Final = ("patternProperties", "dependentSchemas", "dependencies")
_ITEM_KEYWORDS: Final = ("prefixItems", "items")
"""Keywords with a list of schemas, of which only one applies to a value."""
_REFERENCE_KEYWORDS: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class SchemaRejectedError(ValueError):
    """A schema that cannot be used. `path` leads to the keyword that is the reason."""

    def __init__(self, path: SchemaPath, reason: str) -> None:
        super().__init__(f"{format_path('', path).removeprefix('.')}: {reason}" if path else reason)
        self.path = path
        self.reason = reason

    def place(self, root: str) -> str:
        """Return the path as text, after the name of the schema."""
        return format_path(root, self.path)


class ExternalReferenceError(SchemaRejectedError):
    """A schema that refers to another document, which is not fetched."""


class UnsupportedDialectError(SchemaRejectedError):
    """A schema that names a dialect of JSON Schema that is not supported, in `$schema`."""


def format_path(root: str, path: SchemaPath) -> str:
    """Return a path as text, after the name of the root: `outputSchema.items.$ref`."""
    return root + "".join(map(format_path_part, path))


@dataclass(frozen=True, slots=True)
class SchemaCost:
    """The work that a validator has with a schema, for a value and one path below it."""

    schemas: int = 0
    """Schemas that apply."""
    cycles: int = 0
    """References that lead back to a schema above. To explain an error, the validator follows all of them."""
    patterns: int = 0
    """Patterns that are matched."""

    def __add__(self, other: SchemaCost) -> SchemaCost:
        sums = (self.schemas + other.schemas, self.cycles + other.cycles, self.patterns + other.patterns)
        return SchemaCost(*sums)

    def __or__(self, other: SchemaCost) -> SchemaCost:
        schemas, cycles = max(self.schemas, other.schemas), max(self.cycles, other.cycles)
        return SchemaCost(schemas, cycles, max(self.patterns, other.patterns))


_COMPARISON_COST: Final = 32
"""Schemas that take as long as a value in a choice of `enum` that is compared by itself."""
_META_SCHEMA_COST: Final = SchemaCost(100, 2)
"""The cost of a reference to a draft's own schema."""


def estimate_cost(schema: JsonSchema) -> SchemaCost:
    """Estimate the cost of a schema.

    Raises `SchemaRejectedError` for references that lead nowhere or outside the schema, and for schemas that are nested
    too deeply.
    """
    return _CostEstimator(schema).estimate(schema, ())


class _CostEstimator:
    """Adds up the cost of a schema, each part once."""

    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self._address = urldefrag(str(root.get("$id", root.get("id", "")))).url
        self._anchors: dict[str, list[Any]] = {}
        for name, schema in _anchors(root):
            self._anchors.setdefault(name, []).append(schema)
        self._costs: dict[int, SchemaCost] = {}
        """Costs by the id of the schema."""
        self._enclosing: set[int] = set()
        """Ids of the schemas whose cost is being added up."""

    def estimate(self, schema: object, path: SchemaPath) -> SchemaCost:
        if not is_object(schema):
            return SchemaCost(1)
        if schema is not self._root:
            _reject_address(schema, path)
        key = id(schema)
        if key in self._enclosing:
            return SchemaCost(1, 1)
        if key not in self._costs:
            if len(self._enclosing) == _MAX_DEPTH:
                raise SchemaRejectedError((), "nested too deeply")
            self._enclosing.add(key)
            cost = sum(self._parts(schema, path), SchemaCost(1))
            if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
                cost += cost  # these keywords evaluate the others once more
            self._enclosing.discard(key)
            self._costs[key] = cost
        return self._costs[key]

    def _parts(self, schema: JsonSchema, path: SchemaPath) -> Iterator[SchemaCost]:
        for keyword, value in schema.items():
            here = (*path, keyword)
            if keyword == "pattern" and isinstance(value, str):
                yield SchemaCost(patterns=1)
            elif keyword == "patternProperties" and is_object(value):
                yield SchemaCost(patterns=2 * len(value))  # `additionalProperties` matches them once more
            elif keyword == "const" or (keyword == "enum" and is_array(value)):
                yield SchemaCost(_COMPARISON_COST * _slow_comparisons(value if keyword == "enum" else [value]))
            if keyword in _REFERENCE_KEYWORDS and isinstance(value, str):
                yield self._reference(value, here)
            elif (keyword == "properties" and is_object(value)) or (keyword in _ITEM_KEYWORDS and is_array(value)):
                largest = SchemaCost()
                for cost in self._each(value, here):
                    largest |= cost
                yield largest
            elif (keyword in _LIST_KEYWORDS and is_array(value)) or (keyword in _MAP_KEYWORDS and is_object(value)):
                yield from self._each(value, here)
            elif keyword in _SCHEMA_KEYWORDS:
                yield self.estimate(value, here)

    def _each(self, schemas: dict[str, Any] | list[Any], path: SchemaPath) -> Iterator[SchemaCost]:
        for name, schema in schemas.items() if is_object(schemas) else enumerate(schemas):
            yield self.estimate(schema, (*path, name))

    def _reference(self, reference: str, path: SchemaPath) -> SchemaCost:
        document, fragment = urldefrag(urljoin(self._address, reference) if self._address else reference)
        if reference.startswith("#") or document == self._address:
            return self.estimate(self._resolve(unquote(fragment), path), path)
        if document.partition(":")[2].startswith(META_SCHEMAS):
            return _META_SCHEMA_COST
        text = f"refers to {format_value(reference)}, which is outside it and is not fetched"
        raise ExternalReferenceError(path, text)

    def _resolve(self, fragment: str, path: SchemaPath) -> Any:
        """Return the schema that a JSON pointer or the name of an anchor refers to."""
        if fragment and not fragment.startswith("/"):
            schemas = self._anchors.get(fragment, ())
            if len(schemas) == 1:
                return schemas[0]
            problem = "is ambiguous" if schemas else "does not exist"
            raise SchemaRejectedError(path, f"refers to {format_value(fragment)}, which {problem}")
        schema: Any = self._root
        for part in fragment.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if is_object(schema) and name in schema:
                schema = schema[name]
            elif is_array(schema) and name.isdecimal() and int(name) < len(schema):
                schema = schema[int(name)]
            else:
                raise SchemaRejectedError(path, f"refers to {format_value(fragment)}, which does not exist")
            _reject_address(schema, path)
        return schema


def _slow_comparisons(choices: list[Any]) -> int:
    """Return how many values are compared one by one: numbers beside other kinds, and what is in arrays and objects.

    The validator finds strings at once, and integers among integers. A float takes as long as eight others.
    """
    if {type(choice) for choice in choices} <= {int, type(None)}:
        return 0
    left = [choice for choice in choices if type(choice) in (dict, list, float, int)]
    count = 0
    while left:
        value = left.pop()
        count += 8 if isinstance(value, float) else 1
        left.extend(value.values() if is_object(value) else value if is_array(value) else ())
    return count


def _reject_address(schema: object, path: SchemaPath) -> None:
    """Reject an inner schema with an `$id`: references in it would be relative to that."""
    if is_object(schema) and isinstance(schema.get("$id"), str):
        raise SchemaRejectedError((*path, "$id"), "inner schemas with an $id are not supported")


def _anchors(root: object) -> Iterator[tuple[str, Any]]:
    """Yield the name and the schema of each anchor."""
    waiting: list[Any] = [root]
    while waiting:
        schema = waiting.pop()
        if is_object(schema):
            waiting += schema.values()
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(name := schema.get(keyword), str):
                    yield name, schema
        elif is_array(schema):
            waiting += schema
