"""`typedmcp diff`: what changed between two revisions of the protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter

from mcpspec import VERSIONS
from typedmcp.cli.interfaces import Interface, interface
from typedmcp.cli.output import document, say
from typedmcp.cli.status import OK

__all__ = ["changes", "diff", "told"]

Version: TypeAlias = Annotated[str, Parameter(choices=VERSIONS)]
Changes: TypeAlias = dict[str, dict[str, dict[str, Any]]]

_SHORT = 3
"""How many options a union may have that is told in full."""
_TITLES = {"types": "Types", "members": "Members", "methods": "Methods", "codes": "Error codes"}


def diff(
    old: Annotated[Version, Parameter(name="OLD", help="A revision.")],
    new: Annotated[Version, Parameter(name="NEW", help="Another one.")],
    /,
    *,
    format: Annotated[Literal["text", "markdown", "json"], Parameter(help="How it is told.")] = "text",
) -> int:
    """Print what was added (+), removed (-) and changed (~)."""
    found = changes(interface(old), interface(new))
    if format == "json":
        document({"old": old, "new": new, **found})
    else:
        lines = _markdown(found, old, new) if format == "markdown" else told(found)
        for line in lines:
            say(line)
    return OK


def changes(old: Interface, new: Interface) -> Changes:
    """What was added, removed and changed, by kind. Members of types that are new or gone are not told one by one."""
    touched = old.types.keys() ^ new.types.keys()
    return {
        kind: _compared(_of_both(getattr(old, kind), touched), _of_both(getattr(new, kind), touched))
        if kind == "members"
        else _compared(getattr(old, kind), getattr(new, kind))
        for kind in _TITLES
    }


def _of_both(members: Mapping[str, str], touched: set[str]) -> dict[str, str]:
    return {name: text for name, text in members.items() if name.partition(".")[0] not in touched}


def _compared(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    return {
        "added": {name: new[name] for name in sorted(new.keys() - old.keys())},
        "removed": {name: old[name] for name in sorted(old.keys() - new.keys())},
        "changed": {
            name: {"old": old[name], "new": new[name]}
            for name in sorted(old.keys() & new.keys())
            if _in_order(old[name]) != _in_order(new[name])
        },
    }


def _in_order(text: str) -> list[str]:
    """A text that does not depend on the order in which a union names its options."""
    return sorted(text.split(" | "))


def told(found: Changes) -> Iterator[str]:
    """The same in lines: what was added (+), removed (-) and changed (~)."""
    for kind, title in _TITLES.items():
        lines = [*_lines(found[kind])]
        if lines:
            yield title
            yield from (f"  {mark} {name}: {text}" for mark, name, text in lines)


def _lines(found: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for mark, which in (("+", "added"), ("-", "removed")):
        yield from ((mark, name, text) for name, text in found[which].items())
    for name, both in found["changed"].items():
        yield "~", name, _change(both["old"], both["new"])


def _change(old: str, new: str) -> str:
    """What a change comes to: of a long union the options that come and go, of anything else all."""
    before, after = old.split(" | "), new.split(" | ")
    if max(len(before), len(after)) <= _SHORT or any(sign in old + new for sign in "(,>"):
        return f"{old} => {new}"
    gone = [f"-{option}" for option in before if option not in after]
    come = [f"+{option}" for option in after if option not in before]
    return ", ".join([*come, *gone])


def _markdown(found: Changes, old: str, new: str) -> Iterator[str]:
    yield f"# From {old} to {new}"
    words = {"+": "Added", "-": "Removed", "~": "Changed"}
    for kind, title in _TITLES.items():
        lines = [*_lines(found[kind])]
        if lines:
            yield f"\n## {title}"
        for mark, word in words.items():
            points = [f"- `{name}`: {_code(text)}" for found_mark, name, text in lines if found_mark == mark]
            if points:
                yield "\n".join([f"\n### {word}\n", *points])


def _code(text: str) -> str:
    return " → ".join(f"`{part}`" for part in text.split(" => "))
