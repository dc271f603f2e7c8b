"""Names and schemas of tools that hosts of language models refuse, or that models learn little from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from typedmcp_schemas.ecma_patterns import to_ecma_pattern
from typedmcp_schemas.json_types import is_array, is_object
from typedmcp_schemas.keywords import LIST_KEYWORDS, MAP_KEYWORDS, SCHEMA_KEYWORDS

__all__ = [
    "MAX_NAME", "Finding", "Rule", "SchemaRefusal", "check_collisions", "check_descriptions", "check_schemas",
    "check_tool_name", "find_invalid_patterns", "find_refusals", "find_undescribed", "find_wrong_defaults",
    "replace_forbidden",
]  # fmt: skip

MAX_NAME: Final = 64
"""Characters of a tool's name, in the APIs of OpenAI, Anthropic and Gemini."""
_FORBIDDEN: Final = re.compile(r"[^a-zA-Z0-9_-]")
_PROPERTY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_ALL: Final = ("openai", "anthropic", "gemini")
_AT_ROOT: Final = ("anyOf", "oneOf", "allOf", "not", "enum")


Rule: TypeAlias = Literal[
    "name", "host-name", "name-collision", "host-schema", "header", "default", "description", "completion", "page"
]
"""The rule that is broken; `docs/cli.md` describes them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about a tool, or another item of a server."""

    rule: Rule
    severity: Literal["error", "warning"]
    """`error` if clients or hosts refuse the item, `warning` if it works less well than it could."""
    item: str
    """The kind of the item and its name or URI, such as `tool add`."""
    text: str
    """The fault, and how to write it."""
    hosts: tuple[str, ...] = ()
    """The APIs whose hosts refuse it; empty if it does not depend on the host."""

    def __str__(self) -> str:
        hosts = f" ({', '.join(self.hosts)})" if self.hosts else ""
        return f"{self.item}: {self.severity}: {self.text}{hosts} [{self.rule}]"


class SchemaRefusal(NamedTuple):
    """A part of a schema that hosts refuse."""

    path: str
    """The place in the schema."""
    text: str
    hosts: tuple[str, ...]
    """The APIs whose hosts refuse it; `typescript` for validators in JavaScript."""


def replace_forbidden(name: str) -> str:
    """Return a tool's name with `_` for characters that an API does not allow, and before a digit or `-`."""
    made = _FORBIDDEN.sub("_", name)
    return made if made[:1].isalpha() or made[:1] == "_" else f"_{made}"


def check_tool_name(name: str, *, is_valid: bool) -> Iterator[Finding]:
    """Yield the finding about a tool's name: it is not valid in the protocol, or not for the APIs as it is."""
    if not is_valid:
        text = "the name is not 1 to 128 of the characters A-Z a-z 0-9 _ - ."
        yield Finding("name", "error", f"tool {name}", text)
    elif len(name) > MAX_NAME:
        text = f"the name has {len(name)} characters; APIs allow {MAX_NAME}"
        yield Finding("host-name", "error", f"tool {name}", text, _ALL)
    elif (made := replace_forbidden(name)) != name:
        yield Finding("host-name", "warning", f"tool {name}", f"hosts have to write the name as {made}", _ALL)


def check_collisions(names: Iterable[str]) -> Iterator[Finding]:
    """Yield the findings about names of tools that the APIs do not tell apart."""
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(replace_forbidden(name)[:MAX_NAME], name)
        if other != name:
            yield Finding("name-collision", "error", f"tool {name}", f"in the APIs of hosts it has the name of {other}")


def check_schemas(
    item: str, description: str | None, input_schema: Mapping[str, Any], output_schema: Mapping[str, Any] | None
) -> Iterator[Finding]:
    """Yield the findings about the schemas of a tool, and about what they do not say."""
    found = [("input", each) for each in find_refusals(input_schema)]
    found += [("output", each) for each in find_invalid_patterns(output_schema or {})]
    for name, refusal in found:
        place = f"{refusal.path}: " if refusal.path else ""
        # Hosts of one API alone often convert. One output schema breaks the whole list of TypeScript's SDK 1.x.
        is_error = len(refusal.hosts) > 1 or name == "output"
        severity: Literal["error", "warning"] = "error" if is_error else "warning"
        yield Finding("host-schema", severity, item, f"{name} schema: {place}{refusal.text}", refusal.hosts)
    for text in find_wrong_defaults(input_schema):
        yield Finding("default", "warning", item, text)
    yield from check_descriptions(item, description, find_undescribed(input_schema))


def check_descriptions(item: str, description: str | None, undescribed: Iterable[str] = ()) -> Iterator[Finding]:
    """Yield the findings about an item without a description, and about its parameters without one."""
    if not description:
        yield Finding("description", "warning", item, "it has no description; write a docstring")
    for name in undescribed:
        text = f"the parameter {name} has no description; write it in the docstring, or as Annotated[…, text]"
        yield Finding("description", "warning", item, text)


def find_invalid_patterns(schema: Mapping[str, Any]) -> Iterator[SchemaRefusal]:
    """Yield the patterns of a schema with which validators in JavaScript refuse the whole schema."""
    for path, each in _schemas(schema, ""):
        pattern = each.get("pattern") if is_object(each) else None
        if isinstance(pattern, str) and to_ecma_pattern(pattern) != pattern:
            made = to_ecma_pattern(pattern)
            hint = f"; write {made}" if made is not None else ""
            yield SchemaRefusal(path, f"a pattern that JavaScript does not read: {pattern}{hint}", ("typescript",))


def find_refusals(schema: Mapping[str, Any]) -> Iterator[SchemaRefusal]:
    """Yield the faults for hosts that pass the input schema of a tool on as it is."""
    for keyword in _AT_ROOT:
        if keyword in schema:
            yield SchemaRefusal("", f"{keyword} at the root of the schema", ("openai", "anthropic"))
    properties = schema.get("properties")
    for name in properties if is_object(properties) else ():
        if not _PROPERTY.fullmatch(name):
            text = f"the parameter {name!r} is not 1 to 64 of the characters A-Z a-z 0-9 _ - ."
            yield SchemaRefusal("", text, ("anthropic",))
    for path, each in _schemas(schema, ""):
        yield from _refusals_of(path, each)
    yield from find_invalid_patterns(schema)


def find_wrong_defaults(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults of defaults that models would read in a schema, and that it would reject as arguments.

    None without jsonschema-rs.
    """
    from typedmcp_schemas.validate import SchemaRejectedError, can_validate, compile_schema

    properties = schema.get("properties")
    if not is_object(properties) or not can_validate():
        return
    definitions = {"$defs": schema.get("$defs", {})}
    for name, inner in properties.items():
        if not is_object(inner) or "default" not in inner:
            continue
        place = f"the default of {name}"
        try:
            error = compile_schema({**definitions, **inner}, is_trusted=True).find_error(inner["default"], place)
        except SchemaRejectedError as rejected:
            error = f"{place} cannot be checked: {rejected}"
        if error is not None:
            yield error + ("; write T | None where None is meant" if inner["default"] is None else "")


def find_undescribed(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the properties of a schema that have no description."""
    properties = schema.get("properties")
    if not is_object(properties):
        return []
    return [name for name, inner in properties.items() if not (is_object(inner) and inner.get("description"))]


def _refusals_of(path: str, schema: object) -> Iterator[SchemaRefusal]:
    if not is_object(schema):
        yield SchemaRefusal(path, "a boolean schema; write {} for true", _ALL)
        return
    kinds: Any = schema.get("type", ())
    if "array" in ([kinds] if isinstance(kinds, str) else kinds) and "items" not in schema:
        yield SchemaRefusal(path, "an array without items; write items: {} for any", _ALL)
    parts = schema.get("prefixItems")
    if is_array(parts) and not len(parts) == schema.get("minItems") == schema.get("maxItems"):
        yield SchemaRefusal(path, "a tuple without minItems and maxItems, of which AJV warns", ("typescript",))
    if "$ref" in schema:
        yield SchemaRefusal(path, "a reference", ("gemini",))
    if is_array(kinds):
        yield SchemaRefusal(path, "a list of types; write anyOf", ("gemini",))
    if "const" in schema:
        yield SchemaRefusal(path, "const; write enum with one value", ("gemini",))
    choices = schema.get("enum")
    if is_array(choices) and not all(isinstance(choice, str) for choice in choices):
        yield SchemaRefusal(path, "an enum of other values than strings", ("gemini",))


def _schemas(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield a schema and the schemas within it, with their places."""
    yield path, schema
    if not is_object(schema):
        return
    for key, value in schema.items():
        if (key in MAP_KEYWORDS or key == "$defs") and is_object(value):
            for name, inner in value.items():
                yield from _schemas(inner, f"{path}/{key}/{name}")
        elif key in LIST_KEYWORDS and is_array(value):
            for index, inner in enumerate(value):
                yield from _schemas(inner, f"{path}/{key}/{index}")
        elif key in SCHEMA_KEYWORDS and (is_object(value) or key == "items"):
            yield from _schemas(value, f"{path}/{key}")
