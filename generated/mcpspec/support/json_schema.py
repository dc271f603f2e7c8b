"""The corrected official schemas, as data of the package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from mcpspec.support.lazy import check_version
from mcpspec.support.objects import is_array, is_object

__all__ = ["load_json_schema"]

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
