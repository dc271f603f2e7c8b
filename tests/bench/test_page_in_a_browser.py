"""The report page in a browser, at the widths of a desktop and a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.report.html import render_page
from tests.bench import sample_results
from tests.browser import CHROMIUM, DRIVER, browser

_MEASURE = """
const box = element => { const {width, height} = element.getBoundingClientRect(); return [width, height]; };
const sizes = selector => [...document.querySelectorAll(selector)].map(box);
return {
  width: document.documentElement.scrollWidth, room: innerWidth, body: document.body.scrollWidth,
  headings: sizes("h1, h2, h3"), charts: sizes("figure svg"), tables: sizes(".scrolls"), bars: sizes("svg rect"),
};
"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver on the path"),
]


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_fits_the_window_and_draws_everything_without_errors(width: int, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    results = sample_results.results(quick=True)
    path.write_text(render_page(results, "vm.json"), encoding="utf-8")
    with browser(width, 800, tmp_path / "profile") as window:
        window.send("url", url=path.as_uri())
        found = window.run(_MEASURE)
        assert window.log() == []
    assert found["room"] == width
    assert max(found["width"], found["body"]) <= width
    assert len(found["charts"]) == 3 + 1 + 2 + 1
    assert len(found["tables"]) == len(results.tables)
    for each in ("headings", "charts", "tables", "bars"):
        assert all(across > 0 and up > 0 for across, up in found[each])
