"""Reports on a run of the benchmarks: for a terminal, as a page, and as charts."""

from __future__ import annotations

from pathlib import Path

from bench import results as kept
from bench.report.charts import bars, lines
from bench.report.figures import slug
from bench.report.html import page
from bench.results import Results, Table

__all__ = ["write"]


def write(results: Results, folder: Path, only: str = "") -> list[Path]:
    """Write what was found, its page, and a chart of each table (of bars, for one column); return the paths.

    They are named for the machine and, if it was not a whole run, for what it was `only`.
    """
    run = slug(f"{results.environment.machine} {only}")
    data = folder / f"{run}.json"
    kept.save(results, data)
    texts = {f"{run}.html": page(results, data.name)}
    texts |= {f"{run}-{slug(table.name)}.svg": _chart(table) for table in results.tables if table.columns}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [data, *(folder / name for name in texts)]


def _chart(table: Table) -> str:
    return lines(table, standalone=True) if table.kind == "lines" else bars(table, table.leading, standalone=True)
