"""`typedmcp diff`: show what changed between two revisions of the protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, TypeAlias, TypedDict

from cyclopts import Parameter

from mcpspec import VERSIONS
from typedmcp_cli.output import print_json, print_text
from typedmcp_cli.revision_tables import RevisionTables, read_tables
from typedmcp_cli.status import OK

__all__ = ["Changes", "compare_entries", "compare_tables", "diff", "render_changes"]

Version: TypeAlias = Annotated[str, Parameter(choices=VERSIONS)]


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
_TITLES = {"types": "Types", "members": "Members", "methods": "Methods", "codes": "Error codes"}


def diff(
    old: Annotated[Version, Parameter(name="OLD", help="A revision.")],
    new: Annotated[Version, Parameter(name="NEW", help="Another revision.")],
    /,
    *,
    format: Annotated[Literal["text", "markdown", "json"], Parameter(help="The format of the output.")] = "text",
) -> int:
    """Print what was added (+), removed (-) and changed (~)."""
    changes = compare_tables(read_tables(old), read_tables(new))
    if format == "json":
        print_json({"old": old, "new": new, **changes})
    else:
        lines = _render_markdown(changes, old, new) if format == "markdown" else render_changes(changes)
        for line in lines:
            print_text(line)
    return OK


def compare_tables(old: RevisionTables, new: RevisionTables) -> Changes:
    """Compare two revisions. The members of added and removed types are left out."""
    in_one = old.types.keys() ^ new.types.keys()
    return {
        "types": compare_entries(old.types, new.types),
        "members": compare_entries(_members_in_both(old, in_one), _members_in_both(new, in_one)),
        "methods": compare_entries(old.methods, new.methods),
        "codes": compare_entries(old.codes, new.codes),
    }


def _members_in_both(tables: RevisionTables, in_one: set[str]) -> dict[str, str]:
    return {name: text for name, text in tables.members.items() if name.partition(".")[0] not in in_one}


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


def render_changes(changes: Changes, titles: Mapping[str, str] = _TITLES) -> Iterator[str]:
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


def _render_markdown(changes: Changes, old: str, new: str) -> Iterator[str]:
    yield f"# From {old} to {new}"
    words = {"+": "Added", "-": "Removed", "~": "Changed"}
    for kind, title in _TITLES.items():
        entries = [*_entries(changes[kind])]
        if entries:
            yield f"\n## {title}"
        for mark, word in words.items():
            points = [f"- `{name}`: {_render_code(text)}" for found, name, text in entries if found == mark]
            if points:
                yield "\n".join([f"\n### {word}\n", *points])


def _render_code(text: str) -> str:
    return " → ".join(f"`{part}`" for part in text.split(" => "))
