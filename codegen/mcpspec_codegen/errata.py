"""Asserted patches: defects of upstream's JSON files against upstream's TypeScript.

Every erratum states the value that it expects to find. Once upstream has fixed a defect, the erratum no
longer matches and generation stops, so no patch outlives its cause.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec

from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import Schema, resolve_pointer
from mcpspec_codegen.source import read_json

__all__ = ["Erratum", "apply", "carry_over", "check_versions", "load"]


class Erratum(TypedDict):
    """A patch of one value."""

    version: str
    pointer: Annotated[str, msgspec.Meta(pattern="^/")]
    """The place of the value, as a JSON pointer."""
    old: Any
    new: Any
    reason: str
    upstream: str
    """The place of the right value in upstream's files."""


def load(folder: Path) -> list[Erratum]:
    """Read `errata.json`. Raises `SchemaError` for an entry that lacks a member."""
    return read_json(folder / "errata.json", list[Erratum])


def check_versions(entries: list[Erratum], versions: set[str], file: str) -> None:
    """Raise `SchemaError` for an erratum of a version that is not pinned: it would never be checked."""
    for index, entry in enumerate(entries):
        if entry["version"] not in versions:
            raise SchemaError(file, f"/{index}/version", f"no schema is pinned for {entry['version']!r}")


def apply(schema: Schema, entries: list[Erratum], version: str, file: str) -> Schema:
    """Return a copy of a schema with the errata of its version applied."""
    schema = copy.deepcopy(schema)
    for entry in entries:
        if entry["version"] == version:
            _apply_one(schema, entry, file)
    return schema


def _apply_one(schema: Schema, entry: Erratum, file: str) -> None:
    pointer = entry["pointer"]
    name = f"errata.json entry {entry['version']} {pointer}"
    try:
        holder, key = resolve_pointer(schema, pointer)
    except (LookupError, TypeError, ValueError) as error:
        raise SchemaError(file, pointer, f"{name}: the place no longer exists; delete or move the entry") from error
    found = holder[key]
    if found == entry["new"]:
        raise SchemaError(file, pointer, f"{name}: upstream has fixed it; delete the entry")
    if found != entry["old"]:
        raise SchemaError(file, pointer, f"{name}: expected {entry['old']!r}, found {found!r}; review the entry")
    holder[key] = copy.deepcopy(entry["new"])


def carry_over(schema: Schema, entries: list[Erratum], version: str) -> list[Erratum]:
    """Propose errata for a schema: those of other versions whose defect this schema has, too."""
    known = {entry["pointer"] for entry in entries if entry["version"] == version}
    proposals: dict[str, Erratum] = {}
    for entry in entries:
        pointer = entry["pointer"]
        if entry["version"] == version or pointer in known:
            continue
        try:
            holder, key = resolve_pointer(schema, pointer)
        except (LookupError, TypeError, ValueError):
            continue
        if holder[key] == entry["old"]:
            proposals[pointer] = {**entry, "version": version}
    return list(proposals.values())
