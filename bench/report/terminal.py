"""The report for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from bench.report.figures import MISSING, cell, heading, human, praise, ratio, ratio_span, sense, warnings, when
from bench.report.templates import printable
from bench.results import Environment, Results, Table

__all__ = ["text"]

WIDTH = 100
_GAP = "   "


def text(results: Results) -> str:
    """All tables as text, at most 100 columns wide where names allow it; ratios come before figures."""
    parts = [_opening(results), *(_table(table) for table in results.tables)]
    return printable("\n\n".join(parts) + "\n")


def _opening(results: Results) -> str:
    environment = results.environment
    memory = f"{environment.memory_gb:.3g} GB"
    lines = [
        f"Benchmarks of typedmcp on {environment.machine}, {when(environment)}: {results.command}",
        f"{environment.processor}, {environment.cores} cores, {memory}, {environment.system}",
        f"{_versions(environment)}commit {environment.commit}, load {environment.load:.2f}",
        "7.4× is 7.4 times as good as the reference; then come the range of all rounds, and the median figure.",
        *(f"WARNING: {warning}" for warning in warnings(results)),
    ]
    return "\n".join(part for line in lines for part in wrap(line, WIDTH, subsequent_indent="  "))


def _versions(environment: Environment) -> str:
    versions = {"Python": environment.python, **environment.versions}
    return "".join(f"{name} {version}, " for name, version in versions.items())


def _table(table: Table) -> str:
    heading = f"{table.title} ({table.name})"
    about = f"{table.about} Ratios: times {praise(table)} as {table.reference}; {sense(table)}."
    lines = [heading, "─" * min(len(heading), WIDTH), *wrap(about, WIDTH), "", *_grids(table)]
    notes = [f"  {row.contender}: {row.note}" for row in table.rows if row.note]
    return "\n".join([*lines, *(part for note in notes for part in wrap(note, WIDTH, subsequent_indent="    "))])


def _grids(table: Table) -> list[str]:
    """The figures: one grid, or several below each other where the columns do not fit beside each other."""
    names = ["", *(_name(table, row.contender) for row in table.rows)]
    columns = [_column(table, column) for column in table.columns]
    grids: list[list[list[str]]] = [[names]]
    for column in columns:
        if len(grids[-1]) > 1 and _width([*grids[-1], column]) > WIDTH:
            grids.append([names])
        grids[-1].append(column)
    return "\n\n".join("\n".join(_side_by_side(grid)) for grid in grids).split("\n")


def _name(table: Table, contender: str) -> str:
    return f"{contender} (reference)" if contender == table.reference else contender


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) for column in columns) + len(_GAP) * (len(columns) - 1)


def _column(table: Table, column: str) -> list[str]:
    """A column with its heading: ratio, spread and median, each aligned to the right."""
    parts = [_parts(table, row.contender, column) for row in table.rows]
    widths = [max(map(len, each)) for each in zip(*parts, strict=True)]
    lines = ["  ".join(part.rjust(width) for part, width in zip(line, widths, strict=True)) for line in parts]
    found = [heading(table, column), *lines]
    return [line.rjust(max(map(len, found))) for line in found]


def _parts(table: Table, contender: str, column: str) -> tuple[str, str, str]:
    found = cell(table, contender, column)
    if found is None:
        return MISSING, "", MISSING
    median = human(found.figure.median, table.unit)
    if found.ratio is None:
        return MISSING, "", median
    spread = "" if contender == table.reference else ratio_span(found.ratio)
    return ratio(found.ratio.median), spread, median


def _side_by_side(columns: Sequence[Sequence[str]]) -> list[str]:
    names, *others = columns
    widest = max(map(len, names))
    rows = zip(*([name.ljust(widest) for name in names], *others), strict=True)
    return [_GAP.join(row).rstrip() for row in rows]
