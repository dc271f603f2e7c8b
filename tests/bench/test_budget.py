"""Ratios that must not get worse."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.budget import Budget, budgets, over
from bench.quote import chosen
from bench.results import Environment, Figures, Results, Row, Table

HERE = Environment("here", "cpu", 2, 1.0, "os", "python", "abc", 0.0, "2026-01-01 00:00", {})


def results(*, ours: list[float], theirs: list[float], quick: bool = False) -> Results:
    rows = [Row("ours", {"decode": Figures(ours)}), Row("theirs", {"decode": Figures(theirs)})]
    table = Table("codecs/x", "X", "About x.", "µs", "lower", "theirs", ["decode"], rows)
    return Results(1, "make bench", quick, HERE, [table])


def budget(at_least: float, changes: Mapping[str, str] | None = None, *, quick: bool = False) -> Budget:
    said = {"table": "codecs/x", "column": "decode", "contender": "ours", "against": "theirs", **(changes or {})}
    return Budget(**said, at_least=at_least, quick=quick)


@pytest.mark.parametrize(("at_least", "is_over"), [(1.9, False), (2.0, False), (2.1, True)])
def test_a_ratio_below_its_budget_is_named(at_least: float, is_over: bool) -> None:
    found = over(results(ours=[1, 2, 5], theirs=[2, 4, 10]), [budget(at_least)])
    name, line = "codecs/x, decode: ours against theirs", "2.00 times as good, where it has to be 2.1 times"
    assert found == ({name: line} if is_over else {})


def test_one_odd_round_does_not_matter() -> None:
    assert over(results(ours=[1, 1, 50], theirs=[3, 3, 3]), [budget(3)]) == {}


@pytest.mark.parametrize("changes", [{"table": "codecs/y"}, {"column": "encode"}, {"contender": "x"}, {"against": "x"}])
def test_what_was_not_measured_is_no_success(changes: dict[str, str]) -> None:
    assert [*over(results(ours=[1], theirs=[2]), [budget(1, changes)]).values()] == [
        "not measured, or not in each round"
    ]


@pytest.mark.parametrize(("quick", "held"), [(True, 1), (False, 0)])
def test_a_quick_run_is_held_to_what_is_steady(quick: bool, held: int) -> None:
    assert len(over(results(ours=[1], theirs=[1], quick=True), [budget(2, quick=quick)])) == held


def test_the_kept_run_holds_the_budget() -> None:
    kept, _ = chosen()
    assert budgets()
    assert over(kept, budgets()) == {}


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    wrong = tmp_path / "budget.toml"
    wrong.write_text("[[budget]]\ntable = 1\n")
    with pytest.raises(ValueError, match=r"budget\.toml"):
        budgets(wrong)
