"""Asserted corrections: defects of upstream's JSON files against upstream's TypeScript.

An erratum names a definition and the defect in it, wherever in the definition it is. It lists the versions that have
the defect. Generation stops if a listed version no longer has it, so no correction outlives its cause. `update` keeps
the lists up to date when a schema is imported.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.nodes import Pointer, Schema, children, definitions_key, is_schema, pointer_text
from mcpspec_codegen.source import read_json

__all__ = ["Erratum", "apply", "check_versions", "list_unreviewed", "load", "remove_version", "save", "update"]


class Erratum(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A correction of one value."""

    definition: str
    pointer: Annotated[str, msgspec.Meta(pattern="^(/|$)")] = ""
    """The part of the definition that has the defect, as a JSON pointer. Needed if the value stands elsewhere, too."""
    keyword: str
    wrong: Any
    right: Any
    reason: str
    upstream: str
    """The place of the right value in upstream's files."""
    versions: list[str]
    """The versions that have the defect."""
    carried_over: list[str] = []
    """Versions that have the defect and were listed by `make bump`: a person looks, and moves them to `versions`."""
    unclear: list[str] = []
    """Versions in which the value is neither wrong nor right. The erratum is not applied to them: a person decides."""

    @property
    def name(self) -> str:
        return f"{self.definition}{self.pointer}, `{self.keyword}`"

    @property
    def affected(self) -> list[str]:
        """The versions that the erratum is applied to."""
        return [*self.versions, *self.carried_over]

    @property
    def mentioned(self) -> list[str]:
        return [*self.affected, *self.unclear]


class _Finding(NamedTuple):
    """The place of a defect in a schema, or the reason why there is none to correct."""

    at: Pointer | None = None
    reason: str = ""
    is_mended: bool = False


def load(folder: Path) -> list[Erratum]:
    """Read `errata.json`. Raises `SchemaError` for an entry that lacks a member or has an unknown one."""
    return read_json(folder / "errata.json", list[Erratum])


def save(entries: list[Erratum], folder: Path) -> None:
    """Write `errata.json`."""
    text = json.dumps(msgspec.to_builtins(entries), indent=2, ensure_ascii=False) + "\n"
    (folder / "errata.json").write_text(text, encoding="utf-8")


def check_versions(entries: list[Erratum], versions: set[str], file: str) -> None:
    """Raise `SchemaError` for a version that is listed twice, or is not pinned: its erratum would never be checked."""
    for index, entry in enumerate(entries):
        listed = entry.mentioned
        for version in listed:
            if version not in versions:
                raise SchemaError(file, f"/{index}", f"{entry.name}: no schema is pinned for {version!r}; remove it")
            if listed.count(version) > 1:
                raise SchemaError(file, f"/{index}", f"{entry.name}: {version} is listed twice; remove one")


def apply(schema: Schema, entries: list[Erratum], version: str, file: str) -> Schema:
    """Return a copy of a schema with the errata of its version applied.

    Raises `SchemaError` if the schema does not have the defect.
    """
    schema = copy.deepcopy(schema)
    for entry in entries:
        if version not in entry.affected:
            continue
        finding = _find(schema, entry)
        if finding.at is None:
            at = pointer_text((definitions_key(schema), entry.definition)) + entry.pointer
            remedy = f"remove {version} from the entry, or correct the entry"
            raise SchemaError(file, at, f"errata.json: {entry.name}: {finding.reason}; {remedy}")
        node: Any = schema
        for step in finding.at:
            node = node[step]
        node[entry.keyword] = copy.deepcopy(entry.right)
    return schema


def update(entries: list[Erratum], schema: Schema, version: str, older: str | None) -> tuple[list[Erratum], list[str]]:
    """Return the errata with their lists updated for a new schema of a version, and a report with a line for each.

    `older` is the newest earlier version. If neither it nor the previous schema of the version had a defect, the
    erratum is mentioned only if the new schema has it. An erratum of no version is dropped.
    """
    updated: list[Erratum] = []
    report: list[str] = []
    for entry in entries:
        entry, line = _update_one(entry, schema, version, older)
        updated += [entry] if entry.mentioned else []
        report += [line] if line else []
    return updated, report


def _update_one(entry: Erratum, schema: Schema, version: str, older: str | None) -> tuple[Erratum, str]:
    finding = _find(schema, entry)
    cleared = _without(entry, version)
    if finding.at is not None:
        if version in entry.affected:
            return entry, ""
        added = replace(cleared, carried_over=[*cleared.carried_over, version])
        return added, f"carried over: {entry.name}: {entry.reason}"
    if not {version, older} & {*entry.mentioned}:
        return entry, ""
    if finding.is_mended:
        end = "" if cleared.mentioned else "; no other version has it, so the entry is deleted"
        return cleared, f"mended by upstream: {entry.name}{end}"
    marked = replace(cleared, unclear=[*cleared.unclear, version])
    return marked, f"unclear, so not applied: {entry.name}: {finding.reason}{_hint(schema, entry)}"


def remove_version(entries: list[Erratum], version: str) -> list[Erratum]:
    """Return the errata without a version that is no longer pinned."""
    return [entry for entry in (_without(entry, version) for entry in entries) if entry.mentioned]


def _without(entry: Erratum, version: str) -> Erratum:
    names = ("versions", "carried_over", "unclear")
    return replace(entry, **{name: [other for other in getattr(entry, name) if other != version] for name in names})


def list_unreviewed(entries: list[Erratum], version: str) -> list[str]:
    """List the errata of a version that a person has to look at, one line each."""
    lines: list[str] = []
    for entry in entries:
        if version in entry.carried_over:
            lines.append(f"errata.json: {entry.name} was carried over; if that is right, move it to `versions`")
        if version in entry.unclear:
            lines.append(f"errata.json: {entry.name} is unclear; correct the entry, or remove it from `unclear`")
    return lines


def _find(schema: Schema, entry: Erratum) -> _Finding:
    """Find the one place of a defect in a schema."""
    key = definitions_key(schema)
    if entry.definition not in schema[key]:
        return _Finding(reason="the definition is gone")
    values = list(_values(schema[key][entry.definition], entry.keyword, entry.pointer))
    wrong = [at for at, value in values if _is_same(value, entry.wrong)]
    right = [at for at, value in values if _is_same(value, entry.right)]
    if len(wrong) == 1 and not right:
        return _Finding((key, entry.definition, *wrong[0]))
    if wrong:
        places = ", ".join(pointer_text(at) or "the definition itself" for at in [*wrong, *right])
        return _Finding(
            reason=f"the wrong or the right value is at several places ({places}); add `pointer` to name one"
        )
    if right:
        return _Finding(reason="upstream has mended it", is_mended=True)
    return _Finding(reason=f"neither the wrong value {json.dumps(entry.wrong)} nor the right one is there")


def _values(node: Any, keyword: str, below: str) -> Iterator[tuple[Pointer, Any]]:
    """Yield the values of a keyword in a schema, in the part below a pointer, each with the pointer of its schema."""
    for at, part in _walk(node, ()):
        if keyword in part and f"{pointer_text(at)}/".startswith(f"{below}/"):
            yield at, part[keyword]


def _walk(node: Any, at: Pointer) -> Iterator[tuple[Pointer, Schema]]:
    if is_schema(node):
        yield at, node
        for below, child in children(node):
            yield from _walk(child, (*at, *below))


def _is_same(left: object, right: object) -> bool:
    """Return whether two values of a keyword are equal. Types, constants and required members have no order."""
    return _canonical(left) == _canonical(right)


def _canonical(value: object) -> str | list[str]:
    """Return a value in a form that tells `1` from `True`, and does not depend on order."""
    if isinstance(value, list):
        return sorted(json.dumps(item, sort_keys=True) for item in cast("list[object]", value))
    return json.dumps(value, sort_keys=True)


def _hint(schema: Schema, entry: Erratum) -> str:
    """Name the definitions to which the defect may have moved, if they are few."""
    found = [
        name
        for name, node in schema[definitions_key(schema)].items()
        if name != entry.definition
        and any(_is_same(value, entry.wrong) for _, value in _values(node, entry.keyword, ""))
    ]
    return f"; the wrong value is in {', '.join(found)}" if 0 < len(found) <= _MAX_HINTS else ""


_MAX_HINTS = 3
