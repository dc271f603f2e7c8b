"""The report as one self-contained HTML page."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from bench.report.charts import render_bars, render_lines
from bench.report.figures import Headline, describe_figures, find_headline, list_warnings, slugify
from bench.report.templates import render_template
from bench.results import Results, Table

__all__ = ["render_page"]

_SPELLED = {"http": "HTTP", "stdio": "stdio"}


@dataclass(frozen=True)
class _Chart:
    caption: str
    svg: Markup


@dataclass(frozen=True)
class _Shown:
    """A table with its headline and charts."""

    table: Table
    anchor: str
    headline: Headline | None
    charts: list[_Chart]


@dataclass(frozen=True)
class _Suite:
    title: str
    anchor: str
    shown: list[_Shown]


def render_page(results: Results, data: str) -> str:
    """Render a run as one HTML page with styles and charts. It loads nothing and runs no script.

    `data` is the name of the results file beside it.
    """
    return render_template(
        "page.html.jinja", results=results, data=data, suites=_suites(results), warnings=list_warnings(results)
    )


def _suites(results: Results) -> list[_Suite]:
    """Group the tables by suite."""
    found: dict[str, _Suite] = {}
    for index, table in enumerate(results.tables):
        name = table.name.partition("/")[0]
        suite = found.setdefault(name, _Suite(_title(name), f"suite-{len(found)}-{slugify(name)}", []))
        suite.shown.append(_Shown(table, f"table-{index}-{slugify(table.name)}", find_headline(table), _charts(table)))
    return list(found.values())


def _title(name: str) -> str:
    return _SPELLED.get(name, name[:1].upper() + name[1:])


def _charts(table: Table) -> list[_Chart]:
    # The charts have escaped their texts already.
    if table.kind == "lines":
        caption = f"{describe_figures(table).capitalize()}; both scales are logarithmic"
        return [_Chart(caption, Markup(render_lines(table)))]  # noqa: S704
    return [_Chart(column, Markup(render_bars(table, column))) for column in table.columns]  # noqa: S704
