"""Formatting of figures, ratios and spreads, the same in every report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import floor, isfinite, log10
from statistics import median

from bench.results import Environment, Results, Table

__all__ = [
    "MISSING",
    "Cell",
    "Spread",
    "describe_figures",
    "describe_ratio",
    "find_cell",
    "format_figure",
    "format_figure_span",
    "format_heading",
    "format_number",
    "format_ratio",
    "format_ratio_span",
    "format_start",
    "group_checks",
    "is_typedmcp",
    "list_warnings",
    "slugify",
    "summarise",
]

MISSING = "–"
"""Shown in place of a missing figure."""

_OURS = re.compile(r"(typedmcp|structs|models)\b")

_TIME = ((1e-9, " ns"), (1e-6, " µs"), (1e-3, " ms"), (1.0, " s"))
_SPACE = ((1.0, " B"), (1e3, " KB"), (1e6, " MB"), (1e9, " GB"))
_SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}


@dataclass(frozen=True)
class Spread:
    """The median and the range of some values."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Cell:
    """The figure and the ratio of a contender in a column."""

    figure: Spread
    """In the unit of the table."""
    ratio: Spread | None
    """Ratio to the reference, above 1 if better; None if one of the two has no figures, or no positive ones."""


def summarise(values: list[float]) -> Spread:
    """Return median and range of one or more values."""
    return Spread(median(values), min(values), max(values))


def find_cell(table: Table, contender: str, column: str, against: str | None = None) -> Cell | None:
    """Return figure and ratio to the reference, or to another contender; None without a figure."""
    figures = table.figures(contender, column)
    if figures is None or not figures.rounds:
        return None
    ratios = table.ratios(contender, column, against)
    return Cell(summarise(figures.rounds), summarise(ratios) if ratios else None)


def is_typedmcp(contender: str) -> bool:
    """Return whether a contender is part of typedmcp. Reports highlight these."""
    return _OURS.match(contender) is not None


def group_checks(table: Table) -> dict[str, list[str]]:
    """Return the contenders of a table by what they check, without those that do not say it."""
    found: dict[str, list[str]] = {}
    for row in table.rows:
        if row.checks:
            found.setdefault(row.checks, []).append(row.contender)
    return found


def describe_ratio(table: Table) -> str:
    """Return the meaning of a high ratio: `as fast`, `as small` or `as good`."""
    if (table.unit in _SECONDS and table.better == "lower") or (table.unit.endswith("/s") and table.better == "higher"):
        return "as fast"
    return "as small" if table.unit in _BYTES and table.better == "lower" else "as good"


def describe_figures(table: Table) -> str:
    """Return the meaning of the figures, and whether higher or lower is better."""
    unit = "time" if table.unit in _SECONDS else "size" if table.unit in _BYTES else table.unit
    return f"{unit}, {table.better} is better" if unit else f"{table.better} is better"


def format_number(value: float) -> str:
    """Format a number with three significant digits and thousands separators."""
    if not isfinite(value):
        return MISSING
    if value and not 1e-4 <= abs(value) < 1e12:
        return f"{value:.2e}"
    rounded = round(value, _places(value))
    return f"{rounded:,.{max(_places(rounded), 0)}f}"


def _places(value: float) -> int:
    return 2 - floor(log10(abs(value))) if value else 0


def format_figure(value: float, unit: str) -> str:
    """Format a figure with a suitable unit: `812 µs`, `12,300/s`, `48.2 MB`."""
    step, suffix = _step(value, unit)
    return f"{_count(value / step, unit)}{suffix}"


def format_figure_span(found: Spread, unit: str) -> str:
    """Format the range of a figure in the unit of its median: `798–830`."""
    step, _ = _step(found.median, unit)
    return f"{_count(found.low / step, unit)}–{_count(found.high / step, unit)}"


def _count(value: float, unit: str) -> str:
    """Format a number; counts stay whole: three modules are not `3.00`."""
    counted = unit not in _SECONDS and unit not in _BYTES
    return f"{value:.0f}" if counted and abs(value) < 1000 and value.is_integer() else format_number(value)


def _step(value: float, unit: str) -> tuple[float, str]:
    """Return the divisor and the suffix of the unit that fits a value."""
    for factors, scale in ((_SECONDS, _TIME), (_BYTES, _SPACE)):
        if unit in factors:
            # A value that would be rounded to 1,000 of a unit gets the next unit.
            fitting = [each for each in scale if abs(value) * factors[unit] >= each[0] * 0.9995]
            step, suffix = fitting[-1] if fitting else scale[0]
            return step / factors[unit], suffix
    if unit.endswith("/s"):
        return 1.0, f" {unit}" if unit.removesuffix("/s") in _BYTES else "/s"  # the table says what is counted
    return 1.0, f" {unit}" if unit else ""


def format_ratio(value: float) -> str:
    """Format a ratio, such as `7.4×`, with more digits close to 1."""
    return f"{_ratio(value, value)}×"


def format_ratio_span(found: Spread) -> str:
    """Format the range of a ratio with as many digits as its median: `7.1–7.6`."""
    return f"{_ratio(found.low, found.median)}–{_ratio(found.high, found.median)}"


def _ratio(value: float, like: float) -> str:
    if value == like == 1:
        return "1"
    if like < 0.0995:
        return format_number(value) if value < 1e-4 else f"{value:.{1 - floor(log10(like))}f}"
    return f"{value:,.{2 if like < 1.995 else 1 if like < 19.95 else 0}f}"


def format_heading(column: str) -> str:
    """Format the name of a column; sizes get thousands separators."""
    return f"{int(column):,}" if column.isdecimal() else column


def slugify(name: str) -> str:
    """Make a name safe for file names and URLs."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "unnamed"


def format_start(environment: Environment) -> str:
    """Format the start of a run, in UTC."""
    return f"{environment.began.removesuffix('Z').removesuffix('UTC').removesuffix('+00:00').rstrip()} UTC"


def list_warnings(results: Results) -> list[str]:
    """Return reasons to trust the figures less, as sentences."""
    found = [f"Incomplete: {suite}" for suite in results.broken]
    if results.quick:
        found.append("A quick run with few, short rounds: good for checking that everything works, not for quoting.")
    if _is_busy(results.environment):
        load, cores = results.environment.load, results.environment.cores
        found.append(f"The machine was busy before the run (load {load:.1f} on {cores} cores): rely on ratios only.")
    return found


def _is_busy(environment: Environment) -> bool:
    return environment.load > environment.cores / 2
