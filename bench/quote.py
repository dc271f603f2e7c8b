"""Writes the figures of a kept run into README and documentation, and its picture: `make bench-quote`.

`bench/quoted.toml` names the run and the ratios. Each document has a place for them between two comments.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import msgspec

from bench.budget import Budget
from bench.chart import render_bars, render_layers
from bench.figures import (
    MISSING,
    Cell,
    find_cell,
    format_figure,
    format_ratio,
    format_ratio_span,
    format_start,
    list_warnings,
)
from bench.results import Results, Table, load, merge
from bench.suites.processes import MODERN

__all__ = [
    "DOCUMENTS",
    "ComparedFigure",
    "Peer",
    "QuoteConfig",
    "QuotedChart",
    "QuotedRatio",
    "QuotedSentence",
    "find_peer",
    "insert_block",
    "is_newer",
    "load_quotes",
    "main",
    "render_block",
    "render_sentences",
]

ROOT = Path(__file__).resolve().parents[1]
FILE = Path(__file__).parent / "quoted.toml"
PICTURES = ROOT / "docs" / "pictures"
README = ROOT / "README.md"
DOCUMENTS = (README, ROOT / "docs" / "benchmarks.md")

QUOTED_PACKAGES = (
    "mcp", "fastmcp", "@modelcontextprotocol/server", "@modelcontextprotocol/client", "go-sdk", "java-sdk", "rmcp",
)  # fmt: skip
"""The packages whose versions are quoted."""

LINE_LENGTH = 120
"""Characters in a line of the documents."""

_EXPLANATION = """\
The next table compares typedmcp with the official SDKs: 2.0× means twice as good. Ratios below 1, where the SDK is
better, are in bold. The limit does the same work without the protocol and its checks, so ratios to it are below 1. A
dash means that the SDK does not speak the revision, that there is no program to compare with, or that its figure is too
small to be measured."""

_BLOCK = re.compile(r"(?<=<!-- figures: make bench-quote -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)


class QuotedRatio(msgspec.Struct, forbid_unknown_fields=True):
    """A ratio to quote."""

    what: str
    table: str
    column: str
    contender: str
    against: str


class Peer(msgspec.Struct, forbid_unknown_fields=True):
    """A column of the comparison with other SDKs."""

    name: str
    contenders: list[str]
    """Its contenders. The first one that a table has is compared."""
    is_limit: bool = False
    """True for the limit, whose ratios are never bold."""


class ComparedFigure(msgspec.Struct, forbid_unknown_fields=True):
    """A row of the comparison with other SDKs."""

    what: str
    table: str
    column: str
    contender: str


class QuotedSentence(msgspec.Struct, forbid_unknown_fields=True):
    """A sentence of README, in which `{figure}`, `{other}` and `{ratio}` stand for measured ones."""

    text: str
    table: str
    column: str
    contender: str
    against: str


class QuotedChart(msgspec.Struct, forbid_unknown_fields=True):
    """The chart of README: a bar for each contender."""

    table: str
    column: str
    contenders: dict[str, str]
    """The names in the chart → the contenders, from the top."""


class QuoteConfig(msgspec.Struct, forbid_unknown_fields=True):
    """The runs and their ratios to quote."""

    runs: list[str]
    """The results files in `bench/results`, on one machine. Of a table that several have, the newest counts."""
    sentences: list[QuotedSentence]
    chart: QuotedChart
    quoted: list[QuotedRatio]
    peers: list[Peer]
    """The limit first, then the SDKs."""
    compared: list[ComparedFigure]


def load_quotes(path: Path = FILE) -> tuple[Results, QuoteConfig]:
    """Load the runs, as one, and the ratios to quote. Raises `ValueError` for invalid files."""
    try:
        found = msgspec.toml.decode(path.read_bytes(), type=QuoteConfig)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}") from error
    return merge([load(path.parent / "results" / run) for run in found.runs]), found


def render_block(results: Results, quotes: QuoteConfig) -> str:
    """Render the ratios as Markdown tables with their origin, and with warnings about the run.

    Ratios with contenders that are newer than the run are left out. Raises `ValueError` for other missing ratios, and
    for a run that must not be quoted: a quick or incomplete one, or one of uncommitted code.
    """
    _check_complete(results)
    rows = "".join(_row(results, quote) for quote in quotes.quoted if not is_newer(results, quote))
    origin = textwrap.fill(
        " ".join([_origin(results), *list_warnings(results)]),
        LINE_LENGTH,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return (
        f"\n| | typedmcp | compared with | times as good |\n|---|---|---|---|\n{rows}\n"
        f"{_EXPLANATION}\n\n{_compare(results, quotes)}\n{origin}\n\n"
    )


def render_sentences(results: Results, quotes: QuoteConfig) -> str:
    """Render the sentences of README, with their origin. Raises `ValueError` as `render_block` does."""
    _check_complete(results)
    lines = [
        textwrap.fill(f"- {_sentence(results, each)}", LINE_LENGTH, subsequent_indent="  ") for each in quotes.sentences
    ]
    environment = results.environment
    origin = (
        f"On {environment.processor}, {environment.cores} cores, Python {environment.python.removeprefix('CPython ')}, "
        "where all contenders took turns. [Benchmarks](docs/benchmarks.md) has the other figures, what each contender "
        "checks, and how to repeat the run."
    )
    return "\n" + "\n".join(lines) + f"\n\n{textwrap.fill(origin, LINE_LENGTH, break_on_hyphens=False)}\n\n"


def _sentence(results: Results, quote: QuotedSentence) -> str:
    table, mine, other = _find_cells(results, quote)
    assert mine.ratio is not None
    return quote.text.format(
        figure=format_figure(mine.figure.median, table.unit),
        other=format_figure(other.figure.median, table.unit),
        ratio=_emphasize(mine.ratio.median),
    )


def _check_complete(results: Results) -> None:
    if results.quick or results.broken or not re.fullmatch("[0-9a-f]+( and [0-9a-f]+)*", results.environment.commit):
        raise ValueError("only a complete run of a commit can be quoted: run `make bench` without uncommitted changes")


def _compare(results: Results, quotes: QuoteConfig) -> str:
    """Render the comparison with other SDKs, with a column for each that the run has."""
    measured = {row.contender for table in results.tables for row in table.rows}
    peers = [peer for peer in quotes.peers if not measured.isdisjoint(peer.contenders)]
    lines = [["", "typedmcp", *(peer.name for peer in peers)]]
    for row in quotes.compared:
        table = results.table(row.table)
        mine = None if table is None else find_cell(table, row.contender, row.column)
        if table is None or mine is None:
            raise ValueError(f"{row.table}, {row.column}: {row.contender}: not measured")
        cells = [_compare_with(table, row, peer) for peer in peers]
        lines.append([row.what, format_figure(mine.figure.median, table.unit), *cells])
    heading, *rows = (f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines)
    return "".join([heading, "|---" * len(lines[0]), "|\n", *rows])


def find_peer(table: Table, peer: Peer) -> str | None:
    """Return the contender of a peer in a table, or None if the table has none."""
    rows = {row.contender for row in table.rows}
    return next((name for name in peer.contenders if name in rows), None)


def _compare_with(table: Table, row: ComparedFigure, peer: Peer) -> str:
    against = find_peer(table, peer)
    if against is None:
        return MISSING
    cell = find_cell(table, row.contender, row.column, against)
    if cell is None or find_cell(table, against, row.column) is None:
        raise ValueError(f"{row.table}, {row.column}: {row.contender} against {against}: not measured")
    if cell.ratio is None:
        return MISSING
    return format_ratio(cell.ratio.median) if peer.is_limit else _emphasize(cell.ratio.median)


def _emphasize(ratio: float) -> str:
    """Format a ratio, in bold if the other contender is better."""
    return f"**{format_ratio(ratio)}**" if ratio < 1 else format_ratio(ratio)


def _origin(results: Results) -> str:
    environment = results.environment
    versions = ", ".join(
        f"{name} {environment.versions[name]}" for name in QUOTED_PACKAGES if name in environment.versions
    )
    rounds = {len(figures.rounds) for table in results.tables for row in table.rows for figures in row.figures.values()}
    return (
        f"`{results.command}` on {environment.processor}, {environment.cores} cores, Python {environment.python}, "
        f"commit {environment.commit}, {format_start(environment)}, with {versions}. Medians of "
        f"{' or '.join(map(str, sorted(rounds)))} rounds in which all contenders took turns; in brackets the range of "
        "the ratios. All figures are in `bench/results/`."
    )


def is_newer(results: Results, quote: QuotedRatio | Budget) -> bool:
    """Return whether a ratio is newer than a run, which has no row for a contender, not even one with a failure."""
    table = results.table(quote.table)
    known: set[str] = set() if table is None else {row.contender for row in table.rows}
    return not known >= {quote.contender, quote.against}


def _row(results: Results, quote: QuotedRatio) -> str:
    table, mine, other = _find_cells(results, quote)
    assert mine.ratio is not None
    figure, compared = format_figure(mine.figure.median, table.unit), format_figure(other.figure.median, table.unit)
    times = f"{_emphasize(mine.ratio.median)} ({format_ratio_span(mine.ratio)})"
    return f"| {quote.what} | {figure} | {quote.against}: {compared} | {times} |\n"


def _find_cells(results: Results, quote: QuotedRatio | QuotedSentence) -> tuple[Table, Cell, Cell]:
    """Return the table, the cell with the ratio, and that of the other contender. Raises `ValueError` without them."""
    table = results.table(quote.table)
    mine = None if table is None else find_cell(table, quote.contender, quote.column, quote.against)
    other = None if table is None else find_cell(table, quote.against, quote.column)
    if table is None or mine is None or other is None or mine.ratio is None:
        raise ValueError(f"{quote.table}, {quote.column}: {quote.contender} against {quote.against}: not measured")
    return table, mine, other


def insert_block(text: str, figures: str) -> str:
    """Insert the figures into a document. Raises `ValueError` unless it has exactly one place for them."""
    document, places = _BLOCK.subn(lambda _: figures, text)
    if places != 1:
        raise ValueError(f"expected one place for figures, found {places}")
    return document


def main() -> int:
    """Write the figures into all documents."""
    results, quotes = load_quotes()
    for quote in quotes.quoted:
        if is_newer(results, quote):
            print(f"left out, newer than the run: {quote.table}, {quote.contender} against {quote.against}")
    for document in DOCUMENTS:
        render = render_sentences if document == README else render_block
        text = insert_block(document.read_text(encoding="utf-8"), render(results, quotes))
        document.write_text(text, encoding="utf-8")
    if (layers := results.table(f"layers/http-{MODERN}")) is not None:
        (PICTURES / "http-call.svg").write_text(render_layers(layers), encoding="utf-8")
    if (table := results.table(quotes.chart.table)) is not None:
        chart = render_bars(table, quotes.chart.column, quotes.chart.contenders)
        (PICTURES / "speed.svg").write_text(chart, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
