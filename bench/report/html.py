"""The report as one page that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from bench.report.charts import bars, lines
from bench.report.figures import Headline, headline, sense, slug, warnings
from bench.report.templates import render
from bench.results import Results, Table

__all__ = ["page"]

_SPELLED = {"http": "HTTP", "stdio": "stdio"}


@dataclass(frozen=True)
class _Chart:
    caption: str
    svg: Markup


@dataclass(frozen=True)
class _Shown:
    """A table with what is drawn of it."""

    table: Table
    anchor: str
    headline: Headline | None
    charts: list[_Chart]


@dataclass(frozen=True)
class _Suite:
    title: str
    anchor: str
    shown: list[_Shown]


def page(results: Results, data: str) -> str:
    """A run as one page of HTML, with its style and charts inside; it loads nothing and runs no script.

    `data` is the name of the file beside it that has all its rounds.
    """
    return render("page.html.jinja", results=results, data=data, suites=_suites(results), warnings=warnings(results))


def _suites(results: Results) -> list[_Suite]:
    """Tables by suite, in the order in which suites first occur."""
    found: dict[str, _Suite] = {}
    for index, table in enumerate(results.tables):
        name = table.name.partition("/")[0]
        suite = found.setdefault(name, _Suite(_title(name), f"suite-{len(found)}-{slug(name)}", []))
        suite.shown.append(_Shown(table, f"table-{index}-{slug(table.name)}", headline(table), _charts(table)))
    return list(found.values())


def _title(name: str) -> str:
    return _SPELLED.get(name, name[:1].upper() + name[1:])


def _charts(table: Table) -> list[_Chart]:
    # The charts escape what they show, and are not to be escaped again.
    if table.kind == "lines":
        return [_Chart(f"{sense(table).capitalize()}; both scales are logarithmic", Markup(lines(table)))]  # noqa: S704
    return [_Chart(column, Markup(bars(table, column))) for column in table.columns]  # noqa: S704
