"""JSON Schemas: the corrected official ones, as data of the package, and those of types that msgspec does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any

import msgspec

from mcpspec.support.attribute_docs import class_doc
from mcpspec.support.lazy import check_version
from mcpspec.support.objects import is_array, is_object, spread_union
from mcpspec.support.structs import OpenObject, declared_struct

__all__ = ["add_check", "custom_schema", "inline_definitions", "load_json_schema"]

_PREFIX = "#/$defs/"


def load_json_schema(name: str, version: str, versions: Sequence[str]) -> dict[str, Any]:
    """Return a definition of a version with all definitions that it refers to.

    Raises `LookupError` for an unknown name or version.
    """
    check_version(version, versions)
    definitions = _read(version)
    if name not in definitions:
        raise LookupError(f"{version} defines no {name!r}; known: {', '.join(sorted(definitions))}")
    needed = _find_references(name, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": _PREFIX + name,
        "$defs": {key: node for key, node in definitions.items() if key in needed},
    }


def _read(version: str) -> dict[str, Any]:
    """Return the definitions of a version, anew each time, since the caller may change them."""
    forms: dict[str, list[tuple[list[str], Any]]] = msgspec.json.decode(_read_file())
    return {name: node for name, found in forms.items() for versions, node in found if version in versions}


@cache
def _read_file() -> bytes:
    return files("mcpspec").joinpath("schemas.json").read_bytes()


def _find_references(name: str, definitions: dict[str, Any]) -> set[str]:
    """Return the names of a definition and of all definitions that it refers to."""
    found: set[str] = set()
    pending = [name]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _list_references(definitions[name])
    return found


def _list_references(node: object) -> Iterator[str]:
    if is_object(node):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith(_PREFIX):
            yield reference.removeprefix(_PREFIX)
        for inner in node.values():
            yield from _list_references(inner)
    elif is_array(node):
        for inner in node:
            yield from _list_references(inner)


def custom_schema(kind: Any, outer: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return the JSON Schema of an open object or a union, complete in itself: msgspec takes no definitions from hooks.

    Within itself, given as one of `outer`, it is described as any object or any value. Raises `NotImplementedError` for
    other types.
    """
    is_union = hasattr(kind, "__union__")
    if not is_union and not (isinstance(kind, type) and issubclass(kind, OpenObject)):
        raise NotImplementedError(f"type {kind!r} has no JSON Schema")
    if kind in outer:
        return {"title": kind.__name__, **({} if is_union else {"type": "object"})}
    schema_of = partial(_complete_schema, outer=(*outer, kind))
    if is_union:
        options = [schema_of(option) for option in spread_union(kind)]
        is_single = kind.__check__ is not None and len(options) == 1
        made = {"title": kind.__name__, **(options[0] if is_single else {"anyOf": options})}
        return add_check(made, kind.__check__)
    doc = class_doc(kind)
    return add_check({**schema_of(declared_struct(kind)), **({"description": doc} if doc else {})}, kind.__check__)


def add_check(schema: dict[str, Any], check: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the schema of a type with its check, if it has one. What refers to other types is left out."""
    if not check or any(_list_references(check)):
        return schema
    return {**schema, **check} if schema.keys().isdisjoint(check) else {**schema, "allOf": [check]}


def _complete_schema(hint: Any, outer: tuple[Any, ...]) -> dict[str, Any]:
    return inline_definitions(msgspec.json.schema(hint, schema_hook=partial(custom_schema, outer=outer)))


def inline_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its definitions in the places that refer to them."""
    kept = {key: value for key, value in schema.items() if key != "$defs"}
    inlined: dict[str, Any] = _inline(kept, schema.get("$defs", {}), ())
    return inlined


def _inline(part: Any, definitions: dict[str, Any], outer: tuple[str, ...]) -> Any:
    if is_array(part):
        return [_inline(each, definitions, outer) for each in part]
    if not is_object(part):
        return part
    reference = part.get("$ref")
    if not isinstance(reference, str):
        # A discriminator names definitions, which the result does not have.
        is_tagged = "discriminator" in part and ("anyOf" in part or "oneOf" in part)
        kept = {key: value for key, value in part.items() if not (is_tagged and key == "discriminator")}
        return {key: _inline(value, definitions, outer) for key, value in kept.items()}
    name = reference.removeprefix(_PREFIX)
    if name in outer:
        return {"type": "object"}
    rest = {key: value for key, value in part.items() if key != "$ref"}
    return _inline(definitions[name], definitions, (*outer, name)) | rest
