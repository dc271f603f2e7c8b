"""Reports of a run: text for a terminal, an HTML page, and SVG charts."""

from __future__ import annotations

from pathlib import Path

from bench.report.charts import render_bars, render_lines
from bench.report.figures import slugify
from bench.report.html import render_page
from bench.results import Results, Table, save

__all__ = ["write_report"]


def write_report(results: Results, folder: Path, only: str = "") -> list[Path]:
    """Write the results, the page, and a chart for each table; return the paths.

    The file names contain the machine and, for a partial run, `only`.
    """
    run = slugify(f"{results.environment.machine} {only}")
    data = folder / f"{run}.json"
    save(results, data)
    texts = {f"{run}.html": render_page(results, data.name)}
    texts |= {f"{run}-{slugify(table.name)}.svg": _chart(table) for table in results.tables if table.columns}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [data, *(folder / name for name in texts)]


def _chart(table: Table) -> str:
    return (
        render_lines(table, standalone=True)
        if table.kind == "lines"
        else render_bars(table, table.leading, standalone=True)
    )
