"""The command line of the benchmarks: what becomes of a run, and of its verdict."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from bench import __main__
from bench.budget import Budget
from bench.plan import Plan
from bench.results import Figures, Results, Row, Table, load
from bench.suites import imports, stdio
from tests.bench import made_up
from tests.bench.made_up import REFERENCE

Run: TypeAlias = Callable[..., tuple[int, Results]]


def _no_handler(_signal: int, _handler: object) -> None: ...


def gives(table: Table) -> Callable[[Plan], Iterator[Table]]:
    """A suite of one table."""

    def tables(_plan: Plan) -> Iterator[Table]:
        yield table

    return tables


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """What makes a quick run of two suites; its exit status, and what it has written."""
    monkeypatch.setattr(signal, "signal", _no_handler)  # which is for the process of a run alone

    def made(*arguments: str) -> tuple[int, Results]:
        options = ["--quick", "--out", str(tmp_path), "--machine", "vm", *arguments]
        monkeypatch.setattr(sys, "argv", ["bench", "stdio", "import", *options])
        status = __main__.main()
        (written,) = tmp_path.glob("*.json")
        return status, load(written)

    monkeypatch.setattr(imports, "tables", gives(made_up.memory()))
    monkeypatch.setattr(stdio, "tables", gives(made_up.stdio()))
    return made


def test_a_run_writes_what_it_has_found(run: Run) -> None:
    status, results = run()
    assert status == 0
    assert [table.name for table in results.tables] == [made_up.stdio().name, made_up.memory().name]
    assert results.command == 'make bench SUITES="stdio import" QUICK=1'


def test_a_suite_that_breaks_off_takes_nothing_else_along(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks_off(_plan: Plan) -> Iterator[Table]:
        yield made_up.stdio()
        raise RuntimeError("no load generator")

    monkeypatch.setattr(stdio, "tables", breaks_off)
    status, results = run()
    assert status == 1
    assert [table.name for table in results.tables] == [made_up.stdio().name, made_up.memory().name]
    assert results.broken == ["stdio: no load generator"]


def test_what_was_measured_before_an_interruption_is_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_plan: Plan) -> Iterator[Table]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(imports, "tables", interrupted)
    status, results = run()
    assert status == 1
    assert [table.name for table in results.tables] == [made_up.stdio().name]
    assert results.broken == ["import: interrupted"]


def test_what_was_broken_off_is_not_written_over_a_whole_run(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(_plan: Plan) -> Iterator[Table]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(imports, "tables", interrupted)
    run()
    assert (tmp_path / "vm-stdio-import-quick-broken.json").exists()


def test_what_was_interrupted_is_not_measured_again_for_a_check(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = 0

    def interrupted(_plan: Plan) -> Iterator[Table]:
        nonlocal begun
        begun += 1
        yield made_up.stdio()
        raise KeyboardInterrupt

    monkeypatch.setattr(stdio, "tables", interrupted)
    monkeypatch.setattr(__main__, "budgets", lambda: [Budget("stdio/x", "x", "typedmcp", REFERENCE, 3, quick=True)])
    assert run("--check")[0] == 1
    assert begun == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
@pytest.mark.parametrize(
    ("before", "after"),
    [(signal.SIG_DFL, signal.default_int_handler), (signal.SIG_IGN, signal.SIG_IGN)],
    ids=["which interrupts it", "unless under nohup"],
)
def test_a_run_hears_of_a_closed_terminal(before: Any, after: Any) -> None:
    kept = signal.signal(signal.SIGHUP, before), signal.getsignal(signal.SIGTERM)
    try:
        __main__.end_well()
        assert signal.getsignal(signal.SIGHUP) is after
    finally:
        signal.signal(signal.SIGHUP, kept[0])
        signal.signal(signal.SIGTERM, kept[1])


def test_a_folder_that_cannot_be_written_to_is_told_of_before_anything_is_measured(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(_plan: Plan) -> Iterator[Table]:
        pytest.fail("measured")
        yield

    monkeypatch.setattr(stdio, "tables", measured)
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="2"):
        run("--out", str(tmp_path / "file"))
    assert f"nothing can be written to {tmp_path / 'file'}: File exists" in capsys.readouterr().err


def test_a_second_measurement_that_is_interrupted_ends_a_check(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = 0

    def tables(_plan: Plan) -> Iterator[Table]:
        nonlocal begun
        begun += 1
        yield made_up.stdio()
        if begun == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(stdio, "tables", tables)
    monkeypatch.setattr(__main__, "budgets", lambda: [Budget("stdio/x", "x", "typedmcp", REFERENCE, 3, quick=True)])
    assert run("--check")[0] == 1
    assert begun == 2
    assert "broken off: stdio: interrupted" in capsys.readouterr().out


def test_a_check_writes_only_where_it_is_told_to(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(__main__, "OUT", tmp_path / "results")
    monkeypatch.setattr(__main__, "budgets", list[Budget])
    run("--check")
    assert [*tmp_path.glob("*.json")] != []
    monkeypatch.setattr(sys, "argv", ["bench", "stdio", "import", "--quick", "--check"])
    assert __main__.main() == 0
    assert not (tmp_path / "results").exists()


def test_what_cannot_be_measured_on_a_system_is_not_held_to_a_budget(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing(_plan: Plan) -> Iterator[Table]:
        return iter(())

    budgets = [
        Budget(f"{suite}/x", "x", "typedmcp", REFERENCE, at_least=3, quick=True) for suite in ("stdio", "import")
    ]
    monkeypatch.setattr(__main__, "budgets", lambda: budgets)
    monkeypatch.setattr(imports, "tables", nothing)
    assert run("--check")[0] == 1
    printed = capsys.readouterr()
    assert "not measured here, and not held to a budget: import" in printed.err
    assert [line for line in printed.out.splitlines() if "over budget" in line] == [
        f"over budget: {budgets[0].name}: not measured, or not in each round"
    ]


@pytest.mark.parametrize(("contender", "status"), [("typedmcp, Server", 1), ("fastmcp", 0)])
def test_the_status_tells_when_one_of_ours_has_failed(
    run: Run, monkeypatch: pytest.MonkeyPatch, contender: str, status: int
) -> None:
    table = made_up.stdio()
    table.rows.append(Row(contender, {}, "left out: it went away"))
    monkeypatch.setattr(stdio, "tables", gives(table))
    assert run()[0] == status


@pytest.mark.parametrize(
    ("rates", "status", "said"),
    [
        ([4.0], 0, "within budget: 1 ratios"),
        ([1.0, 4.0], 0, "within budget: 1 ratios"),
        ([1.0, 1.0, 4.0], 0, "within budget: 1 ratios"),
        ([1.0, 1.5, 2.0], 1, "over budget: stdio/echo, calls: typedmcp against"),
    ],
)
def test_what_is_worse_than_its_budget_has_to_be_so_each_time(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rates: list[float],
    status: int,
    said: str,
) -> None:
    left, others = iter(rates), 0

    def measured(_plan: Plan) -> Iterator[Table]:
        figures = {"typedmcp": next(left), REFERENCE: 1.0}
        rows = [Row(name, {"calls": Figures([rate])}) for name, rate in figures.items()]
        yield Table("stdio/echo", "Echo", "About.", "/s", "higher", REFERENCE, ["calls"], rows)

    def holds(_plan: Plan) -> Iterator[Table]:
        nonlocal others
        others += 1
        yield made_up.memory()

    budget = Budget("stdio/echo", "calls", "typedmcp", REFERENCE, at_least=3, quick=True)
    monkeypatch.setattr(stdio, "tables", measured)
    monkeypatch.setattr(imports, "tables", holds)
    monkeypatch.setattr(__main__, "budgets", lambda: [budget])
    assert run("--check")[0] == status
    assert said in capsys.readouterr().out
    assert [*left] == []
    assert others == 1  # what holds its budget is not measured again
