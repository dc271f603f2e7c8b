"""Write changes for people, and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from typedmcp_cli.comparison.changes import VERDICTS, Change, Verdict

__all__ = ["FAIL_ON", "changes_to_json", "count_verdicts", "is_failure", "write_changes", "write_markdown"]

FAIL_ON: Final = ("breaking", "compatible", "any")
"""The changes that a status may be about: those that break somebody, those that messages show, or all."""

_TITLES: Final[dict[Verdict, str]] = {"breaking": "breaking", "compatible": "compatible", "words": "only words"}


def count_verdicts(changes: Sequence[Change]) -> dict[Verdict, int]:
    """Count the changes of each verdict."""
    counted = Counter(change.verdict for change in changes)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def write_changes(changes: Sequence[Change]) -> list[str]:
    """Return the lines of a report: a section for each verdict, the worst first."""
    lines: list[str] = []
    for verdict, number in count_verdicts(changes).items():
        if number:
            lines.append(f"{_TITLES[verdict]}: {number}")
            lines += [_line(change) for change in changes if change.verdict == verdict]
    return lines


def _line(change: Change) -> str:
    whom = _describe_hits(change)
    return f"  {change.sign} {change.name}: {change.text}" + (f"  [{whom}]" if whom else "")


def _describe_hits(change: Change) -> str:
    sides = {role: [f"{hit.side}s" for hit in change.hits if hit.role == role] for role in ("send", "get")}
    return ", ".join(f"{found[0] if len(found) == 1 else 'both'} {role}" for role, found in sides.items() if found)


def changes_to_json(changes: Sequence[Change]) -> dict[str, Any]:
    """Return the counts of the verdicts and all changes, as JSON values."""
    return {
        "counts": count_verdicts(changes),
        "changes": [
            {
                "verdict": change.verdict,
                "kind": change.kind,
                "name": change.name,
                "old": change.old,
                "new": change.new,
                "text": change.text,
                "hits": [{"side": hit.side, "role": hit.role} for hit in change.hits],
            }
            for change in changes
        ],
    }


def is_failure(changes: Sequence[Change], fail_on: str | None) -> bool:
    """Return whether there is a change that a caller asked to fail on, or a worse one."""
    if fail_on is None:
        return False
    limit = {"breaking": 1, "compatible": 2, "any": 3}[fail_on]
    return any(change.verdict in VERDICTS[:limit] for change in changes)


def write_markdown(changes: Sequence[Change], title: str) -> list[str]:
    """Return the report as lines of Markdown."""
    lines = [f"# {title}"]
    for verdict in VERDICTS:
        if found := [change for change in changes if change.verdict == verdict]:
            lines += [
                "",
                f"## {_TITLES[verdict].capitalize()}",
                "",
                "| | name | change | breaks |",
                "|---|---|---|---|",
            ]
            lines += [
                f"| `{change.sign}` | `{change.name}` | {_as_code(change.text)} | {_describe_hits(change)} |"
                for change in found
            ]
    return lines


def _as_code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")
