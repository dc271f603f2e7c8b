"""The command line of the benchmarks: results, failures and the check of the budget."""

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
from tests.bench import sample_results
from tests.bench.sample_results import REFERENCE

Run: TypeAlias = Callable[..., tuple[int, Results]]


def _no_handler(_signal: int, _handler: object) -> None: ...


def suite_of(table: Table) -> Callable[[Plan], Iterator[Table]]:
    """Return the `measure_tables` of a suite with one table."""

    def measure_tables(_plan: Plan) -> Iterator[Table]:
        yield table

    return measure_tables


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """A function that makes a quick run of two suites, and returns its exit status and results."""
    monkeypatch.setattr(signal, "signal", _no_handler)  # the tests keep their own handlers

    def run(*arguments: str) -> tuple[int, Results]:
        options = ["--quick", "--out", str(tmp_path), "--machine", "vm", *arguments]
        monkeypatch.setattr(sys, "argv", ["bench", "stdio", "import", *options])
        status = __main__.main()
        (written,) = tmp_path.glob("*.json")
        return status, load(written)

    monkeypatch.setattr(imports, "measure_tables", suite_of(sample_results.memory()))
    monkeypatch.setattr(stdio, "measure_tables", suite_of(sample_results.stdio()))
    return run


def test_a_run_writes_its_results(run: Run) -> None:
    status, results = run()
    assert status == 0
    assert [table.name for table in results.tables] == [sample_results.stdio().name, sample_results.memory().name]
    assert results.command == 'make bench SUITES="stdio import" QUICK=1'


def test_other_suites_continue_after_a_failure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_plan: Plan) -> Iterator[Table]:
        yield sample_results.stdio()
        raise RuntimeError("no load generator")

    monkeypatch.setattr(stdio, "measure_tables", fails)
    status, results = run()
    assert status == 1
    assert [table.name for table in results.tables] == [sample_results.stdio().name, sample_results.memory().name]
    assert results.broken == ["stdio: no load generator"]


def test_finished_tables_are_written_after_an_interrupt(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_plan: Plan) -> Iterator[Table]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(imports, "measure_tables", interrupted)
    status, results = run()
    assert status == 1
    assert [table.name for table in results.tables] == [sample_results.stdio().name]
    assert results.broken == ["import: interrupted"]


def test_an_incomplete_run_has_its_own_file_name(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(_plan: Plan) -> Iterator[Table]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(imports, "measure_tables", interrupted)
    run()
    assert (tmp_path / "vm-stdio-import-quick-broken.json").exists()


def test_an_interrupted_run_is_not_measured_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    started = 0

    def interrupted(_plan: Plan) -> Iterator[Table]:
        nonlocal started
        started += 1
        yield sample_results.stdio()
        raise KeyboardInterrupt

    monkeypatch.setattr(stdio, "measure_tables", interrupted)
    monkeypatch.setattr(
        __main__, "load_budgets", lambda: [Budget("stdio/x", "x", "typedmcp", REFERENCE, 3, quick=True)]
    )
    assert run("--check")[0] == 1
    assert started == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
@pytest.mark.parametrize(
    ("before", "after"),
    [(signal.SIG_DFL, signal.default_int_handler), (signal.SIG_IGN, signal.SIG_IGN)],
    ids=["default", "nohup"],
)
def test_closing_the_terminal_interrupts_a_run_unless_it_is_under_nohup(before: Any, after: Any) -> None:
    previous = signal.signal(signal.SIGHUP, before), signal.getsignal(signal.SIGTERM)
    try:
        __main__.treat_signals_as_interrupts()
        assert signal.getsignal(signal.SIGHUP) is after
    finally:
        signal.signal(signal.SIGHUP, previous[0])
        signal.signal(signal.SIGTERM, previous[1])


def test_an_unwritable_folder_is_rejected_before_the_measurement(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(_plan: Plan) -> Iterator[Table]:
        pytest.fail("measured")
        yield

    monkeypatch.setattr(stdio, "measure_tables", measured)
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="2"):
        run("--out", str(tmp_path / "file"))
    assert f"cannot write to {tmp_path / 'file'}: File exists" in capsys.readouterr().err


def test_an_interrupt_in_a_second_measurement_ends_the_check(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = 0

    def measure_tables(_plan: Plan) -> Iterator[Table]:
        nonlocal started
        started += 1
        yield sample_results.stdio()
        if started == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(stdio, "measure_tables", measure_tables)
    monkeypatch.setattr(
        __main__, "load_budgets", lambda: [Budget("stdio/x", "x", "typedmcp", REFERENCE, 3, quick=True)]
    )
    assert run("--check")[0] == 1
    assert started == 2
    assert "failed: stdio: interrupted" in capsys.readouterr().out


def test_a_check_writes_files_only_with_out(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(__main__, "OUT", tmp_path / "results")
    monkeypatch.setattr(__main__, "load_budgets", list[Budget])
    run("--check")
    assert [*tmp_path.glob("*.json")] != []
    monkeypatch.setattr(sys, "argv", ["bench", "stdio", "import", "--quick", "--check"])
    assert __main__.main() == 0
    assert not (tmp_path / "results").exists()


def test_suites_that_were_not_measured_are_not_checked(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing(_plan: Plan) -> Iterator[Table]:
        return iter(())

    budgets = [
        Budget(f"{suite}/x", "x", "typedmcp", REFERENCE, at_least=3, quick=True) for suite in ("stdio", "import")
    ]
    monkeypatch.setattr(__main__, "load_budgets", lambda: budgets)
    monkeypatch.setattr(imports, "measure_tables", nothing)
    assert run("--check")[0] == 1
    printed = capsys.readouterr()
    assert "not measured, so not checked: import" in printed.err
    assert [line for line in printed.out.splitlines() if "over budget" in line] == [
        f"over budget: {budgets[0].name}: not measured, or not in every round"
    ]


@pytest.mark.parametrize(("contender", "status"), [("typedmcp, Server", 1), ("fastmcp", 0)])
def test_a_failure_of_typedmcp_sets_the_exit_status(
    run: Run, monkeypatch: pytest.MonkeyPatch, contender: str, status: int
) -> None:
    table = sample_results.stdio()
    table.rows.append(Row(contender, {}, "left out: it closed its output"))
    monkeypatch.setattr(stdio, "measure_tables", suite_of(table))
    assert run()[0] == status


@pytest.mark.parametrize(
    ("rates", "status", "message"),
    [
        ([4.0], 0, "within budget: 1 ratios"),
        ([1.0, 4.0], 0, "within budget: 1 ratios"),
        ([1.0, 1.0, 4.0], 0, "within budget: 1 ratios"),
        ([1.0, 1.5, 2.0], 1, "over budget: stdio/echo, calls: typedmcp against"),
    ],
)
def test_a_violation_must_occur_in_every_measurement(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rates: list[float],
    status: int,
    message: str,
) -> None:
    remaining, others = iter(rates), 0

    def measured(_plan: Plan) -> Iterator[Table]:
        figures = {"typedmcp": next(remaining), REFERENCE: 1.0}
        rows = [Row(name, {"calls": Figures([rate])}) for name, rate in figures.items()]
        yield Table("stdio/echo", "Echo", "About.", "/s", "higher", REFERENCE, ["calls"], rows)

    def holds(_plan: Plan) -> Iterator[Table]:
        nonlocal others
        others += 1
        yield sample_results.memory()

    budget = Budget("stdio/echo", "calls", "typedmcp", REFERENCE, at_least=3, quick=True)
    monkeypatch.setattr(stdio, "measure_tables", measured)
    monkeypatch.setattr(imports, "measure_tables", holds)
    monkeypatch.setattr(__main__, "load_budgets", lambda: [budget])
    assert run("--check")[0] == status
    assert message in capsys.readouterr().out
    assert [*remaining] == []
    assert others == 1  # suites within budget are not measured again


def test_the_command_that_repeats_a_run_has_its_rounds(run: Run) -> None:
    _, results = run("--rounds", "3")
    assert results.command == 'make bench SUITES="stdio import" QUICK=1 ARGS="--rounds 3"'


def test_there_is_at_least_one_round(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--rounds", "0")
    assert "--rounds must be positive, not 0" in capsys.readouterr().err
