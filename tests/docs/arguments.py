"""The tables on `docs/arguments.md`: what three libraries do with the arguments of `tests/app/sloppy_arguments.toml`.

`python -m tests.docs.arguments` writes them, with the environments of `tests/interop/install.py`. A test compares them;
it skips the columns of others without these environments.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
import subprocess
import tomllib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from mcpspec.support.error_text import clip
from tests.docs.markdown import replace_block
from tests.interop import install
from tests.interop.sloppy_arguments import call_all
from tests.paths import ROOT

__all__ = [
    "ENVIRONMENTS", "PAGE", "Case", "call_others", "cases", "our_outcomes", "outcomes_of", "render", "to_cell",
    "to_code",
]  # fmt: skip

PAGE = ROOT / "docs" / "arguments.md"
_CASES = ROOT / "tests" / "app" / "sloppy_arguments.toml"
_SCRIPT = ROOT / "tests" / "interop" / "sloppy_arguments.py"

ENVIRONMENTS: Final = {"MCPServer": "py2", "fastmcp": "fastmcp-4"}
"""The libraries of others, with the environment that has them."""
_PATIENCE: Final = 120
"""Seconds for all calls of one library; they take ten."""
_HEAD: Final = "| parameters | arguments | from | `MCPServer` | `fastmcp` | here |\n|---|---|---|---|---|---|\n"
_SHOWN: Final = 120
"""Characters of an outcome."""


class Case(NamedTuple):
    """A call: the heading it stands under, the parameters of the function, the arguments as JSON, and their sender."""

    group: str
    takes: str
    sends: str
    seen: str

    @property
    def call(self) -> tuple[str, Any]:
        """The parameters, and the parsed arguments."""
        return self.takes, json.loads(self.sends)


def cases() -> list[Case]:
    """Read the cases."""
    groups: Any = tomllib.loads(_CASES.read_text(encoding="utf-8"))["group"]
    return [Case(group["title"], **case) for group in groups for case in group["cases"]]


def our_outcomes() -> list[dict[str, str]]:
    """Return what our server does in each case."""
    return asyncio.run(call_all("typedmcp", [case.call for case in cases()]))


def outcomes_of(library: str) -> list[dict[str, str]]:
    """Return what the server of another library does in each case."""
    return call_others(library, [case.call for case in cases()])


def call_others(library: str, calls: Sequence[tuple[str, Any]]) -> list[dict[str, str]]:
    """Return what the server of another library does with calls."""
    command = [str(install.python(ENVIRONMENTS[library])), str(_SCRIPT), library]
    given = json.dumps(calls)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=_PATIENCE, check=True)
    found: list[dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def to_cell(outcome: dict[str, str], shown: int = _SHOWN) -> str:
    """Render an outcome: the value that the function got, or the text of the error, up to some characters."""
    if "error" in outcome:
        return f"rejected: {to_code(_shorten(outcome['error'], shown))}"
    return to_code(_shorten(outcome["value"], shown)) if outcome["value"] else "no arguments"


def _shorten(text: str, shown: int) -> str:
    """Return a text on one short line, without the inputs and addresses that Pydantic adds."""
    lines = [line.strip() for line in text.splitlines() if "For further information" not in line]
    return clip("; ".join(re.sub(r" \[type=.*\]$", "", line) for line in lines), shown)


def is_rejected(outcome: dict[str, str]) -> bool:
    """Return whether a call was rejected."""
    return "error" in outcome


def to_short_cell(outcome: dict[str, str]) -> str:
    """Render an outcome without the text of an error."""
    return "rejected" if is_rejected(outcome) else to_cell(outcome)


def to_code(text: str) -> str:
    """Render a text as code in a cell of a table."""
    if "|" in text or "`" in text:
        return f"<code>{html.escape(text, quote=False).replace('|', '&#124;').replace('`', '&#96;')}</code>"
    return f"`{text}`" if text else "none"


def render(columns: Sequence[Sequence[dict[str, str]]]) -> str:
    """Render the outcomes of all libraries that differ as tables, one for each group. Ours is the last column."""
    lines: list[str] = []
    group = ""
    for case, *outcomes in zip(cases(), *columns, strict=True):
        if len({is_rejected(each) or each["value"] for each in outcomes}) == 1:
            continue  # all do the same
        if case.group != group:
            group = case.group
            lines.append(f"\n## {group}\n\n{_HEAD}")
        cells = [
            to_code(case.takes),
            to_code(case.sends),
            case.seen,
            *map(to_short_cell, outcomes[:-1]),
            to_cell(outcomes[-1]),
        ]
        lines.append(f"| {' | '.join(cells)} |\n")
    return "".join(lines)


if __name__ == "__main__":
    made = render([*map(outcomes_of, ENVIRONMENTS), our_outcomes()])
    PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), "arguments", made), encoding="utf-8")
