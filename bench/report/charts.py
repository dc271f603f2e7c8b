"""SVG charts: bars of ratios, and lines of figures by size."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil, floor, log10

from bench.report.figures import (
    MISSING,
    Cell,
    describe_figures,
    describe_ratio,
    find_cell,
    find_reference,
    format_figure,
    format_heading,
    format_ratio,
    format_ratio_span,
    is_typedmcp,
    parse_size,
)
from bench.report.templates import render_template
from bench.results import Table

__all__ = ["render_bars", "render_lines"]

# All colours have a contrast of more than 3:1 on white and on black.
OURS, OTHERS = "#2f81f7", "#7d8590"
_PALETTE = ("#d4652f", "#1a9c6b", "#a371f7", "#d6418f", "#96801f", "#1893a8")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "12 4", "1 4", "6 2 2 2 2 2")

_ROW, _LEGEND = 42, 20
_NARROW, _WIDE, _PLOT = 400, 680, 220
"""Width in a page, which phones show, width of a standalone chart, and height of a plot, in pixels."""


@dataclass(frozen=True)
class _Bar:
    name: str
    label: str
    detail: str
    about: str
    y: float
    length: float
    low: float
    high: float
    colour: str
    is_reference: bool


@dataclass(frozen=True)
class _Line:
    name: str
    label: str
    about: str
    colour: str
    dashes: str
    points: list[tuple[float, float]]


@dataclass(frozen=True)
class _Tick:
    label: str
    at: float


@dataclass(frozen=True)
class _Scale:
    """Maps powers of ten to pixels."""

    least: float
    most: float
    start: float
    end: float

    def __call__(self, power: float) -> float:
        return round(self.start + (power - self.least) / (self.most - self.least) * (self.end - self.start), 1)


def render_bars(table: Table, column: str, *, standalone: bool = False) -> str:
    """Render bars of ratios, best first. A `standalone` chart has a heading and a background."""
    width = _WIDE if standalone else _NARROW
    against = find_reference(table, column)
    found = [
        (row.contender, known) for row in table.rows if (known := find_cell(table, row.contender, column, against))
    ]
    found.sort(key=lambda each: _ratios(each[1])[1], reverse=True)
    top = max([1.0, *(_ratios(known)[2] for _, known in found)])
    drawn = [_bar(table, *each, index, width / top) for index, each in enumerate(found)]
    return render_template(
        "bars.svg.jinja",
        bars=drawn,
        one=width / top,
        width=width,
        height=len(drawn) * _ROW + 20,
        standalone=standalone,
        title=f"{table.title}: {column}",
        about=f"Times {describe_ratio(table)} as {against}; longer is better",
        mark=_fit(f"1× = {against}", width - 20),
        fit=_fit,
    )


def _ratios(found: Cell) -> tuple[float, float, float]:
    """Return low, median and high; zeros if there is no ratio."""
    return (0, 0, 0) if found.ratio is None else (found.ratio.low, found.ratio.median, found.ratio.high)


def _bar(table: Table, name: str, found: Cell, index: int, unit: float) -> _Bar:
    low, middle, high = (round(each * unit, 1) for each in _ratios(found))
    label = MISSING if found.ratio is None else format_ratio(found.ratio.median)
    detail = format_figure(found.figure.median, table.unit)
    about = f"{name}: {label}{'' if found.ratio is None else f' ({format_ratio_span(found.ratio)})'}, {detail}"
    colour = OURS if is_typedmcp(name) else OTHERS
    return _Bar(name, label, detail, about, index * _ROW, max(middle, 1), low, high, colour, name == table.reference)


def _fit(text: str, width: float) -> str:
    """Cut a text to a width, by the average width of letters of 13 pixels."""
    length = max(int(width / 6.8), 1)
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def render_lines(table: Table, *, standalone: bool = False) -> str:
    """Render lines of figures by size, on logarithmic scales. Grey lines show proportional growth."""
    width = _WIDE if standalone else _NARROW
    series = {row.contender: _points(table, row.contender) for row in table.rows}
    known = [point for points in series.values() for point in points]
    across, up = _scales(known, width)
    drawn = [
        _line(table, name, index, across, up) for index, name in enumerate(name for name in series if series[name])
    ]
    largest = max(
        (column for column in table.columns if parse_size(column)),
        key=lambda column: parse_size(column) or 0,
        default="",
    )
    legend = (len(drawn) + 2) * _LEGEND
    return render_template(
        "lines.svg.jinja",
        lines=drawn,
        largest=f"at {format_heading(table, largest)}",
        guides=_guides(across, up),
        rows=_ticks(up, table.unit),
        columns=_sizes(sorted({x for x, _ in known}), across),
        width=width,
        plot=_PLOT,
        legend=legend,
        height=legend + _PLOT + 42,
        standalone=standalone,
        title=table.title,
        about=f"{describe_figures(table).capitalize()}; both scales are logarithmic",
        fit=_fit,
    )


def _points(table: Table, contender: str) -> list[tuple[float, float]]:
    """Return sizes and figures as powers of ten, without those that have none."""
    found = [(parse_size(column), find_cell(table, contender, column)) for column in table.columns]
    return sorted((log10(x), log10(y.figure.median)) for x, y in found if x and y and y.figure.median > 0)


def _scales(points: list[tuple[float, float]], width: int) -> tuple[_Scale, _Scale]:
    """Return both scales. The vertical one has at least one power of ten, so that noise does not look like growth."""
    xs, ys = [x for x, _ in points] or [0.0], [y for _, y in points] or [0.0]
    missing = max(1 - (max(ys) - min(ys)), 0.2) / 2
    return (
        _Scale(min(xs), max(max(xs), min(xs) + 0.1), 62, width - 22),
        _Scale(min(ys) - missing, max(ys) + missing, _PLOT, 0),
    )


def _line(table: Table, contender: str, index: int, across: _Scale, up: _Scale) -> _Line:
    points = [(across(x), up(y)) for x, y in _points(table, contender)]
    sizes = sorted((known, column) for column in table.columns if (known := parse_size(column)))
    found = [(column, find_cell(table, contender, column)) for _, column in sizes]
    values = [
        f"{format_heading(table, column)}: {format_figure(each.figure.median, table.unit)}"
        for column, each in found
        if each
    ]
    colour = OURS if is_typedmcp(contender) else _PALETTE[index % len(_PALETTE)]
    dashes = _DASHES[index % len(_DASHES)]
    return _Line(contender, _reached(table, found[-1][1]), f"{contender}: {', '.join(values)}", colour, dashes, points)


def _reached(table: Table, found: Cell | None) -> str:
    if found is None:
        return MISSING
    figure = format_figure(found.figure.median, table.unit)
    return figure if found.ratio is None else f"{format_ratio(found.ratio.median)} · {figure}"


def _guides(across: _Scale, up: _Scale) -> list[tuple[float, float, float, float]]:
    """Return lines of slope 1 through the powers of ten, cut to the plot."""
    found: list[tuple[float, float, float, float]] = []
    for offset in range(floor(up.least - across.most), ceil(up.most - across.least) + 1):
        start, end = max(across.least, up.least - offset), min(across.most, up.most - offset)
        if start < end:
            found.append((across(start), up(start + offset), across(end), up(end + offset)))
    return found


def _ticks(up: _Scale, unit: str) -> list[_Tick]:
    """Return ticks at powers of ten, and on short scales at 2 and 5 times those."""
    powers = range(floor(up.least), ceil(up.most) + 1)
    steps = (1,) if up.most - up.least > 2.5 else (1, 2, 5)
    exact = [(power + log10(step), step * 10.0**power) for power in powers for step in steps]
    return [
        _Tick(re.sub(r"\.0+\b", "", format_figure(value, unit)), up(at))
        for at, value in exact
        if up.least <= at <= up.most
    ]


def _sizes(powers: list[float], across: _Scale) -> list[_Tick]:
    """Return ticks at sizes, without those that would overlap."""
    found: list[_Tick] = []
    for power in powers:
        if not found or across(power) - found[-1].at > 45:
            found.append(_Tick(f"{10**power:,.10g}", across(power)))
    return found
