from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.report import write
from bench.report.charts import bars, lines
from bench.report.figures import (
    Spread,
    cell,
    heading,
    headline,
    human,
    human_span,
    number,
    ratio,
    ratio_span,
    slug,
    warnings,
)
from bench.report.html import page
from bench.report.terminal import text
from bench.results import Figures, Results, Row, Table, load, save
from tests.bench import made_up
from tests.bench.made_up import HOSTILE, REFERENCE

_SVG = "{http://www.w3.org/2000/svg}"
DATA = "vm-codecs.json"
_VOID = {"meta", "link", "br", "rect", "path", "circle", "polyline"}


class _Page(HTMLParser):
    """Tags in their order, and whether each that was opened was closed."""

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

    def every(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.tags if (value := attributes.get(attribute))]


def _known(table: Table) -> list[str]:
    """All that a report has to say of a table."""
    names = [row.contender for row in table.rows] + [heading(table, column) for column in table.columns]
    cells = [found for row in table.rows for column in table.columns if (found := cell(table, row.contender, column))]
    medians = [human(each.figure.median, table.unit) for each in cells]
    ratios = [ratio(each.ratio.median) for each in cells if each.ratio]
    return [table.title, table.about, *names, *(row.note for row in table.rows), *medians, *ratios]


def _words(report: str) -> str:
    return " ".join(report.split())


def test_a_page_names_the_file_beside_it(tmp_path: Path) -> None:
    for only in ("", "codecs quick"):
        data, shown, *_ = write(made_up.results(), tmp_path, only)
        assert f"<code>{data.name}</code>" in shown.read_text(encoding="utf-8")


def test_text_and_page_hold_every_contender_column_note_figure_and_ratio() -> None:
    results = made_up.results()
    in_text, in_page = _words(text(results)), _words(html.unescape(page(results, DATA)))
    for known in (known for table in results.tables for known in _known(table)):
        assert known in in_text
        assert known in in_page


def test_where_a_contender_takes_no_part_there_is_a_dash() -> None:
    results = made_up.results([made_up.codecs()])
    rows = [line.split() for line in text(results).splitlines() if line.startswith("fastmcp")]
    assert [part for row in rows for part in row if part == "–"] == ["–"] * 4
    assert page(results, DATA).count('<td class="missing">–</td>') == 2


def test_the_reference_is_marked() -> None:
    results = made_up.results([made_up.stdio()])
    assert f"{REFERENCE} (reference)" in text(results)
    assert re.search(rf'{REFERENCE} <span class="badge">reference</span>', page(results, DATA))
    assert ">reference</tspan>" in bars(made_up.stdio(), "one at a time")


def test_text_fits_a_terminal_of_a_hundred_columns() -> None:
    results = made_up.results([made_up.codecs(), made_up.stdio(), made_up.memory()], quick=True, load=5)
    assert max(map(len, text(results).splitlines())) <= 100


def test_text_says_ratio_then_spread_then_median() -> None:
    line = next(line for line in text(made_up.results([made_up.stdio()])).splitlines() if line.startswith("typedmcp"))
    assert line.split() == ["typedmcp", "7.4×", "7.4–7.6", "12,300/s"]


@pytest.mark.parametrize(
    ("quick", "busy", "expected"), [(False, 1.0, 0), (True, 1.0, 1), (False, 1.1, 1), (True, 9, 2)]
)
def test_a_quick_run_and_a_busy_machine_are_warned_of(quick: bool, busy: float, expected: int) -> None:
    results = made_up.results(quick=quick, load=busy)
    assert len(warnings(results)) == expected
    assert text(results).count("WARNING: ") == expected
    assert page(results, DATA).count('class="warning"') == expected


def test_what_names_say_is_never_markup() -> None:
    results = made_up.results()
    results.environment.machine = results.command = results.environment.processor = HOSTILE
    results.environment.versions[HOSTILE] = HOSTILE
    for row in results.tables[2].rows:
        row.note = HOSTILE
    source = page(results, DATA)
    assert "script" not in {tag for tag, _ in _Page(source).tags}
    assert "<script" not in source


def test_control_characters_reach_neither_a_terminal_nor_xml() -> None:
    table = made_up.table("a/b", ["c"], {"evil \x1b[31m\x00\x07\x9b name": [[1.0]], REFERENCE: [[1.0]]})
    results = made_up.results([table])
    for report in (text(results), page(results, DATA), bars(table, "c", standalone=True)):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", report)
    ElementTree.fromstring(bars(table, "c", standalone=True))  # noqa: S314


def test_the_page_is_accessible_and_needs_nothing_else() -> None:
    parsed = _Page(page(made_up.results(), DATA))
    tags = [tag for tag, _ in parsed.tags]
    assert parsed.open == []
    assert ("html", {"lang": "en"}) in parsed.tags
    assert tags.count("table") == tags.count("caption") == 4
    assert all(attributes.get("scope") in {"row", "col"} for tag, attributes in parsed.tags if tag == "th")
    assert [link for link in parsed.every("href") + parsed.every("src") if not link.startswith(("#", "data:"))] == []


def test_headings_are_in_order_and_links_lead_somewhere() -> None:
    parsed = _Page(page(made_up.results(), DATA))
    levels = [int(tag[1]) for tag, _ in parsed.tags if re.fullmatch("h[1-6]", tag)]
    ids = parsed.every("id")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in parsed.every("href") if link.startswith("#")} <= set(ids)
    assert set(parsed.every("aria-labelledby")) <= set(ids)


@pytest.mark.parametrize("standalone", [False, True])
@pytest.mark.parametrize("table", made_up.results().tables, ids=["codecs", "stdio", "http", "memory"])
def test_charts_are_xml_with_a_title_and_a_description(table: Table, standalone: bool) -> None:
    drawn = [bars(table, column, standalone=standalone) for column in table.columns]
    for each in [*drawn, lines(table, standalone=standalone)]:
        root = ElementTree.fromstring(each)  # noqa: S314
        assert root.tag == f"{_SVG}svg"
        assert root.get("role") == "img"
        assert len((root.get("viewBox") or "").split()) == 4
        assert root.findtext(f"{_SVG}title")
        assert root.findtext(f"{_SVG}desc")
        assert (root.find(f"{_SVG}style") is not None) == standalone


def test_bars_are_sorted_best_first_and_as_long_as_the_ratio_says() -> None:
    root = ElementTree.fromstring(bars(made_up.stdio(), "one at a time"))  # noqa: S314
    names = [group.findtext(f"{_SVG}text") for group in root.iter(f"{_SVG}g")]
    lengths = [float(group.findall(f"{_SVG}rect")[1].get("width", "")) for group in root.iter(f"{_SVG}g")]
    assert names == ["typedmcp", "TypeScript", REFERENCE]
    assert lengths[1] / lengths[2] == pytest.approx(3.25, rel=0.02)


def test_bars_without_the_reference_are_compared_with_the_worst() -> None:
    table = made_up.codecs()
    table.rows = [row for row in table.rows if row.contender != REFERENCE]
    assert "1× = fastmcp" in bars(table, "decode")


def test_the_guides_of_lines_rise_as_a_line_does_that_grows_as_the_size() -> None:
    sizes = ["10", "100", "1000"]
    table = made_up.table("a/b", sizes, {REFERENCE: [[1.0], [10.0], [100.0]]}, kind="lines")
    root = ElementTree.fromstring(lines(table))  # noqa: S314
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
def test_nothing_zero_and_less_can_be_reported(
    rows: dict[str, list[list[float] | None]], kind: str, tmp_path: Path
) -> None:
    table = made_up.table("a", ["10"], rows, kind="lines" if kind == "lines" else "bars")
    for tables in ([], [table]):
        results = made_up.results(tables)
        assert text(results)
        assert _Page(page(results, DATA)).open == []
        assert write(results, tmp_path)
    ElementTree.fromstring(bars(table, "10"))  # noqa: S314
    ElementTree.fromstring(lines(table))  # noqa: S314


def test_a_ratio_is_the_reference_by_the_contender_where_lower_is_better() -> None:
    table = made_up.table("a/b", ["c"], {"x": [[1.0, 2.0, 4.0]], REFERENCE: [[2.0, 8.0, 8.0]]})
    assert table.ratios("x", "c") == [2, 4, 2]
    assert table.ratios(REFERENCE, "c", "x") == [0.5, 0.25, 0.5]
    found = cell(table, "x", "c")
    assert found is not None
    assert found.ratio == Spread(2, 2, 4)


def test_a_ratio_is_the_contender_by_the_reference_where_higher_is_better() -> None:
    rows: dict[str, list[list[float] | None]] = {"x": [[10.0, 30.0, 5.0]], REFERENCE: [[5.0, 10.0, 10.0]], "y": [None]}
    table = made_up.table("a/b", ["c"], rows, unit="/s", better="higher")
    assert table.ratios("x", "c") == [2, 3, 0.5]
    assert table.ratios("y", "c") == table.ratios("nobody", "c") == []


@pytest.mark.parametrize("measured", [0.0, -0.4])
def test_there_is_no_ratio_where_a_round_has_found_nothing(measured: float) -> None:
    table = made_up.table("a/b", ["c"], {"x": [[1.0, measured]], REFERENCE: [[2.0, 8.0]]})
    assert table.ratios("x", "c") == table.ratios(REFERENCE, "c", "x") == []
    found = cell(table, "x", "c")
    assert found is not None
    assert found.ratio is None


def test_the_headline_is_the_first_of_ours_or_the_best_of_others_where_ours_is_the_reference() -> None:
    table = made_up.stdio()
    table.rows.append(Row("typedmcp, faster", {"one at a time": Figures([50_000.0] * 5)}))
    found = headline(table)
    assert found is not None
    assert (found.contender, found.against) == ("typedmcp", REFERENCE)
    table.reference = "typedmcp"
    found = headline(table)
    assert found is not None
    assert (found.contender, found.against) == ("typedmcp", "TypeScript")
    assert found.ratio.median == pytest.approx(12300 / 5400, rel=0.02)


def test_the_headline_is_of_the_column_that_tells_most() -> None:
    rows: dict[str, list[list[float] | None]] = {"typedmcp": [[1.0], [1.0]], REFERENCE: [[2.0], [3.0]]}
    table = made_up.table("a/b", ["one", "many"], rows)
    for column, times in (("", 2), ("one", 2), ("many", 3)):
        table.headline = column
        found = headline(table)
        assert found is not None
        assert found.ratio.median == times


def test_a_suite_that_broke_off_is_warned_of() -> None:
    results = made_up.results()
    results.broken.append("http: no load generator")
    for report in (text(results), page(results, DATA)):
        assert "Broken off, so that figures are missing: http: no load generator" in _words(report)


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [([3.0], (3, 3, 3)), ([1.0, 9.0, 5.0], (5, 1, 9)), ([4.0, 2.0, 3.0, 1.0, 100.0], (3, 1, 100))],
)
def test_a_figure_is_the_median_and_the_range_of_all_rounds(
    rounds: list[float], expected: tuple[float, float, float]
) -> None:
    table = Table("a/b", "A", "", "s", "lower", "x", ["one"], [Row("x", {"one": Figures(rounds)})])
    found = cell(table, "x", "one")
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
def test_figures_are_written_to_be_read(value: float, unit: str, expected: str) -> None:
    assert human(value, unit) == expected


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
def test_ratios_have_more_digits_where_they_are_close_to_one(value: float, expected: str) -> None:
    assert ratio(value) == expected


def test_spreads_have_the_digits_and_the_unit_of_their_median() -> None:
    assert ratio_span(Spread(2.05, 1.94, 2.14)) == "1.9–2.1"
    assert human_span(Spread(1.0e-3, 0.00095, 0.0012), "s") == "0.950–1.20"
    assert number(0.0) == "0"


@pytest.mark.parametrize("began", ["2026-01-02 03:04", "2026-01-02 03:04Z", "2026-01-02 03:04 UTC"])
def test_the_time_is_told_with_its_zone_once(began: str) -> None:
    results = made_up.results()
    results.environment.began = began
    assert "2026-01-02 03:04 UTC: make bench" in text(results)


def test_a_name_of_a_file_stays_in_its_folder() -> None:
    assert slug("../../etc/passwd") == "etc-passwd"
    assert slug("codecs/tools-call") == "codecs-tools-call"
    assert slug("..") == "unnamed"


def test_everything_is_written_beside_each_other_and_read_back(tmp_path: Path) -> None:
    results = made_up.results()
    paths = write(results, tmp_path / "new")
    assert sorted(paths) == sorted((tmp_path / "new").iterdir())
    assert [path.name for path in paths[:3]] == ["vm-2.json", "vm-2.html", "vm-2-codecs-tools-call.svg"]
    assert write(made_up.results(), tmp_path, "stdio quick")[0].name == "vm-2-stdio-quick.json"
    assert {path.name for path in paths} >= {"vm-2-stdio-echo.svg", "vm-2-memory-growth.svg"}
    assert load(paths[0]) == results


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "1"}', "nonsense"])
def test_a_file_that_holds_no_results_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"results\.json"):
        load(path)


def test_results_of_another_format_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results: Results = made_up.results()
    results.format += 1
    save(results, path)
    with pytest.raises(ValueError, match="measure again"):
        load(path)
