"""The report page in a browser, at the widths of a desktop and a phone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from bench.report.html import render_page
from tests.bench import sample_results

_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

_MEASURE = """
const box = element => { const {width, height} = element.getBoundingClientRect(); return [width, height]; };
const sizes = selector => [...document.querySelectorAll(selector)].map(box);
return {
  width: document.documentElement.scrollWidth, room: innerWidth, body: document.body.scrollWidth,
  headings: sizes("h1, h2, h3"), charts: sizes("figure svg"), tables: sizes(".scrolls"), bars: sizes("svg rect"),
};
"""

_CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
_DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (_CHROMIUM and _DRIVER), reason="needs chromium and chromedriver on the path"),
]


@dataclass(frozen=True)
class Browser:
    """A browser window, controlled by WebDriver."""

    address: str

    def send(self, command: str, **body: Any) -> Any:
        headers = {"Content-Type": "application/json"}
        request = Request(f"{self.address}/{command}", json.dumps(body).encode(), headers)  # noqa: S310
        with urlopen(request, timeout=60) as response:  # noqa: S310
            return json.load(response)["value"]


@contextmanager
def _driver() -> Generator[str]:
    assert _DRIVER is not None
    process = subprocess.Popen([_DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with process:
        try:
            assert process.stdout is not None
            ports = (re.search(r"successfully on port (\d+)", line) for line in process.stdout)
            yield f"http://127.0.0.1:{next(port for port in ports if port).group(1)}"
        finally:
            process.terminate()


@contextmanager
def browser(width: int, height: int, profile: Path) -> Generator[Browser]:
    """Open a window of an exact width. A headless browser needs emulation for that."""
    options = {
        "binary": _CHROMIUM,
        "args": [*_ARGUMENTS, f"--user-data-dir={profile}"],
        "mobileEmulation": {"deviceMetrics": {"width": width, "height": height, "pixelRatio": 1}},
    }
    wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
    with _driver() as address:
        session = Browser(address).send("session", capabilities={"alwaysMatch": wanted})
        opened = Browser(f"{address}/session/{session['sessionId']}")
        try:
            yield opened
        finally:
            urlopen(Request(opened.address, method="DELETE"), timeout=60).close()  # noqa: S310


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_fits_the_window_and_draws_everything_without_errors(width: int, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    results = sample_results.results(quick=True)
    path.write_text(render_page(results, "vm.json"), encoding="utf-8")
    with browser(width, 800, tmp_path / "profile") as window:
        window.send("url", url=path.as_uri())
        found = window.send("execute/sync", script=_MEASURE, args=[])
        assert window.send("se/log", type="browser") == []
    assert found["room"] == width
    assert max(found["width"], found["body"]) <= width
    assert len(found["charts"]) == 3 + 1 + 2 + 1
    assert len(found["tables"]) == len(results.tables)
    for each in ("headings", "charts", "tables", "bars"):
        assert all(across > 0 and up > 0 for across, up in found[each])
