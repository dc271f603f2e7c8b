"""The budget of ratios."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.budget import Budget, find_violations, load_budgets
from bench.contenders.conversion import DIRECTIONS, VALUES
from bench.corpus import MESSAGES
from bench.plan import FULL, QUICK
from bench.quote import is_newer, load_quotes
from bench.results import Environment, Figures, Results, Row, Table
from bench.suites import codecs, convert, gateway, http, large, stdio
from bench.suites.instructions import DEPTHS
from bench.suites.processes import LEGACY, MODERN, format_depth

HERE = Environment("here", "cpu", 2, 1.0, "os", "python", "abc", 0.0, "2026-01-01 00:00", {})


def results(*, ours: list[float], theirs: list[float], quick: bool = False) -> Results:
    rows = [Row("ours", {"decode": Figures(ours)}), Row("theirs", {"decode": Figures(theirs)})]
    table = Table("codecs/x", "X", "About x.", "µs", "lower", "theirs", ["decode"], rows)
    return Results(1, "make bench", quick, HERE, [table])


def budget(at_least: float, changes: Mapping[str, str] | None = None, *, quick: bool = False) -> Budget:
    members = {"table": "codecs/x", "column": "decode", "contender": "ours", "against": "theirs", **(changes or {})}
    return Budget(**members, at_least=at_least, quick=quick)


@pytest.mark.parametrize(("at_least", "is_over"), [(1.9, False), (2.0, False), (2.1, True)])
def test_a_ratio_below_its_budget_is_named(at_least: float, is_over: bool) -> None:
    found = find_violations(results(ours=[1, 2, 5], theirs=[2, 4, 10]), [budget(at_least)])
    name, line = "codecs/x, decode: ours against theirs", "2.00 times as good, expected at least 2.1 times"
    assert found == ({name: line} if is_over else {})


def test_one_outlier_does_not_matter() -> None:
    assert find_violations(results(ours=[1, 1, 50], theirs=[3, 3, 3]), [budget(3)]) == {}


@pytest.mark.parametrize("changes", [{"table": "codecs/y"}, {"column": "encode"}, {"contender": "x"}, {"against": "x"}])
def test_a_missing_ratio_is_a_violation(changes: dict[str, str]) -> None:
    assert [*find_violations(results(ours=[1], theirs=[2]), [budget(1, changes)]).values()] == [
        "not measured, or not in every round"
    ]


@pytest.mark.parametrize(("quick", "violations"), [(True, 1), (False, 0)])
def test_a_quick_run_checks_only_quick_budgets(quick: bool, violations: int) -> None:
    assert len(find_violations(results(ours=[1], theirs=[1], quick=True), [budget(2, quick=quick)])) == violations


def test_the_kept_run_is_within_budget() -> None:
    kept, _ = load_quotes()
    measured = [budget for budget in load_budgets() if not is_newer(kept, budget)]
    assert measured
    assert find_violations(kept, measured) == {}


def test_budgets_that_are_newer_than_the_kept_run_are_of_contenders_that_will_be_measured() -> None:
    kept, _ = load_quotes()
    newer = [budget for budget in load_budgets() if is_newer(kept, budget)]
    known = {f"codecs/{name}": {*codecs.CONTENDERS} for name in MESSAGES}
    known |= {f"convert/{direction}": {*convert.CONTENDERS} for direction in DIRECTIONS}
    known |= {
        f"instructions/stdio-{MODERN}": {each.name for each in stdio.list_servers(QUICK, MODERN)},
        f"instructions/client-{MODERN}": {each.name for each in stdio.list_clients(QUICK, MODERN)},
        f"instructions/gateway-{MODERN}": {each.name for each in gateway.list_gateways(QUICK, MODERN)},
        f"instructions/http-client-{MODERN}": {each.name for each in http.list_clients(QUICK, "", MODERN)},
        f"http/echo-{MODERN}": {each.name for each in http.list_servers(QUICK, MODERN, "app")},
    }
    for revision in (MODERN, LEGACY):
        for name, kind in (("http", "app"), ("sse", "streams")):
            known[f"instructions/{name}-{revision}"] = {each.name for each in http.list_servers(QUICK, revision, kind)}
    for each in ("", "-memory"):
        for transport in large.TITLES:
            servers = {server.name for server in large.list_servers(transport, FULL)}
            known[f"large/servers-{transport}-{MODERN}{each}"] = servers
            known[f"large/clients-{transport}-{MODERN}{each}"] = {
                client.name for client in large.list_clients("", MODERN)
            }
    assert [budget.name for budget in newer if not {budget.contender, budget.against} <= known[budget.table]] == []
    columns = {
        *large.list_columns(FULL),
        *codecs.COLUMNS,
        *VALUES,
        *map(format_depth, DEPTHS),
        http.format_connections(32),
    }
    assert {budget.column for budget in newer} <= columns


def test_an_invalid_file_is_named_in_the_error(tmp_path: Path) -> None:
    wrong = tmp_path / "budget.toml"
    wrong.write_text("[[budget]]\ntable = 1\n")
    with pytest.raises(ValueError, match=r"budget\.toml"):
        load_budgets(wrong)
