from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.figures import (
    Spread,
    find_cell,
    format_figure,
    format_figure_span,
    format_heading,
    format_number,
    format_ratio,
    format_ratio_span,
    list_warnings,
    slugify,
)
from bench.report import render_report, write_report
from bench.results import Figures, Results, Row, Table, load, save
from tests.bench import sample_results
from tests.bench.sample_results import REFERENCE
from tests.cases import each


def _expected_texts(table: Table) -> list[str]:
    """Return everything that a report must show of a table."""
    names = [row.contender for row in table.rows] + [format_heading(column) for column in table.columns]
    cells = [
        found for row in table.rows for column in table.columns if (found := find_cell(table, row.contender, column))
    ]
    medians = [format_figure(cell.figure.median, table.unit) for cell in cells]
    ratios = [format_ratio(cell.ratio.median) for cell in cells if cell.ratio and cell.ratio != Spread(1, 1, 1)]
    return [table.title, table.about, *names, *(row.note for row in table.rows), *medians, *ratios]


def _line(report: str, contender: str) -> list[str]:
    """Return the cells of the only row of a contender."""
    (line,) = [line for line in report.splitlines() if line.startswith(f"| {contender} ")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_report_shows_all_contenders_columns_notes_figures_and_ratios() -> None:
    results = sample_results.results()
    report = render_report(results)
    assert [text for table in results.tables for text in _expected_texts(table) if text not in report] == []


def test_a_report_shows_what_each_contender_checks() -> None:
    report = render_report(sample_results.results())
    assert "- structs checks all of the schema" in report
    assert f"- {REFERENCE}; fastmcp checks nothing" in report
    assert " checks " not in render_report(sample_results.results([sample_results.stdio()]))


def test_a_row_has_ratio_spread_and_median_and_a_dash_for_a_missing_figure() -> None:
    assert _line(render_report(sample_results.results([sample_results.stdio()])), "typedmcp") == [
        "typedmcp", "7.4× (7.4–7.6), 12,300/s",
    ]  # fmt: skip
    assert _line(render_report(sample_results.results([sample_results.codecs()])), "fastmcp")[2:] == ["–", "–"]


def test_the_reference_is_marked_and_has_no_ratio() -> None:
    report = render_report(sample_results.results([sample_results.stdio()]))
    assert _line(report, f"{REFERENCE} (reference)")[1] == "1,650/s"


def test_every_table_is_markdown_with_as_many_cells_in_each_row() -> None:
    table = sample_results.stdio()
    table.rows[1].contender = "a | b\nc"
    for block in render_report(sample_results.results([table, sample_results.codecs()])).split("\n\n"):
        rows = [re.split(r"(?<!\\)\|", line) for line in block.splitlines() if line.startswith("|")]
        assert len({len(row) for row in rows}) <= 1


@each("quick, busy, expected", [(False, 1.0, 0), (True, 1.0, 1), (False, 1.1, 1), (True, 9, 2)])
def test_quick_runs_and_busy_machines_have_warnings(quick: bool, busy: float, expected: int) -> None:
    results = sample_results.results(quick=quick, load=busy)
    assert len(list_warnings(results)) == expected
    assert render_report(results).count("WARNING: ") == expected


def test_control_characters_are_replaced() -> None:
    table = sample_results.table("a/b", ["c"], {"evil \x1b[31m\x00\x07\x9b name": [[1.0]], REFERENCE: [[1.0]]})
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", render_report(sample_results.results([table])))


_SPARSE: list[dict[str, list[list[float] | None]]] = [
    {}, {REFERENCE: [[0.0, 0.0]]}, {"x": [[2.0]]}, {REFERENCE: [[]]}, {REFERENCE: [[2.0]], "x": [[-3.0]]},
    {REFERENCE: [[-3.0]], "x": [[2.0]]}, {REFERENCE: [[2.0, 2.0]], "x": [[-3.0, 3.0]]}, {REFERENCE: [[-2.0]]},
]  # fmt: skip


@each("rows", _SPARSE)
def test_missing_zero_and_negative_figures_can_be_reported(rows: dict[str, list[list[float] | None]]) -> None:
    assert render_report(sample_results.results([sample_results.table("a", ["10"], rows)]))


def test_a_ratio_is_reference_by_contender_if_lower_is_better() -> None:
    table = sample_results.table("a/b", ["c"], {"x": [[1.0, 2.0, 4.0]], REFERENCE: [[2.0, 8.0, 8.0]]})
    assert table.ratios("x", "c") == [2, 4, 2]
    assert table.ratios(REFERENCE, "c", "x") == [0.5, 0.25, 0.5]
    found = find_cell(table, "x", "c")
    assert found is not None
    assert found.ratio == Spread(2, 2, 4)


def test_a_ratio_is_contender_by_reference_if_higher_is_better() -> None:
    rows: dict[str, list[list[float] | None]] = {"x": [[10.0, 30.0, 5.0]], REFERENCE: [[5.0, 10.0, 10.0]], "y": [None]}
    table = sample_results.table("a/b", ["c"], rows, unit="/s", better="higher")
    assert table.ratios("x", "c") == [2, 3, 0.5]
    assert table.ratios("y", "c") == table.ratios("unknown", "c") == []


@each("measured", [0.0, -0.4])
def test_there_is_no_ratio_if_a_round_is_zero_or_negative(measured: float) -> None:
    table = sample_results.table("a/b", ["c"], {"x": [[1.0, measured]], REFERENCE: [[2.0, 8.0]]})
    assert table.ratios("x", "c") == table.ratios(REFERENCE, "c", "x") == []
    found = find_cell(table, "x", "c")
    assert found is not None
    assert found.ratio is None


def test_a_failed_suite_has_a_warning() -> None:
    results = sample_results.results()
    results.broken.append("http: no load generator")
    assert "Incomplete: http: no load generator" in render_report(results)


@each(
    "rounds, expected",
    [([3.0], (3, 3, 3)), ([1.0, 9.0, 5.0], (5, 1, 9)), ([4.0, 2.0, 3.0, 1.0, 100.0], (3, 1, 100))],
)
def test_a_figure_is_the_median_and_the_range_of_all_rounds(
    rounds: list[float], expected: tuple[float, float, float]
) -> None:
    table = Table("a/b", "A", "", "s", "lower", "x", ["one"], [Row("x", {"one": Figures(rounds)})])
    found = find_cell(table, "x", "one")
    assert found is not None
    assert (found.figure.median, found.figure.low, found.figure.high) == expected


@each(
    "value, unit, expected",
    [
        (0.000812, "s", "812 µs"),
        (0.00120, "s", "1.20 ms"),
        (0.0009999, "s", "1.00 ms"),
        (1.1e-6, "s", "1.10 µs"),
        (2e-12, "s", "0.00200 ns"),
        (90.0, "s", "90.0 s"),
        (45.23, "ms", "45.2 ms"),
        (1500, "µs", "1.50 ms"),
        (12345, "calls/s", "12,300/s"),
        (1234567, "/s", "1,230,000/s"),
        (0.5, "/s", "0.500/s"),
        (48.234, "MB", "48.2 MB"),
        (347.2, "MB/s", "347 MB/s"),
        (6840, "MB", "6.84 GB"),
        (999.4, "KB", "999 KB"),
        (999.96, "KB", "1.00 MB"),
        (0, "s", "0 ns"),
        (1.5e-5, "s", "15.0 µs"),
        (-1500, "B", "-1.50 KB"),
        (612, "modules", "612 modules"),
        (612.4, "", "612"),
        (float("nan"), "s", "– ns"),
        (1e30, "", "1.00e+30"),
        (1e-30, "x", "1.00e-30 x"),
    ],
)
def test_figures_have_readable_units(value: float, unit: str, expected: str) -> None:
    assert format_figure(value, unit) == expected


@each(
    "value, expected",
    [
        (1.0, "1×"),
        (1.04, "1.04×"),
        (0.867, "0.87×"),
        (7.44, "7.4×"),
        (12.34, "12.3×"),
        (23.4, "23×"),
        (12345.0, "12,345×"),
        (0.0716, "0.072×"),
        (0.00012, "0.00012×"),
    ],
)
def test_ratios_close_to_one_have_more_digits(value: float, expected: str) -> None:
    assert format_ratio(value) == expected


def test_spreads_have_digits_and_unit_of_the_median() -> None:
    assert format_ratio_span(Spread(2.05, 1.94, 2.14)) == "1.9–2.1"
    assert format_figure_span(Spread(1.0e-3, 0.00095, 0.0012), "s") == "0.950–1.20"
    assert format_number(0.0) == "0"


@each("began", ["2026-01-02 03:04", "2026-01-02 03:04Z", "2026-01-02 03:04 UTC"])
def test_the_time_has_its_zone_once(began: str) -> None:
    results = sample_results.results()
    results.environment.began = began
    assert "`make bench`, 2026-01-02 03:04 UTC, commit" in render_report(results)


def test_a_slug_cannot_leave_its_folder() -> None:
    assert slugify("../../etc/passwd") == "etc-passwd"
    assert slugify("codecs/tools-call") == "codecs-tools-call"
    assert slugify("..") == "unnamed"


def test_a_report_is_written_and_read_back(tmp_path: Path) -> None:
    results = sample_results.results()
    paths = write_report(results, tmp_path / "new")
    assert sorted(paths) == sorted((tmp_path / "new").iterdir())
    assert [path.name for path in paths] == ["vm-2.json", "vm-2.md"]
    assert write_report(sample_results.results(), tmp_path, "stdio quick")[0].name == "vm-2-stdio-quick.json"
    assert paths[1].read_text(encoding="utf-8") == render_report(results)
    assert load(paths[0]) == results


@each("content", ["", "[]", "{}", '{"format": "1"}', "nonsense"])
def test_an_invalid_results_file_is_rejected(content: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"results\.json"):
        load(path)


def test_results_of_another_format_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results: Results = sample_results.results()
    results.format += 1
    save(results, path)
    with pytest.raises(ValueError, match="measure again"):
        load(path)
