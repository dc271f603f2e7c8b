"""README and documents quote a kept run, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.quote import DOCUMENTS, ROOT, block, chosen, quoted

_A_RATIO = re.compile(
    r"\d ?(×|times (as|faster|smaller))|\d+(\.\d+)? ?(µs|(\w+ )?(requests|calls) a second|/s\b)|\d\.\d+ s\b"
    r"|(twice|half|times) as (fast|slow)|costs half"
)
"""What figures look like that are measured."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_says_what_the_kept_run_has_found(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert quoted(text, block(*chosen(), document)) == text, "run: make bench-quote"


@pytest.mark.parametrize("document", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.name)
def test_no_figure_stands_anywhere_else(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    rest = quoted(text, "") if document in DOCUMENTS else text
    assert [match[0] for match in _A_RATIO.finditer(rest)] == []


def test_the_run_is_a_full_one_of_a_commit_and_its_report_is_there() -> None:
    results, quotes = chosen()
    assert quotes.quoted
    assert not results.quick
    assert not results.broken
    assert re.fullmatch(r"[0-9a-f]{7,}", results.environment.commit), "of files that are in no commit"
    assert (ROOT / "bench" / "results" / f"{results.environment.machine}.html").exists()


@pytest.mark.parametrize(
    "run",
    [{"quick": True}, {"broken": ["memory: interrupted"]}, {"commit": "59a6719+"}, {"commit": "unknown"}],
    ids=str,
)
def test_no_other_run_is_quoted(run: dict[str, Any]) -> None:
    results, quotes = chosen()
    if "commit" in run:
        run = {"environment": msgspec.structs.replace(results.environment, **run)}
    with pytest.raises(ValueError, match="only a whole run of a commit is quoted"):
        block(msgspec.structs.replace(results, **run), quotes, DOCUMENTS[0])


def test_a_busy_machine_is_told_of() -> None:
    results, quotes = chosen()
    busy = msgspec.structs.replace(results.environment, load=9.0)
    assert "The machine was busy" in block(msgspec.structs.replace(results, environment=busy), quotes, DOCUMENTS[1])


def test_the_readme_shows_a_chart_that_is_there() -> None:
    shown = re.findall(r"!\[.+\]\((.+)\)", DOCUMENTS[0].read_text(encoding="utf-8"))
    assert [(ROOT / file).suffix for file in shown if (ROOT / file).exists()] == [".svg"]


def test_a_document_without_a_place_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 places for figures"):
        quoted("# Nothing", "x")
