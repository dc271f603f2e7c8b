"""Figures as people read them: units, ratios and spreads, the same in every kind of report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import floor, isfinite, log10
from statistics import median

from bench.results import Environment, Results, Table

__all__ = [
    "MISSING",
    "Cell",
    "Headline",
    "Spread",
    "cell",
    "heading",
    "headline",
    "human",
    "human_span",
    "is_ours",
    "number",
    "praise",
    "ratio",
    "ratio_span",
    "sense",
    "size",
    "slug",
    "spread",
    "warnings",
    "when",
    "yardstick",
]

MISSING = "–"
"""Stands where a contender does not take part."""

_OURS = re.compile(r"(typedmcp|structs|models)\b")

_TIME = ((1e-9, " ns"), (1e-6, " µs"), (1e-3, " ms"), (1.0, " s"))
_SPACE = ((1.0, " B"), (1e3, " KB"), (1e6, " MB"), (1e9, " GB"))
_SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}


@dataclass(frozen=True)
class Spread:
    """Some values: their median, and the least and the greatest of them."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Cell:
    """What one contender reached in one column."""

    figure: Spread
    """In the unit of the table."""
    ratio: Spread | None
    """How many times as good as the reference; none where one of the two took no part, or had nothing in a round."""


@dataclass(frozen=True)
class Headline:
    """The one ratio of a table that tells most."""

    contender: str
    against: str
    column: str
    ratio: Spread


def spread(values: list[float]) -> Spread:
    """Of values that there are."""
    return Spread(median(values), min(values), max(values))


def cell(table: Table, contender: str, column: str, against: str | None = None) -> Cell | None:
    """What a contender reached, compared with the reference or with another; nothing if it did not take part."""
    figures = table.figures(contender, column)
    if figures is None or not figures.rounds:
        return None
    ratios = table.ratios(contender, column, against)
    return Cell(spread(figures.rounds), spread(ratios) if ratios else None)


def yardstick(table: Table, column: str) -> str | None:
    """Whom the others are compared with in a chart: the reference, or the worst contender where that takes no part."""
    medians = {
        row.contender: found.figure.median for row in table.rows if (found := cell(table, row.contender, column))
    }
    if table.reference in medians or not medians:
        return table.reference if medians else None
    worst = max if table.better == "lower" else min
    return worst(medians, key=lambda name: medians[name])


def headline(table: Table) -> Headline | None:
    """The first of ours against the reference, in the column that tells most.

    Where the reference is ours: against the best of the others, so that nothing looks better than it is.
    """
    if not table.columns:
        return None
    column = table.leading
    others = [row.contender for row in table.rows if row.contender != table.reference]
    if is_ours(table.reference):
        rivals = [name for name in others if not is_ours(name)] or others
        best = _best(table, rivals, column)
        return _compared(table, table.reference, best, column)
    ours = next((name for name in others if is_ours(name) and table.ratios(name, column)), None)
    return _compared(table, ours or _best(table, others, column), table.reference, column)


def _best(table: Table, contenders: list[str], column: str) -> str:
    found = {name: known.ratio.median for name in contenders if (known := cell(table, name, column)) and known.ratio}
    return max(found, key=lambda name: found[name], default="")


def _compared(table: Table, contender: str, against: str, column: str) -> Headline | None:
    ratios = table.ratios(contender, column, against)
    return Headline(contender, against, column, spread(ratios)) if ratios else None


def is_ours(contender: str) -> bool:
    """Whether it is one of this project's, which reports set off from the others."""
    return _OURS.match(contender) is not None


def praise(table: Table) -> str:
    """What a high ratio means: `as fast`, `as small` or `as good`."""
    if (table.unit in _SECONDS and table.better == "lower") or (table.unit.endswith("/s") and table.better == "higher"):
        return "as fast"
    return "as small" if table.unit in _BYTES and table.better == "lower" else "as good"


def sense(table: Table) -> str:
    """What the figures are, and which are better."""
    unit = "time" if table.unit in _SECONDS else "size" if table.unit in _BYTES else table.unit
    return f"{unit}, {table.better} is better" if unit else f"{table.better} is better"


def number(value: float) -> str:
    """Three significant digits, with separators between thousands."""
    if not isfinite(value):
        return MISSING
    if value and not 1e-4 <= abs(value) < 1e12:
        return f"{value:.2e}"
    rounded = round(value, _places(value))
    return f"{rounded:,.{max(_places(rounded), 0)}f}"


def _places(value: float) -> int:
    return 2 - floor(log10(abs(value))) if value else 0


def human(value: float, unit: str) -> str:
    """A figure with its unit, scaled to be read: `812 µs`, `12,300/s`, `48.2 MB`."""
    step, suffix = _step(value, unit)
    return f"{_count(value / step, unit)}{suffix}"


def human_span(found: Spread, unit: str) -> str:
    """The spread of a figure, in the unit in which its median is written, which stands beside it: `798–830`."""
    step, _ = _step(found.median, unit)
    return f"{_count(found.low / step, unit)}–{_count(found.high / step, unit)}"


def _count(value: float, unit: str) -> str:
    """Whole numbers of things that are counted stay whole: three modules are not `3.00`."""
    counted = unit not in _SECONDS and unit not in _BYTES
    return f"{value:.0f}" if counted and abs(value) < 1000 and value.is_integer() else number(value)


def _step(value: float, unit: str) -> tuple[float, str]:
    """What to divide by, and what to write behind it."""
    for factors, scale in ((_SECONDS, _TIME), (_BYTES, _SPACE)):
        if unit in factors:
            # What would be rounded to 1,000 of a step belongs to the next.
            fitting = [each for each in scale if abs(value) * factors[unit] >= each[0] * 0.9995]
            step, suffix = fitting[-1] if fitting else scale[0]
            return step / factors[unit], suffix
    if unit.endswith("/s"):
        return 1.0, f" {unit}" if unit.removesuffix("/s") in _BYTES else "/s"  # what is counted is said elsewhere
    return 1.0, f" {unit}" if unit else ""


def ratio(value: float) -> str:
    """A ratio, such as `7.4×`, with more digits where it is close to 1."""
    return f"{_ratio(value, value)}×"


def ratio_span(found: Spread) -> str:
    """The spread of a ratio, with as many digits as the ratio itself: `7.1–7.6`."""
    return f"{_ratio(found.low, found.median)}–{_ratio(found.high, found.median)}"


def _ratio(value: float, like: float) -> str:
    if value == like == 1:
        return "1"
    if like < 0.0995:
        return number(value) if value < 1e-4 else f"{value:.{1 - floor(log10(like))}f}"
    return f"{value:,.{2 if like < 1.995 else 1 if like < 19.95 else 0}f}"


def size(column: str) -> float | None:
    """The number that a column of a table of lines stands for, if it is one that a logarithmic scale has."""
    try:
        value = float(column.replace(",", ""))
    except ValueError:
        return None
    return value if isfinite(value) and value > 0 else None


def heading(table: Table, column: str) -> str:
    """How a column is called: a size has its thousands set off."""
    value = size(column) if table.kind == "lines" else None
    return column if value is None else f"{value:,.10g}"


def slug(name: str) -> str:
    """A name as part of a file's name or of an address."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "unnamed"


def when(environment: Environment) -> str:
    """When a run began, with its time zone, which is always the same."""
    return f"{environment.began.removesuffix('Z').removesuffix('UTC').removesuffix('+00:00').rstrip()} UTC"


def warnings(results: Results) -> list[str]:
    """Why the figures are to be trusted less, in sentences."""
    found = [f"Broken off, so that figures are missing: {suite}" for suite in results.broken]
    if results.quick:
        found.append("A quick run: few and short rounds, good for seeing that everything works, not for quoting.")
    if _loaded(results.environment):
        load, cores = results.environment.load, results.environment.cores
        found.append(f"The machine was busy before the run (load {load:.1f} on {cores} cores): rely on ratios only.")
    return found


def _loaded(environment: Environment) -> bool:
    return environment.load > environment.cores / 2
