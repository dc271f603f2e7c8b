"""The report as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from bench.report.figures import (
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
)
from bench.report.templates import replace_unprintable
from bench.results import Environment, Results, Table

__all__ = ["render_text"]

WIDTH = 100
_GAP = "   "


def render_text(results: Results) -> str:
    """Render all tables as text, at most 100 columns wide unless names are longer."""
    parts = [_opening(results), *(_table(table) for table in results.tables)]
    return replace_unprintable("\n\n".join(parts) + "\n")


def _opening(results: Results) -> str:
    environment = results.environment
    memory = f"{environment.memory_gb:.3g} GB"
    lines = [
        f"Benchmarks of typedmcp on {environment.machine}, {format_start(environment)}: {results.command}",
        f"{environment.processor}, {environment.cores} cores, {memory}, {environment.system}",
        f"{_versions(environment)}commit {environment.commit}, load {environment.load:.2f}",
        "7.4× means 7.4 times as good as the reference. The range of all rounds and the median figure follow.",
        *(f"WARNING: {warning}" for warning in list_warnings(results)),
    ]
    return "\n".join(part for line in lines for part in wrap(line, WIDTH, subsequent_indent="  "))


def _versions(environment: Environment) -> str:
    versions = {"Python": environment.python, **environment.versions}
    return "".join(f"{name} {version}, " for name, version in versions.items())


def _table(table: Table) -> str:
    heading = f"{table.title} ({table.name})"
    about = f"{table.about} Ratios: times {describe_ratio(table)} as {table.reference}; {describe_figures(table)}."
    lines = [heading, "─" * min(len(heading), WIDTH), *wrap(about, WIDTH), "", *_grids(table)]
    notes = [part for note in _notes(table) for part in wrap(note, WIDTH, subsequent_indent="    ")]
    return "\n".join([*lines, *notes])


def _notes(table: Table) -> list[str]:
    notes = [f"  {row.contender}: {row.note}" for row in table.rows if row.note]
    checks = [f"  {'; '.join(names)}: {checks}" for checks, names in group_checks(table).items()]
    return [*notes, *(["  What each contender checks:"] if checks else []), *checks]


def _grids(table: Table) -> list[str]:
    """Render the figures as one grid, or as several if the columns do not fit beside each other."""
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
    """Render a column: ratio, spread and median, aligned to the right."""
    parts = [_parts(table, row.contender, column) for row in table.rows]
    widths = [max(map(len, each)) for each in zip(*parts, strict=True)]
    lines = ["  ".join(part.rjust(width) for part, width in zip(line, widths, strict=True)) for line in parts]
    found = [format_heading(table, column), *lines]
    return [line.rjust(max(map(len, found))) for line in found]


def _parts(table: Table, contender: str, column: str) -> tuple[str, str, str]:
    found = find_cell(table, contender, column)
    if found is None:
        return MISSING, "", MISSING
    median = format_figure(found.figure.median, table.unit)
    if found.ratio is None:
        return MISSING, "", median
    spread = "" if contender == table.reference else format_ratio_span(found.ratio)
    return format_ratio(found.ratio.median), spread, median


def _side_by_side(columns: Sequence[Sequence[str]]) -> list[str]:
    names, *others = columns
    widest = max(map(len, names))
    rows = zip(*([name.ljust(widest) for name in names], *others), strict=True)
    return [_GAP.join(row).rstrip() for row in rows]
