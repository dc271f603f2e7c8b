"""The report of a run: Markdown that reads well in a terminal, too, and JSON with every figure of every round."""

from __future__ import annotations

import re
from pathlib import Path

from bench.figures import (
    MISSING,
    describe_figures,
    describe_ratio,
    find_cell,
    format_figure,
    format_heading,
    format_ratio,
    format_ratio_span,
    format_start,
    group_checks,
    list_warnings,
    slugify,
)
from bench.results import Results, Table, save

__all__ = ["render_report", "write_report"]

# Some of these control a terminal.
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_report(results: Results, folder: Path, only: str = "") -> list[Path]:
    """Write the results and the report; return their paths.

    The file names contain the machine and, for a partial run, `only`.
    """
    run = slugify(f"{results.environment.machine} {only}")
    data, report = folder / f"{run}.json", folder / f"{run}.md"
    save(results, data)
    report.write_text(render_report(results), encoding="utf-8")
    return [data, report]


def render_report(results: Results) -> str:
    """Render all tables as Markdown."""
    parts = [_opening(results), *(_table(table) for table in results.tables)]
    return _UNPRINTABLE.sub("\ufffd", "\n\n".join(parts) + "\n")


def _opening(results: Results) -> str:
    environment = results.environment
    versions = ", ".join(f"{name} {version}" for name, version in environment.versions.items())
    lines = [
        f"# Benchmarks of typedmcp on {environment.machine}",
        f"`{results.command}`, {format_start(environment)}, commit {environment.commit}, load {environment.load:.2f}",
        f"{environment.processor}, {environment.cores} cores, {environment.memory_gb:.3g} GB, {environment.system}",
        f"Python {environment.python}{', ' if versions else ''}{versions}",
        "7.4× means 7.4 times as good as the reference. The range of all rounds and the median figure follow.",
        *(f"**WARNING: {warning}**" for warning in list_warnings(results)),
    ]
    return "\n\n".join(lines)


def _table(table: Table) -> str:
    about = f"{table.about} Ratios: times {describe_ratio(table)} as {table.reference}; {describe_figures(table)}."
    notes = [f"- {row.contender}: {row.note}" for row in table.rows if row.note]
    checks = [f"- {'; '.join(names)} checks {checks}" for checks, names in group_checks(table).items()]
    parts = [f"## {table.title} (`{table.name}`)", about, _grid(table), "\n".join([*notes, *checks])]
    return "\n\n".join(part for part in parts if part)


def _grid(table: Table) -> str:
    names = ["", "---", *(_name(table, row.contender) for row in table.rows)]
    columns = [names, *(_column(table, column) for column in table.columns)]
    escaped = [[cell.replace("|", "\\|").replace("\n", " ") for cell in column] for column in columns]
    widths = [max(map(len, column)) for column in escaped]
    rows = zip(*escaped, strict=True)
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in rows
    )


def _name(table: Table, contender: str) -> str:
    return f"{contender} (reference)" if contender == table.reference else contender


def _column(table: Table, column: str) -> list[str]:
    return [format_heading(column), "---", *(_cell(table, row.contender, column) for row in table.rows)]


def _cell(table: Table, contender: str, column: str) -> str:
    """Format ratio, spread and median: `7.4× (7.1–7.6), 812 µs`."""
    found = find_cell(table, contender, column)
    if found is None:
        return MISSING
    median = format_figure(found.figure.median, table.unit)
    if found.ratio is None or contender == table.reference:
        return median
    return f"{format_ratio(found.ratio.median)} ({format_ratio_span(found.ratio)}), {median}"
