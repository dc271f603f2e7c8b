"""Pictures of tables as SVG: a bar for each contender, also with a part for each layer."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final

from bench.figures import format_figure, is_typedmcp
from bench.results import Table
from bench.suites.layers import COLUMNS

__all__ = ["render_bars", "render_layers"]

COLORS: Final = ("#8d99ae", "#2a9d8f", "#264653", "#e9c46a", "#e76f51", "#f4a261", "#c5c3c6")
WIDTH, LABELS, BAR, GAP, TOP = 860, 240, 34, 16, 58
"""Pixels: of the picture, of the names at its left, of a bar, between bars, and above them."""
THIN: Final = 22
"""Pixels of a bar without parts."""
MIN_WIDTH_WITH_TEXT: Final = 26


def render_layers(table: Table) -> str:
    """Render a table of the suite `layers` as SVG, each bar in proportion to the microseconds of a call."""
    *layers, whole = COLUMNS
    rows = [row for row in table.rows if whole in row.figures]
    longest = max(row.figures[whole].median for row in rows)
    scale = (WIDTH - LABELS - 70) / longest
    height = TOP + len(rows) * (BAR + GAP)
    parts = _begin(table.title, height)
    for number, (name, color) in enumerate(zip(layers, COLORS, strict=True)):
        left, y = 8 + number % 4 * 213, 8 + number // 4 * 22
        parts.append(f'<rect x="{left}" y="{y}" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{left + 18}" y="{y + 11}">{escape(name)}</text>')
    for number, row in enumerate(rows):
        x, y = float(LABELS), TOP + number * (BAR + GAP)
        parts.append(f'<text x="{LABELS - 8}" y="{y + 22}" text-anchor="end">{escape(row.contender)}</text>')
        for name, color in zip(layers, COLORS, strict=True):
            microseconds = row.figures[name].median
            width = microseconds * scale
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{color}"/>')
            if width >= MIN_WIDTH_WITH_TEXT:
                middle = x + width / 2
                parts.append(f'<text x="{middle:.1f}" y="{y + 22}" text-anchor="middle">{microseconds:.1f}</text>')
            x += width
        parts.append(f'<text x="{x + 8:.1f}" y="{y + 22}">{row.figures[whole].median:.1f} µs</text>')
    return "\n".join([*parts, "</svg>", ""])


def render_bars(table: Table, column: str, contenders: Mapping[str, str]) -> str:
    """Render a column of a table as SVG, with a bar for each contender, by its name in the picture."""
    medians = {
        name: figures.median
        for name, each in contenders.items()
        if (figures := table.figures(each, column)) is not None
    }
    scale = (WIDTH - LABELS - 90) / max(medians.values())
    parts = _begin(f"{table.title}: {column}", len(medians) * (THIN + 8) + 12)
    for number, (name, value) in enumerate(medians.items()):
        y, width = 8 + number * (THIN + 8), value * scale
        color = COLORS[1] if is_typedmcp(contenders[name]) else COLORS[0]
        parts.append(f'<text x="{LABELS - 8}" y="{y + 16}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="{LABELS}" y="{y}" width="{width:.1f}" height="{THIN}" fill="{color}"/>')
        figure = format_figure(value, table.unit)
        parts.append(f'<text x="{LABELS + width + 8:.1f}" y="{y + 16}">{escape(figure)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _begin(title: str, height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
