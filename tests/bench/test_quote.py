"""README and documentation quote only the kept run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.chart import render_bars
from bench.corpus import MESSAGES
from bench.figures import format_figure
from bench.quote import (
    DOCUMENTS,
    ROOT,
    ComparedFigure,
    Peer,
    QuoteConfig,
    QuotedChart,
    find_peer,
    insert_block,
    is_newer,
    load_quotes,
    render_block,
    render_sentences,
)
from bench.results import Figures, Row, Table, merge
from bench.suites.codecs import CONTENDERS
from bench.suites.processes import PROGRAMS
from tests.cases import each

_A_RATIO = re.compile(
    r"\d ?(×|times (as|faster|smaller))|\d+(\.\d+)? ?(µs|(\w+ )?(requests|calls) a second|/s\b)|\d\.\d+ s\b"
    r"|(twice|half|times) as (fast|slow)|costs half"
)
"""Matches measured figures."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_has_the_figures_of_the_kept_run(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    render = render_sentences if document.name == "README.md" else render_block
    assert insert_block(text, render(*load_quotes())) == text, "run: make bench-quote"


def test_the_readme_states_at_most_eight_figures() -> None:
    assert len(load_quotes()[1].sentences) <= 8


def test_the_chart_of_the_readme_is_that_of_the_kept_run() -> None:
    results, quotes = load_quotes()
    table = results.table(quotes.chart.table)
    assert table is not None
    chart = render_bars(table, quotes.chart.column, quotes.chart.contenders)
    assert chart == (ROOT / "docs" / "pictures" / "speed.svg").read_text(encoding="utf-8")
    for name, contender in quotes.chart.contenders.items():
        figures = table.figures(contender, quotes.chart.column)
        assert figures is not None
        assert f">{name.replace(chr(34), '&quot;')}</text>" in chart
        assert f">{format_figure(figures.median, table.unit)}</text>" in chart


@each("document", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.name)
def test_no_document_has_other_figures(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    rest = insert_block(text, "") if document in DOCUMENTS else text
    assert [match[0] for match in _A_RATIO.finditer(rest)] == []


def test_the_quoted_run_is_complete_and_of_a_commit() -> None:
    results, quotes = load_quotes()
    assert quotes.quoted
    assert not results.quick
    assert not results.broken
    assert re.fullmatch(r"[0-9a-f]{7,}( and [0-9a-f]{7,})*", results.environment.commit), "of uncommitted files"


def test_quotes_that_are_newer_than_the_run_are_of_codecs_that_will_be_measured() -> None:
    results, quotes = load_quotes()
    newer = [quote for quote in quotes.quoted if is_newer(results, quote)]
    assert {name for quote in newer for name in (quote.contender, quote.against)} <= CONTENDERS.keys()
    assert {quote.table for quote in newer} <= {f"codecs/{name}" for name in MESSAGES}


def test_the_limit_and_five_languages_are_compared() -> None:
    results, quotes = load_quotes()
    assert [peer.name for peer in quotes.peers] == ["the limit", "Python", "TypeScript", "Go", "Rust", "Java"]
    assert [peer.is_limit for peer in quotes.peers] == [True, False, False, False, False, False]
    assert {name for peer in quotes.peers for name in peer.contenders} >= {*PROGRAMS.values()}
    tables = [results.table(row.table) for row in quotes.compared]
    for peer in quotes.peers:
        assert any(table is not None and find_peer(table, peer) for table in tables), peer.name


def test_a_ratio_is_bold_where_an_sdk_is_better_and_a_dash_if_there_is_none() -> None:
    def table(name: str, **figures: float) -> Table:
        rows = [Row(contender, {"calls": Figures([figure] * 3)}) for contender, figure in figures.items()]
        return Table(name, name, "", "calls/s", "higher", "bare", ["calls"], rows)

    results, quotes = load_quotes()
    results = msgspec.structs.replace(
        results, tables=[table("all", ours=50, bare=100, slow=10, fast=100), table("few", ours=50, slow=10, fast=0)]
    )
    quotes = QuoteConfig(
        runs=[],
        sentences=[],
        chart=QuotedChart("all", "calls", {}),
        quoted=[],
        peers=[
            Peer("the limit", ["bare"], is_limit=True),
            Peer("A", ["slower", "slow"]),
            Peer("B", ["fast"]),
            Peer("C", ["not measured"]),
        ],
        compared=[ComparedFigure("Calls", "all", "calls", "ours"), ComparedFigure("Few", "few", "calls", "ours")],
    )
    text = render_block(results, quotes)
    assert "| | typedmcp | the limit | A | B |\n|---|---|---|---|---|\n" in text
    assert "| Calls | 50/s | 0.50× | 5.0× | **0.50×** |\n" in text
    assert "| Few | 50/s | – | 5.0× | – |\n" in text


@pytest.mark.parametrize("contender", ["typedmcp, Server", "official Python, low level"])
def test_a_contender_that_failed_in_the_run_is_not_left_out_of_the_comparison(contender: str) -> None:
    results, quotes = load_quotes()
    row = quotes.compared[0]
    tables: list[Table] = []
    for table in results.tables:
        rows = [
            msgspec.structs.replace(one, figures={}) if (table.name, one.contender) == (row.table, contender) else one
            for one in table.rows
        ]
        tables.append(msgspec.structs.replace(table, rows=rows))
    with pytest.raises(ValueError, match=f"^{row.table}, {row.column}: typedmcp, Server.*: not measured"):
        render_block(msgspec.structs.replace(results, tables=tables), quotes)


def test_a_contender_that_failed_in_the_run_is_not_left_out() -> None:
    results, quotes = load_quotes()
    table = results.table(quotes.quoted[0].table)
    assert table is not None
    rows = [msgspec.structs.replace(row, figures={}) for row in table.rows]
    failed = msgspec.structs.replace(results, tables=[msgspec.structs.replace(table, rows=rows)])
    with pytest.raises(ValueError, match="not measured"):
        render_block(failed, quotes)


def test_only_the_quoted_runs_are_kept() -> None:
    _, quotes = load_quotes()
    rules = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    kept = {rule.removeprefix("!/bench/results/") for rule in rules if rule.startswith("!/bench/results/")}
    assert kept == {*quotes.runs}


def test_the_newest_of_a_table_is_quoted_with_the_commits_of_all_runs() -> None:
    results, quotes = load_quotes()
    environment = msgspec.structs.replace(results.environment, commit="59a6719", began="2199-01-01 00:00")
    table = msgspec.structs.replace(results.tables[0], title="newer")
    newer = msgspec.structs.replace(results, environment=environment, tables=[table])
    found = merge([newer, results])
    assert found.tables == [table, *results.tables[1:]]
    assert f"commit {results.environment.commit} and 59a6719" in " ".join(render_block(found, quotes).split())


def test_runs_on_another_machine_do_not_belong_together() -> None:
    results, _ = load_quotes()
    environment = msgspec.structs.replace(results.environment, machine="other")
    with pytest.raises(ValueError, match="on one machine"):
        merge([results, msgspec.structs.replace(results, environment=environment)])


@pytest.mark.parametrize(
    "run",
    [{"quick": True}, {"broken": ["memory: interrupted"]}, {"commit": "59a6719+"}, {"commit": "unknown"}],
    ids=str,
)
def test_other_runs_cannot_be_quoted(run: dict[str, Any]) -> None:
    results, quotes = load_quotes()
    if "commit" in run:
        run = {"environment": msgspec.structs.replace(results.environment, **run)}
    with pytest.raises(ValueError, match="only a complete run of a commit can be quoted"):
        render_block(msgspec.structs.replace(results, **run), quotes)


def test_a_busy_machine_is_mentioned() -> None:
    results, quotes = load_quotes()
    busy = msgspec.structs.replace(results.environment, load=9.0)
    assert "The machine was busy" in render_block(msgspec.structs.replace(results, environment=busy), quotes)


def test_a_document_without_a_place_is_rejected() -> None:
    with pytest.raises(ValueError, match="expected one place for figures, found 0"):
        insert_block("# Nothing", "x")
