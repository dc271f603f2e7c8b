"""Compare the tables of two offers of a server, entry by entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, TypedDict

from typedmcp_cli.typed_clients.drift import TABLES

__all__ = ["Changes", "compare_entries", "render_changes"]


class ChangedEntry(TypedDict):
    """The descriptions of an entry in both revisions."""

    old: str
    new: str


class TableChanges(TypedDict):
    """The entries of a table that were added, removed and changed, by name."""

    added: dict[str, str]
    removed: dict[str, str]
    changed: dict[str, ChangedEntry]


Changes: TypeAlias = dict[str, TableChanges]
"""By table."""

_MAX_FULL_OPTIONS = 3
"""A longer union is described by the options that were added and removed."""


def compare_entries(old: Mapping[str, str], new: Mapping[str, str]) -> TableChanges:
    """Compare the entries of a table in two states."""
    return {
        "added": {name: new[name] for name in sorted(new.keys() - old.keys())},
        "removed": {name: old[name] for name in sorted(old.keys() - new.keys())},
        "changed": {
            name: {"old": old[name], "new": new[name]}
            for name in sorted(old.keys() & new.keys())
            if _options(old[name]) != _options(new[name])
        },
    }


def _options(text: str) -> list[str]:
    """Return the options of a union in an order that does not depend on the schema."""
    return sorted(text.split(" | "))


def render_changes(changes: Changes, titles: Mapping[str, str] = TABLES) -> Iterator[str]:
    """Yield the lines of a text that shows what was added (+), removed (-) and changed (~).

    `titles` are those of the tables, in their order.
    """
    for kind, title in titles.items():
        entries = [*_entries(changes[kind])]
        if entries:
            yield title
            yield from (f"  {mark} {name}: {text}" for mark, name, text in entries)


def _entries(changes: TableChanges) -> Iterator[tuple[str, str, str]]:
    """Yield mark, name and description of each change."""
    yield from (("+", name, text) for name, text in changes["added"].items())
    yield from (("-", name, text) for name, text in changes["removed"].items())
    for name, entry in changes["changed"].items():
        yield "~", name, _describe_change(entry["old"], entry["new"])


def _describe_change(old: str, new: str) -> str:
    """Describe a change of a long union by the changed options, and any other change by both descriptions."""
    before, after = old.split(" | "), new.split(" | ")
    if max(len(before), len(after)) <= _MAX_FULL_OPTIONS or any(sign in old + new for sign in "(,>"):
        return f"{old} => {new}"
    removed = [f"-{option}" for option in before if option not in after]
    added = [f"+{option}" for option in after if option not in before]
    return ", ".join([*added, *removed])
