"""Asserted patches: defects of upstream's JSON files against upstream's TypeScript.

Every entry states the value it expects to find. Once upstream has mended a defect, the entry no
longer matches and generation stops, so that no patch outlives its cause.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec

from codegen.errors import SchemaError
from codegen.nodes import Schema, resolve_pointer
from codegen.source import read_json

__all__ = ["Entry", "apply", "carry_over", "check_versions", "load"]


class Entry(TypedDict):
    """One patch."""

    version: str
    pointer: Annotated[str, msgspec.Meta(pattern="^/")]
    """Where it is, as a JSON pointer."""
    old: Any
    new: Any
    reason: str
    upstream: str
    """Where the right value stands."""


def load(folder: Path) -> list[Entry]:
    """The entries of `errata.json`, of which each has all its members."""
    return read_json(folder / "errata.json", list[Entry])


def check_versions(entries: list[Entry], versions: set[str], file: str) -> None:
    """An entry of a version that is not pinned would never be checked, and outlive its cause."""
    for index, entry in enumerate(entries):
        if entry["version"] not in versions:
            raise SchemaError(file, f"/{index}/version", f"no schema is pinned for {entry['version']!r}")


def apply(schema: Schema, entries: list[Entry], version: str, file: str) -> Schema:
    """The schema with the entries of its version applied."""
    schema = copy.deepcopy(schema)
    for entry in entries:
        if entry["version"] == version:
            _apply_one(schema, entry, file)
    return schema


def _apply_one(schema: Schema, entry: Entry, file: str) -> None:
    pointer = entry["pointer"]
    name = f"errata.json entry {entry['version']} {pointer}"
    try:
        holder, key = resolve_pointer(schema, pointer)
    except (LookupError, TypeError, ValueError) as error:
        raise SchemaError(file, pointer, f"{name}: the place is gone; delete or move the entry") from error
    found = holder[key]
    if found == entry["new"]:
        raise SchemaError(file, pointer, f"{name}: upstream has fixed it; delete the entry")
    if found != entry["old"]:
        raise SchemaError(file, pointer, f"{name}: expected {entry['old']!r}, found {found!r}; review the entry")
    holder[key] = copy.deepcopy(entry["new"])


def carry_over(schema: Schema, entries: list[Entry], version: str) -> list[Entry]:
    """Entries of other versions whose old value stands in this schema as well: proposals for it."""
    known = {entry["pointer"] for entry in entries if entry["version"] == version}
    proposals: dict[str, Entry] = {}
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
