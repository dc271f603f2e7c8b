"""Puts the figures of a kept run into README and documents, where nobody has to copy them: `make bench-quote`.

What is quoted, and from which run, stands in `bench/quoted.toml`; where, is between two comments in each document.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import msgspec

from bench.report.figures import cell, human, ratio, ratio_span, slug, warnings, when
from bench.results import Results, load

__all__ = ["DOCUMENTS", "Quoted", "Quotes", "block", "chosen", "main", "quoted"]

ROOT = Path(__file__).resolve().parents[1]
FILE = Path(__file__).parent / "quoted.toml"
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "benchmarks.md")

BESIDE = ("mcp", "fastmcp", "@modelcontextprotocol/server", "@modelcontextprotocol/client")
"""The packages whose versions are told."""

LINE = 120
"""Characters in a line of the documents."""

_BLOCK = re.compile(r"(?<=<!-- figures: make bench-quote -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)


class Quoted(msgspec.Struct, forbid_unknown_fields=True):
    """A ratio that is worth to be told."""

    what: str
    table: str
    column: str
    contender: str
    against: str


class Quotes(msgspec.Struct, forbid_unknown_fields=True):
    """What is told of a run."""

    run: str
    """The file of results, beside the others of its run."""
    chart: str
    """The table that is shown as a chart."""
    quoted: list[Quoted]


def chosen(path: Path = FILE) -> tuple[Results, Quotes]:
    """The run, and what is quoted of it. Raises `ValueError` for files that are wrong."""
    try:
        found = msgspec.toml.decode(path.read_bytes(), type=Quotes)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}") from error
    return load(path.parent / "results" / found.run), found


def block(results: Results, quotes: Quotes, document: Path) -> str:
    """The figures as a table in Markdown, with where they come from, and why to trust them less, if there is a reason.

    Raises `ValueError` for what was not measured, and for a run that is not to be quoted: a quick one, one that was
    broken off, or one of code that no commit has.
    """
    if results.quick or results.broken or not re.fullmatch("[0-9a-f]+", results.environment.commit):
        raise ValueError("only a whole run of a commit is quoted: `make bench` where `git status` shows no change")
    rows = "".join(_row(results, line) for line in quotes.quoted)
    origin = textwrap.fill(
        " ".join([_origin(results), *warnings(results)]), LINE, break_long_words=False, break_on_hyphens=False
    )
    has_results = document.parent == ROOT  # beside it, as pages that are published have not
    chart = f"\n{_chart(results, quotes.chart)}\n" if has_results else ""
    return f"{chart}\n| | typedmcp | beside | times as good |\n|---|---|---|---|\n{rows}\n{origin}\n\n"


def _chart(results: Results, name: str) -> str:
    table = results.table(name)
    if table is None:
        raise ValueError(f"{name}: not measured")
    file = f"{results.environment.machine}-{slug(name)}.svg"
    return f"![{table.title}: {table.leading}](bench/results/{file})"


def _origin(results: Results) -> str:
    environment = results.environment
    versions = ", ".join(f"{name} {environment.versions[name]}" for name in BESIDE if name in environment.versions)
    rounds = {len(figures.rounds) for table in results.tables for row in table.rows for figures in row.figures.values()}
    return (
        f"`{results.command}` on {environment.processor}, {environment.cores} cores, Python {environment.python}, "
        f"commit {environment.commit}, {when(environment)}, beside {versions}: medians of "
        f"{' or '.join(map(str, sorted(rounds)))} rounds in which all took turns, and the range of the ratios. All of "
        f"it is in `bench/results/{environment.machine}.html`."
    )


def _row(results: Results, line: Quoted) -> str:
    table = results.table(line.table)
    mine = None if table is None else cell(table, line.contender, line.column, line.against)
    other = None if table is None else cell(table, line.against, line.column)
    if table is None or mine is None or other is None or mine.ratio is None:
        raise ValueError(f"{line.table}, {line.column}: {line.contender} against {line.against}: not measured")
    here, beside = human(mine.figure.median, table.unit), human(other.figure.median, table.unit)
    times = f"**{ratio(mine.ratio.median)}** ({ratio_span(mine.ratio)})"
    return f"| {line.what} | {here} | {line.against}: {beside} | {times} |\n"


def quoted(text: str, figures: str) -> str:
    """A document with the figures in their place. Raises `ValueError` for one that has no place for them."""
    made, places = _BLOCK.subn(lambda _: figures, text)
    if places != 1:
        raise ValueError(f"{places} places for figures, where there has to be one")
    return made


def main() -> int:
    """Write the documents."""
    results, quotes = chosen()
    for document in DOCUMENTS:
        text = quoted(document.read_text(encoding="utf-8"), block(results, quotes, document))
        document.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
