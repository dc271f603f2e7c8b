from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.report import write_report
from bench.report.charts import render_bars, render_lines
from bench.report.figures import (
    Spread,
    find_cell,
    find_headline,
    format_figure,
    format_figure_span,
    format_heading,
    format_number,
    format_ratio,
    format_ratio_span,
    list_warnings,
    slugify,
)
from bench.report.html import render_page
from bench.report.terminal import render_text
from bench.results import Figures, Results, Row, Table, load, save
from tests.bench import sample_results
from tests.bench.sample_results import HOSTILE, REFERENCE

_SVG = "{http://www.w3.org/2000/svg}"
DATA = "vm-codecs.json"
_VOID = {"meta", "link", "br", "rect", "path", "circle", "polyline"}


class _Page(HTMLParser):
    """The tags of a page in their order. Fails if a tag is not closed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def values(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.tags if (value := attributes.get(attribute))]


def _expected_texts(table: Table) -> list[str]:
    """Return everything that a report must show of a table."""
    names = [row.contender for row in table.rows] + [format_heading(table, column) for column in table.columns]
    cells = [
        found for row in table.rows for column in table.columns if (found := find_cell(table, row.contender, column))
    ]
    medians = [format_figure(each.figure.median, table.unit) for each in cells]
    ratios = [format_ratio(each.ratio.median) for each in cells if each.ratio]
    return [table.title, table.about, *names, *(row.note for row in table.rows), *medians, *ratios]


def _words(report: str) -> str:
    return " ".join(report.split())


def test_a_page_names_its_data_file(tmp_path: Path) -> None:
    for only in ("", "codecs quick"):
        data, shown, *_ = write_report(sample_results.results(), tmp_path, only)
        assert f"<code>{data.name}</code>" in shown.read_text(encoding="utf-8")


def test_text_and_page_show_all_contenders_columns_notes_figures_and_ratios() -> None:
    results = sample_results.results()
    in_text, in_page = _words(render_text(results)), _words(html.unescape(render_page(results, DATA)))
    for expected in (text for table in results.tables for text in _expected_texts(table)):
        assert expected in in_text
        assert expected in in_page


def test_text_and_page_show_what_each_contender_checks() -> None:
    results = sample_results.results()
    in_text, in_page = _words(render_text(results)), _words(render_page(results, DATA))
    for names, checks in (("structs", "all of the schema"), (f"{REFERENCE}; fastmcp", "nothing")):
        assert f"{names}: {checks}" in in_text
        assert f"<strong>{names}</strong>: {checks}" in in_page
    assert "checks:" not in render_text(sample_results.results([sample_results.stdio()]))


def test_a_missing_figure_is_a_dash() -> None:
    results = sample_results.results([sample_results.codecs()])
    rows = [line.split() for line in render_text(results).splitlines() if line.startswith("fastmcp")]
    assert [part for row in rows for part in row if part == "–"] == ["–"] * 4
    assert render_page(results, DATA).count('<td class="missing">–</td>') == 2


def test_the_reference_is_marked() -> None:
    results = sample_results.results([sample_results.stdio()])
    assert f"{REFERENCE} (reference)" in render_text(results)
    assert re.search(rf'{REFERENCE} <span class="badge">reference</span>', render_page(results, DATA))
    assert ">reference</tspan>" in render_bars(sample_results.stdio(), "one at a time")


def test_text_fits_a_terminal_of_a_hundred_columns() -> None:
    results = sample_results.results(
        [sample_results.codecs(), sample_results.stdio(), sample_results.memory()], quick=True, load=5
    )
    assert max(map(len, render_text(results).splitlines())) <= 100


def test_text_shows_ratio_spread_and_median() -> None:
    line = next(
        line
        for line in render_text(sample_results.results([sample_results.stdio()])).splitlines()
        if line.startswith("typedmcp")
    )
    assert line.split() == ["typedmcp", "7.4×", "7.4–7.6", "12,300/s"]


@pytest.mark.parametrize(
    ("quick", "busy", "expected"), [(False, 1.0, 0), (True, 1.0, 1), (False, 1.1, 1), (True, 9, 2)]
)
def test_quick_runs_and_busy_machines_have_warnings(quick: bool, busy: float, expected: int) -> None:
    results = sample_results.results(quick=quick, load=busy)
    assert len(list_warnings(results)) == expected
    assert render_text(results).count("WARNING: ") == expected
    assert render_page(results, DATA).count('class="warning"') == expected


def test_names_are_escaped() -> None:
    results = sample_results.results()
    results.environment.machine = results.command = results.environment.processor = HOSTILE
    results.environment.versions[HOSTILE] = HOSTILE
    for row in results.tables[2].rows:
        row.note = HOSTILE
    source = render_page(results, DATA)
    assert "script" not in {tag for tag, _ in _Page(source).tags}
    assert "<script" not in source


def test_control_characters_are_replaced() -> None:
    table = sample_results.table("a/b", ["c"], {"evil \x1b[31m\x00\x07\x9b name": [[1.0]], REFERENCE: [[1.0]]})
    results = sample_results.results([table])
    for report in (render_text(results), render_page(results, DATA), render_bars(table, "c", standalone=True)):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", report)
    ElementTree.fromstring(render_bars(table, "c", standalone=True))  # noqa: S314


def test_the_page_is_accessible_and_self_contained() -> None:
    parsed = _Page(render_page(sample_results.results(), DATA))
    tags = [tag for tag, _ in parsed.tags]
    assert parsed.open == []
    assert ("html", {"lang": "en"}) in parsed.tags
    assert tags.count("table") == tags.count("caption") == 4
    assert all(attributes.get("scope") in {"row", "col"} for tag, attributes in parsed.tags if tag == "th")
    assert [link for link in parsed.values("href") + parsed.values("src") if not link.startswith(("#", "data:"))] == []


def test_headings_are_in_order_and_links_have_targets() -> None:
    parsed = _Page(render_page(sample_results.results(), DATA))
    levels = [int(tag[1]) for tag, _ in parsed.tags if re.fullmatch("h[1-6]", tag)]
    ids = parsed.values("id")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in parsed.values("href") if link.startswith("#")} <= set(ids)
    assert set(parsed.values("aria-labelledby")) <= set(ids)


@pytest.mark.parametrize("standalone", [False, True])
@pytest.mark.parametrize("table", sample_results.results().tables, ids=["codecs", "stdio", "http", "memory"])
def test_charts_are_xml_with_a_title_and_a_description(table: Table, standalone: bool) -> None:
    drawn = [render_bars(table, column, standalone=standalone) for column in table.columns]
    for each in [*drawn, render_lines(table, standalone=standalone)]:
        root = ElementTree.fromstring(each)  # noqa: S314
        assert root.tag == f"{_SVG}svg"
        assert root.get("role") == "img"
        assert len((root.get("viewBox") or "").split()) == 4
        assert root.findtext(f"{_SVG}title")
        assert root.findtext(f"{_SVG}desc")
        assert (root.find(f"{_SVG}style") is not None) == standalone


def test_bars_are_sorted_and_have_the_length_of_their_ratio() -> None:
    root = ElementTree.fromstring(render_bars(sample_results.stdio(), "one at a time"))  # noqa: S314
    names = [group.findtext(f"{_SVG}text") for group in root.iter(f"{_SVG}g")]
    lengths = [float(group.findall(f"{_SVG}rect")[1].get("width", "")) for group in root.iter(f"{_SVG}g")]
    assert names == ["typedmcp", "TypeScript", REFERENCE]
    assert lengths[1] / lengths[2] == pytest.approx(3.25, rel=0.02)


def test_bars_without_a_reference_are_compared_with_the_worst() -> None:
    table = sample_results.codecs()
    table.rows = [row for row in table.rows if row.contender != REFERENCE]
    assert "1× = fastmcp" in render_bars(table, "decode")


def test_the_guides_of_line_charts_show_proportional_growth() -> None:
    sizes = ["10", "100", "1000"]
    table = sample_results.table("a/b", sizes, {REFERENCE: [[1.0], [10.0], [100.0]]}, kind="lines")
    root = ElementTree.fromstring(render_lines(table))  # noqa: S314
    (line,) = root.iter(f"{_SVG}polyline")
    points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
    guides = [list(map(float, re.findall(r"[\d.]+", path.get("d", "")))) for path in root.iter(f"{_SVG}path")]
    slopes = [(y2 - y1) / (x2 - x1) for x1, y1, x2, y2 in (guide for guide in guides if len(guide) == 4)]
    (x1, y1), *_, (x2, y2) = points
    assert slopes == pytest.approx([(y2 - y1) / (x2 - x1)] * len(slopes), abs=0.01)
    assert slopes


_SPARSE: list[dict[str, list[list[float] | None]]] = [
    {}, {REFERENCE: [[0.0, 0.0]]}, {"x": [[2.0]]}, {REFERENCE: [[]]}, {REFERENCE: [[2.0]], "x": [[-3.0]]},
    {REFERENCE: [[-3.0]], "x": [[2.0]]}, {REFERENCE: [[2.0, 2.0]], "x": [[-3.0, 3.0]]}, {REFERENCE: [[-2.0]]},
]  # fmt: skip


@pytest.mark.parametrize("rows", _SPARSE)
@pytest.mark.parametrize("kind", ["bars", "lines"])
def test_missing_zero_and_negative_figures_can_be_reported(
    rows: dict[str, list[list[float] | None]], kind: str, tmp_path: Path
) -> None:
    table = sample_results.table("a", ["10"], rows, kind="lines" if kind == "lines" else "bars")
    for tables in ([], [table]):
        results = sample_results.results(tables)
        assert render_text(results)
        assert _Page(render_page(results, DATA)).open == []
        assert write_report(results, tmp_path)
    ElementTree.fromstring(render_bars(table, "10"))  # noqa: S314
    ElementTree.fromstring(render_lines(table))  # noqa: S314


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


@pytest.mark.parametrize("measured", [0.0, -0.4])
def test_there_is_no_ratio_if_a_round_is_zero_or_negative(measured: float) -> None:
    table = sample_results.table("a/b", ["c"], {"x": [[1.0, measured]], REFERENCE: [[2.0, 8.0]]})
    assert table.ratios("x", "c") == table.ratios(REFERENCE, "c", "x") == []
    found = find_cell(table, "x", "c")
    assert found is not None
    assert found.ratio is None


def test_the_headline_compares_typedmcp_with_the_reference_or_the_best_other() -> None:
    table = sample_results.stdio()
    table.rows.append(Row("typedmcp, faster", {"one at a time": Figures([50_000.0] * 5)}))
    found = find_headline(table)
    assert found is not None
    assert (found.contender, found.against) == ("typedmcp", REFERENCE)
    table.reference = "typedmcp"
    found = find_headline(table)
    assert found is not None
    assert (found.contender, found.against) == ("typedmcp", "TypeScript")
    assert found.ratio.median == pytest.approx(12300 / 5400, rel=0.02)


def test_the_headline_uses_the_leading_column() -> None:
    rows: dict[str, list[list[float] | None]] = {"typedmcp": [[1.0], [1.0]], REFERENCE: [[2.0], [3.0]]}
    table = sample_results.table("a/b", ["one", "many"], rows)
    for column, times in (("", 2), ("one", 2), ("many", 3)):
        table.headline = column
        found = find_headline(table)
        assert found is not None
        assert found.ratio.median == times


def test_a_failed_suite_has_a_warning() -> None:
    results = sample_results.results()
    results.broken.append("http: no load generator")
    for report in (render_text(results), render_page(results, DATA)):
        assert "Incomplete: http: no load generator" in _words(report)


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [([3.0], (3, 3, 3)), ([1.0, 9.0, 5.0], (5, 1, 9)), ([4.0, 2.0, 3.0, 1.0, 100.0], (3, 1, 100))],
)
def test_a_figure_is_the_median_and_the_range_of_all_rounds(
    rounds: list[float], expected: tuple[float, float, float]
) -> None:
    table = Table("a/b", "A", "", "s", "lower", "x", ["one"], [Row("x", {"one": Figures(rounds)})])
    found = find_cell(table, "x", "one")
    assert found is not None
    assert (found.figure.median, found.figure.low, found.figure.high) == expected


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
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


@pytest.mark.parametrize(
    ("value", "expected"),
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


@pytest.mark.parametrize("began", ["2026-01-02 03:04", "2026-01-02 03:04Z", "2026-01-02 03:04 UTC"])
def test_the_time_has_its_zone_once(began: str) -> None:
    results = sample_results.results()
    results.environment.began = began
    assert "2026-01-02 03:04 UTC: make bench" in render_text(results)


def test_a_slug_cannot_leave_its_folder() -> None:
    assert slugify("../../etc/passwd") == "etc-passwd"
    assert slugify("codecs/tools-call") == "codecs-tools-call"
    assert slugify("..") == "unnamed"


def test_a_report_is_written_and_read_back(tmp_path: Path) -> None:
    results = sample_results.results()
    paths = write_report(results, tmp_path / "new")
    assert sorted(paths) == sorted((tmp_path / "new").iterdir())
    assert [path.name for path in paths[:3]] == ["vm-2.json", "vm-2.html", "vm-2-codecs-tools-call.svg"]
    assert write_report(sample_results.results(), tmp_path, "stdio quick")[0].name == "vm-2-stdio-quick.json"
    assert {path.name for path in paths} >= {"vm-2-stdio-echo.svg", "vm-2-memory-growth.svg"}
    assert load(paths[0]) == results


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "1"}', "nonsense"])
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
